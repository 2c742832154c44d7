package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// elsewhere is how often the store is asked about deliveries that another node makes: their results are not committed here.
const elsewhere = 250 * time.Millisecond

// Awaited is how far the deliveries of an event have come.
type Awaited struct {
	Deliveries []godwit.Delivery // cancelled ones are left out: nobody waits for those
	// Open counts those without an outcome within the time; Held those among them that will not be tried soon, because
	// their endpoint is paused, disabled or asked for time.
	Open, Held int
}

// waiting are those who wait for results, by event.
type waiting struct {
	n      atomic.Int32
	mu     sync.Mutex
	events map[godwit.EventID][]*waiter
}

type waiter struct {
	mu     sync.Mutex
	news   []godwit.Delivery
	signal chan struct{}
}

func (w *waiting) add(id godwit.EventID) *waiter {
	one := &waiter{signal: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events == nil {
		w.events = map[godwit.EventID][]*waiter{}
	}
	w.events[id] = append(w.events[id], one)
	w.n.Add(1)
	return one
}

func (w *waiting) remove(id godwit.EventID, one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.Add(-1)
	list := w.events[id]
	for i := range list {
		if list[i] == one {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(w.events, id)
	} else {
		w.events[id] = list
	}
}

// tell passes the new state of a delivery on; it costs an atomic read when nobody waits.
func (w *waiting) tell(d *godwit.Delivery) { w.wake(d.EventID, d) }

// wake has those who wait for an event look again, and passes news on where there are any.
func (w *waiting) wake(id godwit.EventID, news ...*godwit.Delivery) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.events[id] {
		one.mu.Lock()
		for _, d := range news {
			one.news = append(one.news, *d)
		}
		one.mu.Unlock()
		signal(one.signal)
	}
}

func (w *waiter) take() []godwit.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.news
	w.news = nil
	return news
}

// Await waits until every delivery of an event has an outcome, but no longer than the limit: it is finished, or was tried
// more often than since tells. Outcomes come from the commit that stores them; the store is read at the beginning, at the
// limit, and in between only for deliveries that another node makes. The error is that of the context, or of the store.
func (e *Engine) Await(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, since map[godwit.DeliveryID]int, limit time.Duration) (*Awaited, error) {
	one := e.waiting.add(id) // before reading: nothing falls between
	defer e.waiting.remove(id, one)
	late := make(chan struct{})
	until := e.clock.Now().Add(limit)
	timer := e.clock.AfterFunc(limit, func() { close(late) })
	defer timer.Stop()
	state := progress{engine: e, since: since, until: until, byID: map[godwit.DeliveryID]known{}}
	if err := state.read(ctx, tenant, id); err != nil {
		return nil, err
	}
	for {
		awaited, ask := state.sum()
		if awaited.Held > 0 && state.learn(true, one.take()...) {
			continue // what its lane does not hold any more was told before
		}
		if awaited.Open == awaited.Held {
			return awaited, nil
		}
		switch news, err := e.hear(ctx, one, late, ask); {
		case err != nil:
			return nil, err
		case news == heardResult:
			state.doubt = !state.learn(true, one.take()...) || state.doubt
		case news == heardLate:
			if state.read(ctx, tenant, id) == nil { // what was cancelled meanwhile, or made by another node, was not told here
				awaited, _ = state.sum()
			}
			return awaited, nil
		default:
			if err := state.read(ctx, tenant, id); err != nil {
				return nil, err
			}
		}
	}
}

// What ends a wait for news.
type heard int

const (
	heardResult heard = iota
	heardLate
	heardNothing // it is time to ask the store
)

func (e *Engine) hear(ctx context.Context, one *waiter, late <-chan struct{}, ask bool) (heard, error) {
	var due chan struct{}
	if ask {
		due = make(chan struct{})
		defer e.clock.AfterFunc(elsewhere, func() { close(due) }).Stop()
	}
	select {
	case <-one.signal:
		return heardResult, nil
	case <-late:
		return heardLate, nil
	case <-due:
		return heardNothing, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// progress is what is known of an event's deliveries.
type progress struct {
	engine *Engine
	since  map[godwit.DeliveryID]int
	until  time.Time
	order  []godwit.DeliveryID
	byID   map[godwit.DeliveryID]known
	doubt  bool // something happened that was not told: a result of ours was refused
}

// known is a delivery as it was told by a commit, or read.
type known struct {
	godwit.Delivery
	told bool
}

func (p *progress) read(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) error {
	list, err := p.engine.deliveriesOf(ctx, tenant, id)
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	for i := range list {
		p.meet(ctx, &list[i])
	}
	p.learn(false, list...)
	return nil
}

// meet gets to know the endpoint of a delivery that another node has made: it may have been registered there.
func (p *progress) meet(ctx context.Context, d *godwit.Delivery) {
	if _, before := p.byID[d.ID]; before || d.Status != godwit.DeliveryPending || p.engine.index.lane(d.EndpointID) != nil {
		return
	}
	if err := p.engine.Changed(ctx, d.EndpointID); err != nil {
		p.engine.log.Error("load endpoint that is waited for", "endpoint", d.EndpointID.String(), "error", err)
	}
}

// learn believes what is newer: a read may be older than a result that came meanwhile. It reports whether there was anything.
func (p *progress) learn(told bool, list ...godwit.Delivery) bool {
	for _, d := range list {
		before, ok := p.byID[d.ID]
		if !ok {
			p.order = append(p.order, d.ID)
		}
		if !ok || d.Attempts > before.Attempts || d.Attempts == before.Attempts && !d.UpdatedAt.Before(before.UpdatedAt) {
			p.byID[d.ID] = known{d, told || before.told && before.Attempts == d.Attempts}
		}
	}
	return len(list) > 0
}

// sum counts, and tells whether the store has to be asked about some of what is open: another node makes it, or it was read
// between two attempts of which the second follows at once, which is the one that counts.
func (p *progress) sum() (a *Awaited, ask bool) {
	a = &Awaited{}
	now := p.engine.clock.Now()
	for _, id := range p.order {
		d := p.byID[id]
		if d.Status == godwit.DeliveryCancelled {
			continue
		}
		a.Deliveries = append(a.Deliveries, d.Delivery)
		l := p.engine.index.lane(d.EndpointID)
		ours := l != nil && p.engine.leases.epochOf(d.EndpointID.Shard(), now) != 0
		tried := d.Attempts > p.since[id]
		if d.Status != godwit.DeliveryPending || tried && (d.told || !ours || !l.holds(id)) {
			continue
		}
		a.Open++
		switch {
		case l == nil:
			a.Held++
		case !ours || tried || p.doubt: // whether another node's endpoint is at rest is not known here
			ask = true
		case l.awayUntil(id).After(p.until):
			a.Held++
		}
	}
	return a, ask
}

// holds reports whether the delivery has a place in the window.
func (l *lane) holds(id godwit.DeliveryID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.held[id]
	return ok
}

// never is further away than anybody waits.
var never = time.Unix(1<<40, 0)

// awayUntil is before when a delivery is not sent to the endpoint, as far as that is known. One that is on the wire, or whose
// result is being stored, is not held by what that very result may have brought about.
func (l *lane) awayUntil(id godwit.DeliveryID) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.held[id]; ok && h.state != heldQueued {
		return time.Time{}
	}
	if l.target.Load().endpoint.Status != godwit.EndpointActive {
		return never
	}
	until := l.health.HoldUntil
	if !l.health.CircuitOpenAt.IsZero() && l.health.ProbeAt.After(until) {
		until = l.health.ProbeAt
	}
	return until
}

// Again makes what is left of an event due at once, because its upstream delivered it once more, and tells how often each
// delivery was tried before. What was accepted is not sent again, also when that happens at this moment. What was refused for
// good is only when nothing else is left: then the upstream was told so, and asks all the same; else it repeats for the
// others' sake (EDS T-15, T-28). An event that went nowhere goes to whom it is for now.
func (e *Engine) Again(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, actor string) (since map[godwit.DeliveryID]int, err error) {
	list, err := e.deliveriesOf(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	since = make(map[godwit.DeliveryID]int, len(list))
	var left, refused []godwit.DeliveryID
	live, accepted := 0, 0
	for i := range list {
		d := &list[i]
		since[d.ID] = d.Attempts
		switch d.Status {
		case godwit.DeliveryCancelled:
			continue
		case godwit.DeliveryAccepted:
			accepted++
		case godwit.DeliveryTerminal:
			refused = append(refused, d.ID)
		case godwit.DeliveryPending, godwit.DeliveryExhausted:
			asked, err := e.askedToWait(ctx, d)
			if err != nil {
				return nil, err
			}
			if !asked {
				left = append(left, d.ID)
			}
		}
		live++
	}
	again := store.Requeue{TenantID: tenant, Deliveries: left, Trigger: godwit.TriggerManual, Actor: actor, Now: e.clock.Now(),
		Only: []godwit.DeliveryStatus{godwit.DeliveryPending, godwit.DeliveryExhausted}}
	switch {
	case live == 0:
		return since, e.offer(ctx, tenant, id)
	case len(refused)+accepted == live:
		again.Deliveries, again.Only = refused, []godwit.DeliveryStatus{godwit.DeliveryTerminal}
	}
	if len(again.Deliveries) == 0 {
		return since, nil
	}
	_, err = e.requeue(ctx, again)
	return since, err
}

// offer gives an event that went nowhere to whom it is for now. What was cancelled stays cancelled: its endpoint is gone, or
// a person decided so. Of two that offer the same event at once, one is told to come again (ErrInProgress).
func (e *Engine) offer(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) error {
	name := sha256.Sum256(append([]byte("offer "), id[:]...))
	if err := e.keys.enter(name, name); err != nil {
		return err
	}
	defer e.keys.leave(name)
	event, err := e.store.Event(ctx, tenant, id)
	if err != nil {
		return err
	}
	list, err := e.deliveriesOf(ctx, tenant, id) // anew: another one may just have offered it
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	lanes := slices.DeleteFunc(e.receivers(tenant, &Publication{Type: event.Type, Attributes: event.Attributes}), func(l *lane) bool {
		return slices.ContainsFunc(list, func(d godwit.Delivery) bool { return d.EndpointID == l.id })
	})
	_, err = e.addDeliveries(ctx, event, lanes)
	return err
}

// askedToWait reports a delivery whose receiver asked for time that is not over. An upstream's haste does not shorten it
// (EDS-INT-4), also not when the time asked for was more than the delivery had. A hold of the whole endpoint is the lane's
// matter.
func (e *Engine) askedToWait(ctx context.Context, d *godwit.Delivery) (bool, error) {
	l := e.index.lane(d.EndpointID)
	if d.Attempts == 0 || l == nil || l.target.Load().policy.HoldScope != godwit.HoldEvent {
		return false, nil
	}
	attempts, err := e.store.Attempts(ctx, d.TenantID, d.ID)
	if err != nil {
		return false, fmt.Errorf("read attempts: %w", err)
	}
	if len(attempts) == 0 {
		return false, nil
	}
	last := &attempts[len(attempts)-1]
	wait := e.cfg.TimeScale.Real(min(last.Verdict.RetryAfter, l.target.Load().policy.MaxElapsed))
	return e.clock.Now().Before(last.StartedAt.Add(last.Duration + wait)), nil
}
