package dispatch

import (
	"errors"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// never is later than any caller waits.
var never = time.Unix(1<<40, 0)

// LiveState is this node's knowledge of an unfinished delivery.
type LiveState struct {
	Known bool // its endpoint has a lane here
	Owned bool // this node delivers for its endpoint
	Held  bool // it is in the lane's window
	// NotBefore is the earliest known time at which the delivery may be sent; zero means at once. It is zero for a delivery
	// that is in flight or being recorded, since its own result may have caused the delay.
	NotBefore time.Time
}

// LiveState returns the state of an endpoint's delivery at now.
func (d *Dispatcher) LiveState(endpoint godwit.EndpointID, delivery godwit.DeliveryID, now time.Time) LiveState {
	l := d.index.lane(endpoint)
	if l == nil {
		return LiveState{}
	}
	s := LiveState{Known: true, Owned: l.epoch() != 0}
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.window.held[delivery]
	s.Held = held
	switch {
	case held && h.state != heldQueued:
	case !l.active():
		s.NotBefore = never
	default:
		s.NotBefore = l.condition.HoldUntil
		if !l.condition.CircuitOpenAt.IsZero() && l.condition.ProbeAt.After(s.NotBefore) {
			s.NotBefore = l.condition.ProbeAt
		}
	}
	return s
}

// ErrInFlight reports that a request for the delivery is in flight.
var ErrInFlight = errors.New("an attempt is in flight")

// evictionGrace keeps a delivery from being claimed again before its cancellation is stored.
const evictionGrace = time.Minute

// Evict returns a queued delivery to the store and waits until it is stored. It fails with ErrInFlight when a request for it
// is in flight.
func (l *Lane) Evict(id godwit.DeliveryID) error {
	l.mu.Lock()
	held, ok := l.window.held[id]
	if !ok {
		l.mu.Unlock()
		return nil
	}
	if held.state != heldQueued {
		l.mu.Unlock()
		return ErrInFlight
	}
	it := held.item
	l.window.queue = slices.DeleteFunc(l.window.queue, func(queued *item) bool { return queued == it })
	l.window.putItem(it, heldRecording)
	it.Work.Delivery.DueAt = l.d.cfg.Clock.Now().Add(evictionGrace)
	written := l.d.cfg.Commits.Write(it.claim(attempt.Returned(&it.Job)))
	l.mu.Unlock()
	return <-written
}
