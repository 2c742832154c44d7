package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// news are the events that tell of a result on the tenant's own bus. They are stored in one transaction with the result, so
// that no result is there without them, and wait in the store until their lanes claim them. Ids and receivers are fixed when
// they are made: a commit that has to be repeated stores nothing twice. Of a result that is refused because the delivery is
// another node's by now they are stored all the same: the attempt was made, and that node will tell of its own.
type news struct {
	accept store.Accept
	lanes  []*lane
	slot   int64 // in the count of what is being settled
}

const jsonType = "application/json"

// tell makes the news of a delivery after an attempt, or after its time was over. Nothing is told of the server's own news:
// one event would be followed by others without end (OJS-OBS-8). Tests of an endpoint are nobody's news.
func (e *Engine) tell(t *target, j *judgement, event *godwit.Event, now time.Time) {
	d := &j.result.Delivery
	if !t.policy.Announce && !t.policy.Alert || d.Run.Trigger == godwit.TriggerTest {
		return
	}
	if t.policy.Alert && d.Status.Dead() {
		j.notices = append(j.notices, godwit.Notice{
			ID: godwit.NewNoticeID(now), TenantID: d.TenantID, EndpointID: d.EndpointID, DeliveryID: d.ID, EventID: d.EventID,
			Kind: godwit.NoticeDeadLetter, Detail: deathText(j), CreatedAt: now,
		})
	}
	if profile.Meta(event.Type) {
		return
	}
	if t.policy.Announce {
		e.announce(t, j, event, now)
	}
	if t.policy.Alert {
		for i := range j.notices {
			e.alert(t, j, &j.notices[i], event)
		}
	}
}

// deathText says why a delivery is dead: "HTTP 500 after 7 attempts" (CCW-DLQ-8).
func deathText(j *judgement) string {
	d := &j.result.Delivery
	last := string(d.Reason)
	if a := j.result.Attempt; a != nil {
		last = failureText(a.Status, &a.Verdict)
	}
	if d.Status == godwit.DeliveryTerminal {
		return last + " (not retryable)"
	}
	if d.Run.Attempts == 1 {
		return last + " after 1 attempt"
	}
	return fmt.Sprintf("%s after %d attempts", last, d.Run.Attempts)
}

// announce tells what became of the delivery: accepted (OJS-OBS-1), to be tried again (OJS-OBS-2) or dead (OJS-OBS-3). A
// death is kept for whoever asks later, the others are stored when somebody wants them.
func (e *Engine) announce(t *target, j *judgement, event *godwit.Event, now time.Time) {
	d := &j.result.Delivery
	a := profile.Announcement{
		TenantID: d.TenantID, EndpointID: d.EndpointID, DeliveryID: d.ID, EventID: profile.ReceiverEventID(t.profile, event), EventType: event.Type,
		Attempt: d.Attempts, StatusCode: d.LastStatus, At: now,
	}
	if attempt := j.result.Attempt; attempt != nil && attempt.Verdict.Outcome != godwit.Accepted {
		a.Error = failureText(attempt.Status, &attempt.Verdict)
	}
	switch {
	case d.Status == godwit.DeliveryAccepted:
		a.Type = profile.AnnounceDelivered
	case d.Status == godwit.DeliveryPending:
		a.Type, a.NextAt = profile.AnnounceFailed, d.DueAt
	case d.Status.Dead():
		a.Type, a.Reason = profile.AnnounceDead, string(d.Reason)
	default:
		return // cancelled
	}
	e.publish(j, d.TenantID, a.Type, d.Status.Dead(), func(id godwit.EventID) ([]byte, string) {
		return a.Envelope(id), godwit.FormatOJS
	})
}

// alerts are the notices that an account's admins are told of (CCW-DLQ-3, CCW-HLT-2, CCW-HLT-8), by the type of the event.
var alerts = map[godwit.NoticeKind]string{
	godwit.NoticeDeadLetter:       "delivery_dead",
	godwit.NoticeEndpointDegraded: "endpoint_degraded",
	godwit.NoticeEndpointDisabled: "endpoint_disabled",
}

// alert tells of a notice to the endpoints that ask for alerts by name.
func (e *Engine) alert(t *target, j *judgement, n *godwit.Notice, event *godwit.Event) {
	kind := alerts[n.Kind]
	if kind == "" {
		return
	}
	body := struct {
		Kind       string            `json:"kind"`
		EndpointID godwit.EndpointID `json:"endpoint_id"`
		Endpoint   string            `json:"endpoint,omitempty"`
		DeliveryID godwit.DeliveryID `json:"delivery_id"`
		EventID    godwit.EventID    `json:"event_id"`
		EventType  string            `json:"event_type"`
		Reason     string            `json:"reason"`
		At         time.Time         `json:"at"`
	}{Kind: kind, EndpointID: n.EndpointID, DeliveryID: n.DeliveryID, EventID: n.EventID, EventType: event.Type, Reason: n.Detail, At: n.CreatedAt}
	if t.endpoint.Code != "" {
		body.Endpoint = profile.FormatCode(profile.CodeEndpoint, t.endpoint.Code)
	}
	e.publish(j, n.TenantID, "godwit.alert."+kind, false, func(godwit.EventID) ([]byte, string) {
		text, err := json.Marshal(body)
		if err != nil {
			e.log.Error("write alert", "error", err) // its members are all text
		}
		return text, godwit.FormatRaw
	})
}

// publish adds an event to the news of a result: always, or when some endpoint wants it.
func (e *Engine) publish(j *judgement, tenant godwit.TenantID, eventType string, always bool, render func(godwit.EventID) (body []byte, format string)) {
	lanes := e.index.match(tenant, eventType, nil)
	if len(lanes) == 0 && !always {
		return
	}
	var now time.Time
	if j.news == nil {
		j.news = &news{}
		now, j.news.slot = e.settles.enter(e.clock)
	} else {
		now = j.news.accept.Events[0].Event.CreatedAt
	}
	id := godwit.NewEventID(now)
	body, format := render(id)
	added := store.NewEvent{Event: &godwit.Event{
		ID: id, TenantID: tenant, Type: eventType, Key: MintKey(), ContentType: jsonType, Body: body, Format: format, CreatedAt: now,
	}}
	for _, l := range lanes {
		added.Deliveries = append(added.Deliveries, store.NewDelivery{
			ID: godwit.NewDeliveryID(now), EndpointID: l.id, Trigger: godwit.TriggerAccept,
		})
	}
	j.news.accept.Events = append(j.news.accept.Events, added)
	j.news.lanes = append(j.news.lanes, lanes...)
}

// published wakes the lanes that stored news are for.
func (e *Engine) published(n *news) {
	if n == nil {
		return
	}
	e.settles.leave(n.slot)
	e.cfg.Recorder.Submitted(len(n.accept.Events), len(n.lanes))
	now := e.clock.Now()
	for _, l := range n.lanes {
		l.overflowed(now)
	}
}

// unpublished gives up news whose result can never be stored.
func (e *Engine) unpublished(n *news) {
	if n != nil {
		e.settles.leave(n.slot)
	}
}

// Announce puts an event about a subscription on the tenant's bus, whether anybody wants it now or not (OJS-OBS-4, OJS-OBS-5).
func (e *Engine) Announce(ctx context.Context, a profile.Announcement) error {
	if a.At.IsZero() {
		a.At = e.clock.Now()
	}
	_, err := e.Submit(ctx, Submission{TenantID: a.TenantID, Events: []Publication{{
		Type: a.Type, ContentType: jsonType, Format: godwit.FormatOJS,
		Compose: func(event *godwit.Event) { event.Body = a.Envelope(event.ID) },
	}}})
	if err != nil {
		return fmt.Errorf("announce %s: %w", a.Type, err)
	}
	return nil
}
