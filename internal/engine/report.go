package engine

import (
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// A reporter reports the results of deliveries: by server events stored with a result, and by feed, outcomes, metrics and log
// after its commit. It is the dispatcher's observer.
type reporter struct{ e *Engine }

// Judged adds notices and server events to a record. Tests of an endpoint are not reported.
func (rp *reporter) Judged(t *attempt.Target, r *commit.Record, now time.Time) {
	d := &r.Result.Delivery
	if !t.Policy.Announce && !t.Policy.Alert || d.Run.Trigger == godwit.TriggerTest {
		return
	}
	if t.Policy.Alert && d.Status.Dead() {
		r.Notices = append(r.Notices, godwit.Notice{
			ID: godwit.NewNoticeID(now), TenantID: d.TenantID, EndpointID: d.EndpointID, DeliveryID: d.ID, EventID: d.EventID,
			Kind: godwit.NoticeDeadLetter, Detail: deathText(r), CreatedAt: now,
		})
	}
	report := profile.Report{
		Profile: t.Profile, Policy: t.Policy, Endpoint: &t.Endpoint, Event: r.Event, Delivery: d, Attempt: r.Result.Attempt,
		Notices: r.Notices, At: now,
	}
	if events := report.Events(); len(events) > 0 {
		r.News = rp.news(d.TenantID, events)
	}
}

// deathText returns why a delivery is dead: "HTTP 500 after 7 attempts" (CCW-DLQ-8).
func deathText(r *commit.Record) string {
	d := &r.Result.Delivery
	last := string(d.Reason)
	if r.Result.Attempt != nil {
		last = r.Result.Attempt.FailureText()
	}
	if d.Status == godwit.DeliveryTerminal {
		return last + " (not retryable)"
	}
	if d.Run.Attempts == 1 {
		return last + " after 1 attempt"
	}
	return fmt.Sprintf("%s after %d attempts", last, d.Run.Attempts)
}

// news makes the events to store with a result: those that are always kept, and those that an endpoint subscribes to. Their
// deliveries wait in the store until their lanes claim them.
func (rp *reporter) news(tenant godwit.TenantID, events []profile.ServerEvent) *commit.News {
	e := rp.e
	var receivers [][]*dispatch.Lane
	var wanted []profile.ServerEvent
	for _, event := range events {
		if lanes := e.lanes.Wanted(tenant, event.Type); len(lanes) > 0 || event.Keep {
			wanted, receivers = append(wanted, event), append(receivers, lanes)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	now, step := e.watermark.Enter()
	n := &commit.News{}
	var told []*dispatch.Lane
	for i, event := range wanted {
		id := godwit.NewEventID(now)
		added := store.NewEvent{Event: &godwit.Event{
			ID: id, TenantID: tenant, Type: event.Type, Key: NewKey(), ContentType: event.ContentType, Body: event.Body(id), Format: event.Format, CreatedAt: now,
		}}
		receivers[i] = e.lanes.Pass(receivers[i], added.Event)
		if len(receivers[i]) == 0 && !event.Keep {
			continue
		}
		for _, l := range receivers[i] {
			added.Deliveries = append(added.Deliveries, store.NewDelivery{
				ID: godwit.NewDeliveryID(now), EndpointID: l.ID(), Trigger: godwit.TriggerAccept,
			})
		}
		n.Accept.Events = append(n.Accept.Events, added)
		told = append(told, receivers[i]...)
	}
	n.Ended = func(stored bool) {
		e.watermark.Leave(step)
		if stored {
			e.cfg.Recorder.Submitted(len(n.Accept.Events), len(told))
			e.lanes.Waiting(told)
		}
	}
	return n
}

// Recorded reports a stored record to feed, outcomes, metrics and log.
func (rp *reporter) Recorded(r *commit.Record) {
	e, result := rp.e, &r.Result
	ended := result.Delivery.Status != godwit.DeliveryPending
	if result.Attempt != nil {
		e.cfg.Recorder.Attempted(r.Profile, r.Event.Type, result.Attempt, &result.Delivery)
		logAttempt(e.cfg.Log, r.Profile, result.Attempt, result.Delivery.Status)
		if e.feed.Wanted() {
			e.feed.Publish(FeedItem{Attempt: *result.Attempt, EventType: r.Event.Type, Status: result.Delivery.Status})
		}
	}
	if ended {
		e.cfg.Recorder.Delivered(r.Event.Type, &result.Delivery)
	}
	if !result.KeepClaim { // otherwise the delivery is tried again at once, and that attempt counts
		e.outcomes.Stored(&result.Delivery)
	}
}

// Refused tells callers that wait for the event to read the store from now on.
func (rp *reporter) Refused(r *commit.Record) { rp.e.outcomes.Refused(r.Result.Delivery.EventID) }

// Orphaned cancels the deliveries of deleted endpoints.
func (rp *reporter) Orphaned() { rp.e.sweeper.cancelOrphans() }

// Claimed measures claims.
func (rp *reporter) Claimed(n, fenced int, took time.Duration, err error) {
	rp.e.cfg.Recorder.Claimed(n, fenced, took, err)
}
