package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// admission is a submission that is being stored, with the room reserved for its deliveries.
type admission struct {
	i     int // index of the submission
	rooms []dispatch.Reservation
}

// Submit accepts events: when it returns without error, every submission without an Err of its own is durable and on its
// way. All are stored in one transaction. On error nothing is known to be stored; the caller may repeat it with the same
// key.
func (e *Engine) Submit(ctx context.Context, submissions ...Submission) ([]Receipt, error) {
	if !e.lanes.Running() {
		return nil, ErrStopping
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, step := e.watermark.Enter()
	defer e.watermark.Leave(step)
	receipts := make([]Receipt, len(submissions))
	accepts := make([]store.Accept, 0, len(submissions))
	admitted := make([]admission, 0, len(submissions))
	for i := range submissions {
		s := &submissions[i]
		if s.Idempotency != nil {
			if receipts[i].Err = e.keys.enter(s.Idempotency.ID, s.Idempotency.Fingerprint); receipts[i].Err != nil {
				continue
			}
			defer e.keys.leave(s.Idempotency.ID)
		}
		accept, rooms := e.prepareAccept(s, &receipts[i], now)
		accepts, admitted = append(accepts, accept), append(admitted, admission{i, rooms})
	}
	if len(accepts) == 0 {
		return receipts, nil
	}
	answer := e.commits.Do(commit.Request{Tenant: submissions[0].TenantID, Accepts: accepts})
	for k, a := range admitted {
		switch {
		case answer.Err != nil:
			abandon(a.rooms, true)
		case answer.Existing[k] != nil:
			abandon(a.rooms, false)
			receipts[a.i] = answerRepeat(&submissions[a.i], answer.Existing[k])
		default:
			for i := range a.rooms {
				a.rooms[i].Committed(now)
			}
			e.cfg.Recorder.Submitted(len(receipts[a.i].Events), len(a.rooms))
		}
	}
	return receipts, answer.Err
}

// abandon gives up the room of a submission that was not stored, or may have been: unknown says which.
func abandon(rooms []dispatch.Reservation, unknown bool) {
	for i := range rooms {
		rooms[i].Abandon(unknown)
	}
}

// prepareAccept builds the events and their fan-out, and reserves room for the deliveries.
func (e *Engine) prepareAccept(s *Submission, receipt *Receipt, now time.Time) (store.Accept, []dispatch.Reservation) {
	receipt.Events = make([]godwit.Event, len(s.Events))
	receipt.Fanout = make([]int, len(s.Events))
	accept := store.Accept{Events: make([]store.NewEvent, len(s.Events))}
	var rooms []dispatch.Reservation
	for i := range s.Events {
		p := &s.Events[i]
		event := &receipt.Events[i]
		lanes := e.receivers(s.TenantID, p)
		if p.Key == "" {
			p = p.forReceivers(lanes)
		}
		*event = newEvent(p, s.TenantID, s.Principal, now)
		trigger := p.Trigger
		if trigger == "" {
			trigger = godwit.TriggerAccept
		}
		receipt.Fanout[i] = len(lanes)
		accept.Events[i] = store.NewEvent{Event: event, Deliveries: make([]store.NewDelivery, len(lanes))}
		for k, l := range lanes {
			room := l.Reserve(event, trigger, now)
			accept.Events[i].Deliveries[k] = store.NewDelivery{ID: room.ID, EndpointID: l.ID(), Trigger: trigger, ClaimEpoch: room.Epoch}
			rooms = append(rooms, room)
		}
	}
	if s.Idempotency != nil {
		accept.Record = &godwit.IdempotencyRecord{
			ID: s.Idempotency.ID, TenantID: s.TenantID, Fingerprint: s.Idempotency.Fingerprint, CreatedAt: now,
			ExpiresAt: now.Add(e.cfg.TimeScale.Real(cmp.Or(s.Idempotency.Window, e.cfg.IdempotencyWindow))),
			Response:  s.Idempotency.Respond(receipt.Events, receipt.Fanout),
		}
	}
	return accept, rooms
}

// newEvent makes the event of a publication, with the members that its publisher left out.
func newEvent(p *Publication, tenant godwit.TenantID, principal godwit.KeyID, now time.Time) godwit.Event {
	event := godwit.Event{
		ID: godwit.NewEventID(now), TenantID: tenant, Type: p.Type, Key: p.Key, ContentType: p.ContentType,
		Body: p.Body, Attributes: p.Attributes, Principal: principal, CreatedAt: now,
		Format: p.Format, SourceID: p.SourceID, OccurredAt: p.OccurredAt, KeptHeaders: p.KeptHeaders, Origin: p.Origin,
	}
	if event.Key == "" {
		event.Key = MintKey()
	}
	if p.Compose != nil {
		p.Compose(&event)
	}
	return event
}

// receivers are the lanes that a publication is for.
func (e *Engine) receivers(tenant godwit.TenantID, p *Publication) []*dispatch.Lane {
	if p.Endpoints == nil {
		return e.lanes.Match(tenant, p.Type, p.Attributes)
	}
	var lanes []*dispatch.Lane
	for _, id := range p.Endpoints {
		if l := e.lanes.TenantLane(tenant, id); l != nil {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// answerRepeat answers a submission whose key was there before.
func answerRepeat(s *Submission, record *godwit.IdempotencyRecord) Receipt {
	switch {
	case record.Fingerprint != s.Idempotency.Fingerprint:
		return Receipt{Err: ErrKeyReused}
	case record.InProgress():
		return Receipt{Err: ErrInProgress}
	}
	return Receipt{Replayed: record.Response}
}

// forReceivers gives a publication that comes without a key one in a form that its receivers accept, where they have told
// theirs (IKH-RSP-1).
func (p *Publication) forReceivers(lanes []*dispatch.Lane) *Publication {
	var formats []godwit.KeyFormat
	for _, l := range lanes {
		if f := l.Target().Policy.Key; f != (godwit.KeyFormat{}) {
			formats = append(formats, f)
		}
	}
	if formats == nil {
		return p
	}
	own := *p
	own.Key = godwit.NewKey(formats...)
	return &own
}

// MintKey makes the idempotency key that an event's receivers see: a random UUID (EDS-KEY-4).
func MintKey() string { return godwit.NewKey() }
