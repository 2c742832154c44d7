package dispatch

import (
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Lane is the in-memory part of an endpoint.
type Lane struct {
	d  *Dispatcher
	id godwit.EndpointID
	view

	inSlotLine    bool // guarded by slots.mu
	inAccountLine bool // guarded by account.mu

	mu        sync.Mutex
	condition condition
	pace      pace
	account   *account // nil: its policy has no account limit
	window    window
	backlog   backlog
	alarm     alarm
	reenabler reenabler
}

func (d *Dispatcher) newLane(loaded *store.LoadedEndpoint) *Lane {
	l := &Lane{d: d, id: loaded.Endpoint.ID, condition: condition{Health: loaded.Health}}
	l.maker = d.cfg.Maker
	l.condition.EndpointID = l.id
	l.window = window{total: &d.held, shard: &d.busy[l.id.Shard()]}
	l.backlog.lane, l.reenabler.lane, l.alarm.lane = l, l, l
	t := d.cfg.Maker.Target(loaded)
	l.target.Store(t)
	l.pace.follow(t.Policy, &d.times)
	l.account = d.accounts.of(t)
	return l
}

// ID returns the endpoint's id.
func (l *Lane) ID() godwit.EndpointID { return l.id }

// epoch returns the epoch of the lease under which this node may send for the endpoint now, or 0.
func (l *Lane) epoch() int64 { return l.d.cfg.Shards.Epoch(l.id.Shard()) }

// room returns how many more deliveries the lane may hold. An endpoint that gets no deliveries needs one to probe it with;
// when memory is short every lane holds only a few.
func (l *Lane) room(now time.Time) int {
	size := l.d.cfg.Window
	switch h := &l.condition; {
	case !l.active():
		size = 0
	case !h.CircuitOpenAt.IsZero():
		size = 1
	case now.Before(h.HoldUntil), l.d.memoryShort(), l.window.bytes > l.d.cfg.MaxHeldBytes/laneShare:
		size = smallWindow
	case h.ConsecutiveFailures > 0:
		size = min(size, 4*l.concurrency())
	}
	return size - len(l.window.held)
}

const (
	smallWindow = 8
	// laneShare divides the memory for payloads: one lane may fill 1/laneShare of it, so that a slow endpoint with large
	// events leaves room for others.
	laneShare = 2
)

// concurrency returns how many requests may be in flight. Each failure in a row halves it, down to one, so that a failing
// endpoint gets less load and a hanging one blocks few slots.
func (l *Lane) concurrency() int {
	return max(l.Target().Policy.Concurrency>>min(l.condition.ConsecutiveFailures, 30), 1)
}

// NoteDue says that the store holds an unclaimed delivery of this endpoint, due at t. The zero time means none.
func (l *Lane) NoteDue(t time.Time) {
	if t.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.note(t)
	l.tellOwner()
	l.pump()
}

// Waiting says that a new delivery waits in the store. Later ones queue behind it there.
func (l *Lane) Waiting(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.overflow = true
	l.backlog.note(now)
	l.tellOwner()
	l.backlog.reportOrphans()
	l.pump()
}

// Told says that another node has stored a delivery. New ones of this node queue behind it only if the lane cannot claim it now:
// they would all have to be claimed from the store too.
func (l *Lane) Told(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.note(now)
	if !l.backlog.wanted(now) {
		l.backlog.overflow = true
	}
	l.pump()
}

// tellOwner tells the node that has the endpoint that a delivery waits, if this node does not have it.
func (l *Lane) tellOwner() {
	if !l.d.cfg.Shards.Serves(l.id.Shard()) && l.d.cfg.Tell != nil {
		l.d.cfg.Tell(l.id)
	}
}

const storeRetry = time.Second

func (l *Lane) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pump()
}

// pump starts all attempts that may start, and refills the window when it runs low. Called with the lane locked.
func (l *Lane) pump() {
	if !l.d.Running() {
		return
	}
	now := l.d.cfg.Clock.Now()
	l.attend(now)
	l.expireFirst(now)
	for l.mayStart(now) && l.take(now, false) {
		l.start(now)
	}
	l.backlog.refill(now)
}

// take takes a slot, and a start of the account's allowance if it has one. turn says that the account called the lane.
func (l *Lane) take(now time.Time, turn bool) bool {
	if l.account == nil {
		return l.d.slots.take(l)
	}
	return l.account.take(l, now, turn, func() bool { return l.d.slots.take(l) })
}

// granted uses a slot that the lane got by its turn; it reports whether it did.
func (l *Lane) granted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.d.cfg.Clock.Now()
	if !l.mayStart(now) || l.account != nil && !l.account.take(l, now, false, nil) {
		l.backlog.refill(now)
		return false
	}
	l.start(now)
	l.pump() // the lane joins the line again for the next one
	return true
}

// expireFirst gives up deliveries at the head of the queue whose time ran out, behind a long hold for instance.
func (l *Lane) expireFirst(now time.Time) {
	for len(l.window.queue) > 0 && l.d.cfg.Maker.OutOfTime(l.Target(), &l.window.queue[0].Work.Delivery, now) {
		l.expire(l.window.next(), now)
	}
}

// expire records a delivery whose time ran out.
func (l *Lane) expire(it *item, now time.Time) {
	l.window.putItem(it, heldRecording)
	r := it.claim(attempt.Expired(&it.Job, now))
	l.d.cfg.Observer.Judged(l.Target(), r, now)
	l.d.cfg.Commits.Add(r)
}

// mayStart reports whether the next delivery may be sent now. If it must wait for a known time, mayStart sets the alarm to it.
// It takes nothing from the rate, since there may be no slot.
func (l *Lane) mayStart(now time.Time) bool {
	w := &l.window
	if len(w.queue) == 0 || w.inFlight >= l.concurrency() || !l.open(now) {
		return false
	}
	if w.queue[0].Epoch != l.epoch() {
		return false // a claim made under an older epoch belongs to another node
	}
	if wait := l.pace.wait(now); wait > 0 {
		l.alarm.set(now.Add(wait))
		return false
	}
	return true
}

// lag returns how long the next delivery has been waiting for this node, and 0 if it waits for its endpoint: adding nodes would not
// help it. A lane with an account counts as waiting for the account's allowance. Called with the lane locked.
func (l *Lane) lag(now time.Time) time.Duration {
	if l.account != nil || !l.mayStart(now) {
		return 0
	}
	return now.Sub(l.window.queue[0].Work.Delivery.DueAt)
}

// open reports whether the endpoint may get any requests now.
func (l *Lane) open(now time.Time) bool {
	switch h := &l.condition; {
	case !l.d.Running() || !l.active():
		return false
	case now.Before(h.HoldUntil):
		l.alarm.set(h.HoldUntil)
		return false
	case h.CircuitOpenAt.IsZero():
		return true
	case now.Before(h.ProbeAt):
		l.alarm.set(h.ProbeAt)
		return false
	default:
		return l.window.inFlight == 0 // an open circuit lets one delivery at a time probe the endpoint
	}
}

func (l *Lane) start(now time.Time) {
	it := l.window.next()
	it.Budget = l.pace.take(now)
	l.window.inFlight++
	l.window.putItem(it, heldInFlight)
	l.d.attempts.Add(1)
	l.d.workers.do(it)
}

// finished counts an attempt as no longer in flight. The delivery stays in the window until its result is recorded.
func (l *Lane) finished(it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.inFlight--
	if l.window.held[it.Work.Delivery.ID].item == it {
		l.window.putItem(it, heldRecording)
	}
	l.pump()
}

// dropForeign forgets deliveries claimed under another epoch than the shard's.
func (l *Lane) dropForeign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window.dropOthers(l.d.cfg.Shards.Owned(l.id.Shard())) {
		l.backlog.note(l.d.cfg.Clock.Now())
		l.pump()
	}
}
