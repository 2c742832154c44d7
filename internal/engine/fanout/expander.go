// Package fanout stores the deliveries of large fan-outs after their events have been acknowledged.
//
//	Submit ─► events + store.Fanout in one transaction ─► 202
//	                     │
//	                     └─► Expander: a part, a part, … the last part removes the fan-out
//	                             ▲
//	start, poll ─► Run:    fan-outs that a crash or another node left (foreign.go)
//
// One transaction carries a bounded number of deliveries, so that a submission of many events for many endpoints does not
// delay other tenants. The fan-out names all receivers and is as durable as the event: a crash between two parts loses
// nothing, and the store's cursor prevents storing a part twice.
package fanout

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// PartRows is the number of deliveries that one transaction stores.
	PartRows = commit.MaxPart - 16
	retry    = time.Second
)

// Store declares the methods that an expander reads with.
type Store interface {
	Fanouts(ctx context.Context, after godwit.EventID, limit int) ([]store.Fanout, error)
	Fanout(ctx context.Context, id godwit.EventID) (*store.Fanout, error)
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
}

// Config configures an expander.
type Config struct {
	Store   Store
	Commits *commit.Group
	Lanes   *dispatch.Dispatcher
	Clock   clock.Clock
	Log     *slog.Logger
	// Alone reports whether there is no other node, and Owns whether this one has a shard.
	Alone func() bool
	Owns  func(shard int) bool
}

// An Expander works on the fan-outs of all tenants, one per tenant at a time, in order of arrival.
type Expander struct {
	cfg Config

	mu      sync.Mutex
	tenants map[godwit.TenantID][]*work // the first is in progress
	known   map[godwit.EventID]*work    // by fan-out
	events  map[godwit.EventID]*work    // by event

	foreign foreign
	reading chan struct{} // holds an element while the store's list is read
}

// Open returns how many fan-outs of the tenant are open on all nodes, and how many this node works on.
func (x *Expander) Open(tenant godwit.TenantID) (ofTenant, here int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.tenants[tenant]) + x.foreign.tenants[tenant], len(x.known)
}

// work is a fan-out in progress. Its endpoints are nil until its turn: a tenant may have many large fan-outs in line, and
// memory holds only the first one's list.
type work struct {
	store.Fanout
	done chan struct{}
	// event is the event read last.
	event *godwit.Event
}

// NewExpander makes an expander without work.
func NewExpander(cfg Config) *Expander {
	return &Expander{
		cfg: cfg, tenants: map[godwit.TenantID][]*work{}, known: map[godwit.EventID]*work{}, events: map[godwit.EventID]*work{},
		foreign: newForeign(), reading: make(chan struct{}, 1),
	}
}

// Add takes up a stored fan-out, unless it is known. The expander reads missing endpoints when the fan-out's turn comes.
func (x *Expander) Add(f store.Fanout) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known[f.ID()] != nil {
		return
	}
	x.foreign.forget(f.ID())
	w := &work{Fanout: f, done: make(chan struct{})}
	x.known[f.ID()] = w
	for _, id := range f.Events {
		x.events[id] = w
	}
	x.tenants[f.TenantID] = append(x.tenants[f.TenantID], w)
	if len(x.tenants[f.TenantID]) > 1 {
		w.Endpoints = nil
		return
	}
	x.cfg.Lanes.Go(func() { x.run(w) })
}

// WaitUpTo waits like Wait, at most until the limit; it reports whether the event's fan-out is complete.
func (x *Expander) WaitUpTo(ctx context.Context, id godwit.EventID, limit time.Duration) (complete bool, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer x.cfg.Clock.AfterFunc(limit, cancel).Stop()
	if x.Wait(limited, id) == nil {
		return true, nil
	}
	return false, ctx.Err()
}

// run works on a tenant's fan-outs, starting with w, until none are left or the engine stops.
func (x *Expander) run(w *work) {
	for w != nil && x.complete(w) {
		w = x.next(w)
	}
}

// next removes a complete fan-out and returns the tenant's next one. If there is none it returns nil; Add then starts another
// run for the tenant.
func (x *Expander) next(w *work) *work {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.known, w.ID())
	for _, id := range w.Events {
		delete(x.events, id)
	}
	close(w.done)
	line := x.tenants[w.TenantID]
	line[0] = nil
	left := line[1:]
	if len(left) == 0 {
		delete(x.tenants, w.TenantID)
		return nil
	}
	x.tenants[w.TenantID] = left
	return left[0]
}

// complete stores all parts; it reports false when the engine stopped before the end.
func (x *Expander) complete(w *work) bool {
	ctx := x.cfg.Lanes.Base()
	for ctx.Err() == nil {
		switch err := x.step(ctx, w); {
		case errors.Is(err, errComplete):
			return true
		case err != nil:
			if ctx.Err() == nil {
				x.cfg.Log.Error("store a part of a fan-out", "event", w.ID().String(), "done", w.Done, "of", w.Total(), "error", err)
			}
			w.Endpoints = nil // read the cursor again
			if !clock.Wait(ctx, x.cfg.Clock, retry) {
				return false
			}
		}
	}
	return false
}

var errComplete = errors.New("the fan-out is complete")

// step stores the next part.
func (x *Expander) step(ctx context.Context, w *work) error {
	if w.Endpoints == nil {
		if err := x.read(ctx, w); err != nil {
			return err
		}
	}
	accept, rooms, err := x.part(ctx, w)
	if err != nil {
		return err
	}
	answer := x.cfg.Commits.DoInBackground(commit.Request{Tenant: w.TenantID, Accepts: []store.Accept{accept}})
	now := x.cfg.Clock.Now()
	for i := range rooms {
		if answer.Err != nil || answer.Moved {
			rooms[i].Abandon(answer.Err != nil)
		} else {
			rooms[i].Committed(now)
		}
	}
	switch {
	case answer.Err != nil:
		return answer.Err
	case answer.Moved: // by another node, or by a commit whose answer was lost
		return x.read(ctx, w)
	case accept.Part.Last:
		return errComplete
	}
	w.Done = accept.Part.To
	return nil
}

// part builds the next part and reserves room for its deliveries in their lanes.
func (x *Expander) part(ctx context.Context, w *work) (store.Accept, []dispatch.Reservation, error) {
	accept := store.Accept{Part: &store.FanoutPart{ID: w.ID(), From: w.Done}}
	var rooms []dispatch.Reservation
	to, now := w.Done, x.cfg.Clock.Now()
	for left := PartRows; left > 0 && to < w.Total(); {
		event, err := x.eventAt(ctx, w, to/len(w.Endpoints))
		if err != nil {
			abandon(rooms)
			return accept, nil, err
		}
		from := to % len(w.Endpoints)
		n := len(w.Endpoints) - from
		if event != nil {
			n = min(n, left)
			added := store.NewEvent{Event: event}
			for _, id := range w.Endpoints[from : from+n] {
				d := store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: id, Trigger: w.Trigger}
				if l := x.cfg.Lanes.Lane(id); l != nil {
					room := l.Reserve(event, w.Trigger, now)
					d.ID, d.ClaimEpoch = room.ID, room.Epoch
					rooms = append(rooms, room)
				}
				added.Deliveries = append(added.Deliveries, d)
			}
			accept.Events = append(accept.Events, added)
			left -= n
		}
		to += n
	}
	accept.Part.To, accept.Part.Last = to, to == w.Total()
	return accept, rooms, nil
}

func abandon(rooms []dispatch.Reservation) {
	for i := range rooms {
		rooms[i].Abandon(false)
	}
}

// eventAt reads an event of the fan-out; nil when it is not stored.
func (x *Expander) eventAt(ctx context.Context, w *work, i int) (*godwit.Event, error) {
	if w.event != nil && w.event.ID == w.Events[i] {
		return w.event, nil
	}
	event, err := x.cfg.Store.Event(ctx, w.TenantID, w.Events[i])
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	w.event = event
	return event, err
}

// read reads the endpoints and the cursor of the fan-out. It fails with errComplete when the fan-out is not open.
func (x *Expander) read(ctx context.Context, w *work) error {
	w.event = nil // it may have been swept
	f, err := x.cfg.Store.Fanout(ctx, w.ID())
	if errors.Is(err, store.ErrNotFound) {
		return errComplete
	}
	if err != nil {
		return err
	}
	w.Endpoints, w.Done = f.Endpoints, f.Done
	return nil
}
