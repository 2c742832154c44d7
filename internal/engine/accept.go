package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// place is a spot kept in a lane for a delivery that is being committed.
type place struct {
	lane  *lane
	item  *item
	id    godwit.DeliveryID
	event *godwit.Event
	epoch int64 // 0: none was free, it goes through the store
}

// admission is a submission that is being stored, with the places kept for its deliveries.
type admission struct {
	i      int // which one it is
	places []place
}

// Submit accepts events: when it returns without error, every submission without an Err of its own is durable and on its
// way. All are stored in one transaction. On error nothing is known to be stored; the caller may repeat it with the same
// key.
func (e *Engine) Submit(ctx context.Context, submissions ...Submission) ([]Receipt, error) {
	if !e.running() {
		return nil, ErrStopping
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, slot := e.settles.enter(e.clock)
	defer e.settles.leave(slot)
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
		accept, places := e.prepareAccept(s, &receipts[i], now)
		accepts, admitted = append(accepts, accept), append(admitted, admission{i, places})
	}
	if len(accepts) == 0 {
		return receipts, nil
	}
	done := e.commits.accept(accepts)
	for k, a := range admitted {
		switch {
		case done.err != nil:
			e.abandon(a.places, true)
		case done.existing[k] != nil:
			e.abandon(a.places, false)
			receipts[a.i] = answerRepeat(&submissions[a.i], done.existing[k])
		default:
			e.hand(a.places, now)
			e.cfg.Recorder.Submitted(len(receipts[a.i].Events), len(a.places))
		}
	}
	return receipts, done.err
}

// prepareAccept builds the events and their fan-out, and keeps places for the deliveries.
func (e *Engine) prepareAccept(s *Submission, receipt *Receipt, now time.Time) (store.Accept, []place) {
	receipt.Events = make([]godwit.Event, len(s.Events))
	receipt.Fanout = make([]int, len(s.Events))
	accept := store.Accept{Events: make([]store.NewEvent, len(s.Events))}
	var places []place
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
			pl := e.keepPlace(l, event, trigger, now)
			accept.Events[i].Deliveries[k] = store.NewDelivery{ID: pl.id, EndpointID: l.id, Trigger: trigger, ClaimEpoch: pl.epoch}
			places = append(places, pl)
		}
	}
	if s.Idempotency != nil {
		accept.Record = &godwit.IdempotencyRecord{
			ID: s.Idempotency.ID, TenantID: s.TenantID, Fingerprint: s.Idempotency.Fingerprint, CreatedAt: now,
			ExpiresAt: now.Add(e.cfg.TimeScale.Real(cmp.Or(s.Idempotency.Window, e.cfg.IdempotencyWindow))),
			Response:  s.Idempotency.Respond(receipt.Events, receipt.Fanout),
		}
	}
	return accept, places
}

// newEvent makes the event of a publication, with what its publisher left to us.
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

func (e *Engine) receivers(tenant godwit.TenantID, p *Publication) []*lane {
	if p.Endpoints == nil {
		return e.index.match(tenant, p.Type, p.Attributes)
	}
	var lanes []*lane
	for _, id := range p.Endpoints {
		if l := e.index.lane(id); l != nil && l.target.Load().endpoint.TenantID == tenant {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

func (e *Engine) keepPlace(l *lane, event *godwit.Event, trigger godwit.Trigger, now time.Time) place {
	id := godwit.NewDeliveryID(now)
	pl := place{lane: l, id: id, event: event, epoch: l.reserve(id, len(event.Body), now)}
	if pl.epoch != 0 {
		pl.item = &item{epoch: pl.epoch, trigger: trigger, work: godwit.Work{Event: event, Delivery: godwit.NewDelivery(id, event, l.id, trigger, now)}}
	}
	return pl
}

// hand passes committed deliveries to their lanes.
func (e *Engine) hand(places []place, now time.Time) {
	for i := range places {
		if places[i].epoch != 0 {
			places[i].lane.committed(places[i].item)
		} else {
			places[i].lane.overflowed(now)
		}
	}
}

// abandon gives up the places of a submission that was not stored, or may have been: unknown says which.
func (e *Engine) abandon(places []place, unknown bool) {
	for i := range places {
		switch {
		case places[i].epoch != 0:
			places[i].lane.unreserve(places[i].id, unknown)
		case unknown:
			places[i].lane.noteDue(e.clock.Now())
		}
	}
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

// forReceivers gives a publication that comes without a key one in a form that its receivers take, where they have told
// theirs (IKH-RSP-1).
func (p *Publication) forReceivers(lanes []*lane) *Publication {
	var formats []godwit.KeyFormat
	for _, l := range lanes {
		if f := l.target.Load().policy.Key; f != (godwit.KeyFormat{}) {
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

// MintKey makes the idempotency key of an event for whoever receives it: a random UUID (EDS-KEY-4, T-29).
func MintKey() string { return godwit.NewKey() }
