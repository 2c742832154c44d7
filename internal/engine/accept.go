package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/engine/follow"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// maxInline is the largest number of deliveries that one call to Submit stores together with their events. A fan-out stores
// the deliveries of larger calls afterwards.
const maxInline = commit.MaxRows

// An acceptor accepts events: it builds them, finds their receivers and stores both.
type acceptor struct {
	cfg       *Config
	commits   *commit.Group
	lanes     *dispatch.Dispatcher
	fanouts   *fanout.Expander
	watermark *follow.Watermark
	keys      inProgress
}

// Submit accepts events. When it returns without error, every submission without an Err of its own is durable and will be
// delivered. Submit stores all of them in one transaction; with more than maxInline deliveries, that transaction holds
// fan-outs in place of the deliveries. After an error it is unknown whether anything was stored; the caller may repeat the
// call with the same key.
func (ac *acceptor) Submit(ctx context.Context, submissions ...Submission) ([]Receipt, error) {
	if !ac.lanes.Running() {
		return nil, ErrStopping
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, step := ac.watermark.Enter()
	defer ac.watermark.Leave(step)
	receipts := make([]Receipt, len(submissions))
	entered := make([]int, 0, len(submissions))
	for i := range submissions {
		s := &submissions[i]
		if s.Idempotency != nil {
			if receipts[i].Err = ac.keys.enter(s.Idempotency.ID, s.Idempotency.Fingerprint); receipts[i].Err != nil {
				continue
			}
			defer ac.keys.leave(s.Idempotency.ID)
		}
		entered = append(entered, i)
	}
	if len(entered) == 0 {
		return receipts, nil
	}
	version := ac.cfg.Changes.Version()
	for {
		admitted := make([]admission, len(entered))
		for k, i := range entered {
			admitted[k] = ac.admit(&submissions[i], &receipts[i], now)
		}
		behind, err := ac.store(admitted, version, now)
		if err != nil || !behind {
			return receipts, err
		}
		// Another node has changed the configuration. After CatchUp the index includes every change that was answered before this
		// call, which is all that is promised: the second commit names no version. So a storm of changes delays Submit once.
		if err := ac.cfg.Changes.CatchUp(ctx); err != nil {
			return nil, err
		}
		ac.cfg.Recorder.Rematched(len(admitted))
		version = 0
	}
}

// store stores admissions in one request. It reports whether nothing was stored because the configuration has changed since the
// version by which their receivers were chosen; version 0 is not checked.
func (ac *acceptor) store(admitted []admission, version int64, now time.Time) (behind bool, err error) {
	total := 0
	for k := range admitted {
		total += admitted[k].total
	}
	first := admitted[0].submission
	if total > maxInline && !first.Own {
		if open, _ := ac.fanouts.Open(first.TenantID); open >= ac.cfg.MaxFanouts {
			return false, ErrFanouts
		}
	}
	request := commit.Request{Tenant: first.TenantID, Accepts: make([]store.Accept, len(admitted)), ConfigVersion: version}
	for k := range admitted {
		if total <= maxInline {
			admitted[k].reserve(now)
		} else {
			request.Fanouts = admitted[k].spread(request.Fanouts)
		}
		request.Accepts[k] = admitted[k].accept
	}
	answer := ac.commits.Do(request)
	for k := range admitted {
		a := &admitted[k]
		switch {
		case answer.Err != nil:
			a.abandon(true)
		case answer.Behind:
			a.abandon(false)
		case answer.Existing[k] != nil:
			a.abandon(false)
			*a.receipt = answerRepeat(a.submission, answer.Existing[k])
		default:
			for i := range a.rooms {
				a.rooms[i].Committed(now)
			}
			ac.cfg.Recorder.Submitted(len(a.receipt.Events), a.total)
		}
	}
	if answer.Err == nil && !answer.Behind {
		for _, f := range request.Fanouts {
			ac.fanouts.Add(f)
		}
	}
	return answer.Behind, answer.Err
}

// An admission is a submission that is being stored.
type admission struct {
	submission *Submission
	receipt    *Receipt
	accept     store.Accept
	lanes      [][]*dispatch.Lane     // receivers, by event
	total      int                    // deliveries
	rooms      []dispatch.Reservation // room for the deliveries in their lanes
}

// admit builds the events of a submission and finds their receivers.
func (ac *acceptor) admit(s *Submission, receipt *Receipt, now time.Time) admission {
	receipt.Events = make([]godwit.Event, len(s.Events))
	receipt.Fanout = make([]int, len(s.Events))
	a := admission{
		submission: s, receipt: receipt, lanes: make([][]*dispatch.Lane, len(s.Events)),
		accept: store.Accept{Events: make([]store.NewEvent, len(s.Events))},
	}
	for i := range s.Events {
		p := &s.Events[i]
		receipt.Events[i] = newEvent(p, s.TenantID, s.Principal, now)
		lanes := ac.receivers(&receipt.Events[i], p)
		if p.Key == "" {
			receipt.Events[i].Key = keyFor(lanes)
		}
		receipt.Fanout[i] = len(lanes)
		a.accept.Events[i].Event = &receipt.Events[i]
		a.lanes[i] = lanes
		a.total += len(lanes)
	}
	if s.Idempotency != nil {
		a.accept.Record = &godwit.IdempotencyRecord{
			ID: s.Idempotency.ID, TenantID: s.TenantID, Fingerprint: s.Idempotency.Fingerprint, EventID: receipt.Events[0].ID, CreatedAt: now,
			ExpiresAt: now.Add(ac.cfg.TimeScale.Real(cmp.Or(s.Idempotency.Window, ac.cfg.IdempotencyWindow))),
			Response:  s.Idempotency.Respond(receipt.Events, receipt.Fanout),
		}
	}
	return a
}

func (a *admission) trigger(i int) godwit.Trigger {
	return cmp.Or(a.submission.Events[i].Trigger, godwit.TriggerAccept)
}

// reserve adds the deliveries to their events and reserves room for them in their lanes.
func (a *admission) reserve(now time.Time) {
	a.rooms = make([]dispatch.Reservation, 0, a.total)
	for i, lanes := range a.lanes {
		n := &a.accept.Events[i]
		n.Deliveries = make([]store.NewDelivery, len(lanes))
		for k, l := range lanes {
			room := l.Reserve(n.Event, a.trigger(i), now)
			n.Deliveries[k] = store.NewDelivery{ID: room.ID, EndpointID: l.ID(), Trigger: a.trigger(i), ClaimEpoch: room.Epoch}
			a.rooms = append(a.rooms, room)
		}
	}
}

// spread adds the deliveries to fan-outs. Consecutive events for the same endpoints share one fan-out.
func (a *admission) spread(fanouts []store.Fanout) []store.Fanout {
	for i, lanes := range a.lanes {
		if len(lanes) == 0 {
			continue
		}
		endpoints := make([]godwit.EndpointID, len(lanes))
		for k, l := range lanes {
			endpoints[k] = l.ID()
		}
		id, trigger := a.receipt.Events[i].ID, a.trigger(i)
		if n := len(fanouts); n > 0 {
			last := &fanouts[n-1]
			if last.TenantID == a.submission.TenantID && last.Trigger == trigger && slices.Equal(last.Endpoints, endpoints) {
				last.Events = append(last.Events, id)
				continue
			}
		}
		fanouts = append(fanouts, store.Fanout{
			TenantID: a.submission.TenantID, Events: []godwit.EventID{id}, Endpoints: endpoints, Trigger: trigger,
		})
	}
	return fanouts
}

// abandon releases the reserved room when the commit failed. unknown says that the submission may have been stored all the
// same.
func (a *admission) abandon(unknown bool) {
	for i := range a.rooms {
		a.rooms[i].Abandon(unknown)
	}
}

// newEvent makes the event of a publication and fills in the members that the publisher left out, except the key.
func newEvent(p *Publication, tenant godwit.TenantID, principal godwit.KeyID, now time.Time) godwit.Event {
	event := godwit.Event{
		ID: godwit.NewEventID(now), TenantID: tenant, Type: p.Type, Key: p.Key, ContentType: p.ContentType,
		Body: p.Body, Attributes: p.Attributes, Principal: principal, CreatedAt: now,
		Format: p.Format, SourceID: p.SourceID, OccurredAt: p.OccurredAt, KeptHeaders: p.KeptHeaders, Origin: p.Origin,
	}
	if p.Compose != nil {
		p.Compose(&event)
	}
	return event
}

// receivers returns the lanes that the event of a publication goes to.
func (ac *acceptor) receivers(event *godwit.Event, p *Publication) []*dispatch.Lane {
	if p.Endpoints == nil {
		lanes := ac.lanes.Match(event.TenantID, event)
		if p.Except.IsZero() {
			return lanes
		}
		return slices.DeleteFunc(lanes, func(l *dispatch.Lane) bool { return l.ID() == p.Except })
	}
	var lanes []*dispatch.Lane
	for _, id := range p.Endpoints {
		if l := ac.lanes.TenantLane(event.TenantID, id); l != nil {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// answerRepeat answers a submission whose key was used before.
func answerRepeat(s *Submission, record *godwit.IdempotencyRecord) Receipt {
	switch {
	case record.Fingerprint != s.Idempotency.Fingerprint:
		return Receipt{Err: ErrKeyReused}
	case record.InProgress():
		return Receipt{Err: ErrInProgress}
	}
	return Receipt{Replayed: record.Response, ReplayedEvent: record.EventID}
}

// keyFor makes the key of an event whose producer gave none, in a format that its receivers accept, if they declared one (IKH-RSP-1).
func keyFor(lanes []*dispatch.Lane) string {
	var formats []godwit.KeyFormat
	for _, l := range lanes {
		if f := l.Target().Policy.Key; f != (godwit.KeyFormat{}) {
			formats = append(formats, f)
		}
	}
	return godwit.NewKey(formats...)
}

// NewKey makes the idempotency key that an event's receivers see: a random UUID (EDS-KEY-4).
func NewKey() string { return godwit.NewKey() }
