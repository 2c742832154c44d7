package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// A lane is the part of an endpoint that lives in memory.
type lane struct {
	engine *Engine
	id     godwit.EndpointID
	target atomic.Pointer[target] // what the endpoint is now; replaced whole on change

	inLine bool // guarded by slots.mu
	waits  bool // stands in the line of its account; guarded by account.mu

	mu       sync.Mutex
	health   godwit.Health
	limiter  *rate.Limiter
	windows  *rateWindows                  // nil: none
	account  *account                      // nil: it has no part in one
	queue    []*item                       // claimed and ready, in order
	held     map[godwit.DeliveryID]holding // everything that has a place in the window
	bytes    int64                         // of the payloads held
	inFlight int
	overflow bool      // something found no place: newcomers queue behind it in the store
	nextDue  time.Time // earliest unclaimed delivery in the store that is known of
	refill   bool      // a claim is under way
	suspect  bool      // a store answer was lost: claims may be stored that memory does not know
	taking   bool      // such claims are being taken back: no new ones may be made meanwhile
	timer    clock.Timer
	timerAt  time.Time
	strikes  godwit.EventID // last event that ended terminal, so that one event counts once
	enabling *godwit.Notice // tells that the endpoint is set free by itself, while that is being stored
}

// A holding is a place in the window. The item tells whose it is: a delivery that went back to the store may have been
// claimed anew before its former holder has heard that it is stored.
type holding struct {
	item  *item // nil while the commit is under way
	state heldState
	size  int
}

type heldState uint8

const (
	heldReserved heldState = iota // its commit is under way
	heldQueued
	heldInFlight
	heldRecording
)

// An item is a claimed delivery on its way through a lane.
type item struct {
	work    godwit.Work
	epoch   int64
	trigger godwit.Trigger // of the coming attempt
	moves   int            // permanent redirects since it was claimed
	attempt godwit.AttemptID
	signer  profile.Signer // of the attempt
	budget  profile.Budget // what was left of the endpoint's allowance when it was started
}

func (e *Engine) newLane(l *store.LoadedEndpoint) *lane {
	ln := &lane{engine: e, id: l.Endpoint.ID, health: l.Health, held: map[godwit.DeliveryID]holding{}}
	ln.health.EndpointID = l.Endpoint.ID
	t := e.newTarget(l)
	ln.target.Store(t)
	ln.limiter = newLimiter(&t.policy)
	ln.windows = newRateWindows(&t.policy, e.cfg.TimeScale, nil)
	ln.account = e.account(t)
	return ln
}

func newLimiter(p *godwit.Policy) *rate.Limiter {
	if p.Rate == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(p.Rate), max(p.Burst, 1))
}

// reserve keeps a place for a new delivery, and tells under which epoch it is claimed. Without a place it waits in the
// store.
func (l *lane) reserve(id godwit.DeliveryID, size int, now time.Time) (epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch = l.engine.leases.epochOf(l.id.Shard(), now)
	if epoch == 0 || l.overflow || l.taking || l.room(now) <= 0 || !l.engine.running() {
		return 0
	}
	l.hold(id, holding{state: heldReserved, size: size})
	return epoch
}

func (l *lane) hold(id godwit.DeliveryID, h holding) {
	l.weigh(h.size - l.held[id].size)
	l.held[id] = h
}

// holdItem keeps or changes the place of a claimed delivery.
func (l *lane) holdItem(it *item, state heldState) {
	l.hold(it.work.Delivery.ID, holding{item: it, state: state, size: len(it.work.Event.Body)})
}

// drop frees a place, if it is still the item's.
func (l *lane) drop(id godwit.DeliveryID, it *item) {
	if h, ok := l.held[id]; ok && h.item == it {
		delete(l.held, id)
		l.weigh(-h.size)
	}
}

func (l *lane) weigh(bytes int) {
	l.bytes += int64(bytes)
	l.engine.heldB.Add(int64(bytes))
}

// room is how many more deliveries may be in memory. An endpoint that is not being sent to needs only what a probe takes,
// and when memory runs short every lane lives on little.
func (l *lane) room(now time.Time) int {
	window := l.engine.cfg.Window
	switch {
	case l.target.Load().endpoint.Status != godwit.EndpointActive:
		window = 0
	case !l.health.CircuitOpenAt.IsZero():
		window = 1
	case now.Before(l.health.HoldUntil), l.engine.heldB.Load() > l.engine.cfg.MaxHeldBytes,
		l.bytes > l.engine.cfg.MaxHeldBytes/laneShare:
		window = 8
	case l.health.ConsecutiveFailures > 0:
		window = min(window, 4*l.concurrency())
	}
	return window - len(l.held)
}

// laneShare is the part of the memory for payloads that one lane may fill, so that a slow endpoint with large events does
// not leave all others with little.
const laneShare = 2

// concurrency is how many requests may be in flight: halved with every failure in a row, down to one, so that an
// endpoint in trouble gets relief and a hanging one ties up little.
func (l *lane) concurrency() int {
	c := l.target.Load().policy.Concurrency
	return max(c>>min(l.health.ConsecutiveFailures, 30), 1)
}

// committed turns a reservation into queued work.
func (l *lane) committed(it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holdItem(it, heldQueued)
	l.queue = append(l.queue, it)
	l.shedIfAtRest()
	l.pump()
}

// noteDue says that the store holds unclaimed work of this endpoint, due at t.
func (l *lane) noteDue(t time.Time) {
	if t.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextDue = earliest(l.nextDue, t)
	l.pump()
}

// overflowed says that a new delivery found no place and waits in the store.
func (l *lane) overflowed(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overflow = true
	l.nextDue = earliest(l.nextDue, now)
	l.cancelIfDeleted()
	l.pump()
}

// unreserve gives a place back after a commit that did not store its delivery, or may have: unknown says which.
func (l *lane) unreserve(id godwit.DeliveryID, unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(id, nil)
	if unknown {
		l.doubt()
		return
	}
	l.pump() // the place may be what a claim waited for
}

// lost gives up a claimed delivery whose result can never be stored. Its claim is taken back, and it is tried again.
func (l *lane) lost(it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(it.work.Delivery.ID, it)
	l.doubt()
}

// doubt says that the store may hold claims which memory does not know. Called with the lane locked.
func (l *lane) doubt() {
	l.suspect = true
	l.nextDue = earliest(l.nextDue, l.engine.clock.Now())
	l.wakeAt(l.engine.clock.Now().Add(storeRetry))
}

const storeRetry = time.Second

func (l *lane) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pump()
}

func (e *Engine) wakeAll() { e.index.each((*lane).wake) }

// pump starts what may be started and refills the window when it runs low. Called with the lane locked.
func (l *lane) pump() {
	if !l.engine.running() {
		return
	}
	now := l.engine.clock.Now()
	l.attend(now)
	l.expireFirst(now)
	for l.mayStart(now) && l.take(now, false) {
		l.start(now)
	}
	l.refillIfLow(now)
}

// take gets what a start needs besides the lane's own leave: a slot, and a part of the account's allowance where it has
// one. Turn says that the account has called the lane.
func (l *lane) take(now time.Time, turn bool) bool {
	if l.account == nil {
		return l.engine.slots.take(l)
	}
	return l.account.take(l, now, turn, func() bool { return l.engine.slots.take(l) })
}

// granted uses a slot that came to this lane by turn; it reports whether it did.
func (l *lane) granted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.engine.clock.Now()
	if !l.mayStart(now) || l.account != nil && !l.account.take(l, now, false, nil) {
		l.refillIfLow(now)
		return false
	}
	l.start(now)
	l.pump() // for the next one it stands in line again
	return true
}

// expireFirst gives up what ran out of time at the head of the queue, behind a long hold for instance.
func (l *lane) expireFirst(now time.Time) {
	for len(l.queue) > 0 && l.engine.outOfTime(l.target.Load(), &l.queue[0].work.Delivery, now) {
		it := l.next()
		l.holdItem(it, heldRecording)
		l.engine.expire(l, it, now)
	}
}

// mayStart reports whether the next delivery may go out now; if only time is missing, the lane is woken then. It takes
// nothing from the rate: there may be no slot.
func (l *lane) mayStart(now time.Time) bool {
	if !l.mayStartIgnoringRate(now) {
		return false
	}
	var wait time.Duration
	if l.limiter != nil {
		r := l.limiter.ReserveN(now, 1)
		wait = r.DelayFrom(now)
		r.CancelAt(now)
	}
	if l.windows != nil {
		wait = max(wait, l.windows.free()-l.engine.since(now))
	}
	if wait > 0 {
		l.wakeAt(now.Add(wait))
		return false
	}
	return true
}

func (l *lane) mayStartIgnoringRate(now time.Time) bool {
	if len(l.queue) == 0 || l.inFlight >= l.concurrency() || !l.open(now) {
		return false
	}
	// A claim made under an older epoch is no longer ours to send.
	return l.queue[0].epoch == l.engine.leases.epochOf(l.id.Shard(), now)
}

// open reports whether the endpoint may be sent to at all now.
func (l *lane) open(now time.Time) bool {
	switch h := &l.health; {
	case !l.engine.running() || l.target.Load().endpoint.Status != godwit.EndpointActive:
		return false
	case now.Before(h.HoldUntil):
		l.wakeAt(h.HoldUntil)
		return false
	case h.CircuitOpenAt.IsZero():
		return true
	case now.Before(h.ProbeAt):
		l.wakeAt(h.ProbeAt)
		return false
	default:
		return l.inFlight == 0 // one probe at a time
	}
}

func (l *lane) start(now time.Time) {
	it := l.next()
	if l.limiter != nil {
		l.limiter.AllowN(now, 1)
	}
	if l.windows != nil {
		at := l.engine.since(now)
		l.windows.take(at)
		it.budget = l.windows.budget(at, now)
	}
	l.inFlight++
	l.holdItem(it, heldInFlight)
	l.engine.attempts.Add(1)
	l.engine.workers.do(job{l, it})
}

// next takes the first delivery out of the queue.
func (l *lane) next() *item {
	it := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return it
}

// finished takes an attempt off the wire. The delivery keeps its place until its result is recorded.
func (l *lane) finished(it *item) {
	l.mu.Lock()
	l.inFlight--
	if l.held[it.work.Delivery.ID].item == it {
		l.holdItem(it, heldRecording)
	}
	l.pump()
	l.mu.Unlock()
}

// recorded frees the place of a delivery whose result is stored, or puts it in front when it is to be tried at once.
func (l *lane) recorded(it *item, next *godwit.Delivery, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if again {
		it.work.Delivery = *next
		l.holdItem(it, heldQueued)
		l.queue = append([]*item{it}, l.queue...)
		l.shedIfAtRest()
	} else {
		l.drop(next.ID, it)
		if next.Status == godwit.DeliveryPending {
			l.nextDue = earliest(l.nextDue, next.DueAt)
			l.cancelIfDeleted()
		}
	}
	l.pump()
}

// refused forgets a delivery whose result the store did not take: it belongs to someone else, or is gone, or was stored by
// a commit whose answer was lost. In that case the store knows when it is due.
func (l *lane) refused(it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(it.work.Delivery.ID, it)
	l.nextDue = earliest(l.nextDue, l.engine.clock.Now())
	l.pump()
}

// dropForeign forgets what was claimed under another epoch than the shard's. A lease that has merely run out is still ours
// until someone else takes it, and so are the claims under it.
func (l *lane) dropForeign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch := l.engine.leases.owned(l.id.Shard())
	kept := l.queue[:0]
	for _, it := range l.queue {
		if it.epoch == epoch {
			kept = append(kept, it)
			continue
		}
		l.drop(it.work.Delivery.ID, it)
	}
	if len(kept) == len(l.queue) {
		return
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.nextDue = earliest(l.nextDue, l.engine.clock.Now())
	l.pump()
}

// shed gives queued deliveries back to the store when the endpoint stops being sent to, so that they cost rows and not
// memory. Those of a deleted endpoint end there. Called with the lane locked.
func (l *lane) shed() {
	keep := 0
	status := l.target.Load().endpoint.Status
	if status == godwit.EndpointActive {
		keep = 1 // for the probe
	}
	if len(l.queue) <= keep {
		return
	}
	back := append([]*item(nil), l.queue[keep:]...)
	clear(l.queue[keep:])
	l.queue = l.queue[:keep]
	for _, it := range back {
		l.holdItem(it, heldRecording)
		if status == godwit.EndpointDeleted {
			l.engine.cancel(l, it)
		} else {
			l.engine.commits.release(l, it, nil)
		}
	}
}

// shedIfAtRest gives back what came into the queue after the endpoint was paused, disabled or deleted.
func (l *lane) shedIfAtRest() {
	if l.target.Load().endpoint.Status != godwit.EndpointActive {
		l.shed()
	}
}

// wakeAt pumps the lane at t, unless it is woken earlier anyway.
func (l *lane) wakeAt(t time.Time) {
	if l.timer != nil {
		if !l.timerAt.After(t) {
			return
		}
		l.timer.Stop()
	}
	l.timerAt = t
	var timer clock.Timer
	timer = l.engine.clock.AfterFunc(max(t.Sub(l.engine.clock.Now()), 0), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.timer == timer {
			l.timer = nil
		}
		l.pump()
	})
	l.timer = timer
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
