package follow

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// A rig is an event with one pending delivery. Tests set its standing.
type rig struct {
	hands    *clock.Manual
	delivery godwit.Delivery // in the store
	standing dispatch.LiveState
	reads    chan struct{}
	o        *Outcomes
}

func (r *rig) LiveState(godwit.EndpointID, godwit.DeliveryID, time.Time) dispatch.LiveState {
	return r.standing
}

func (r *rig) Changed(context.Context, godwit.EndpointID) error { return nil }

func newRig(s dispatch.LiveState) *rig {
	r := &rig{hands: clock.NewManual(start), standing: s, reads: make(chan struct{}, 100)}
	r.delivery = godwit.Delivery{
		ID: godwit.NewDeliveryID(start), EventID: godwit.NewEventID(start), Status: godwit.DeliveryPending, CreatedAt: start, UpdatedAt: start,
	}
	r.o = NewOutcomes(Config{Clock: r.hands, Log: slog.New(slog.DiscardHandler), Lanes: r,
		Deliveries: func(context.Context, godwit.TenantID, godwit.EventID) ([]godwit.Delivery, error) {
			r.reads <- struct{}{}
			return []godwit.Delivery{r.delivery}, nil
		}})
	return r
}

// await starts to wait for the event, up to ten seconds, and returns once the store has been read.
func (r *rig) await(t *testing.T, since int) <-chan *Awaited {
	done := make(chan *Awaited, 1)
	go func() {
		a, err := r.o.Await(context.Background(), godwit.TenantID{}, r.delivery.EventID, map[godwit.DeliveryID]int{r.delivery.ID: since}, 10*time.Second)
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	<-r.reads
	return done
}

func (r *rig) tried(status godwit.DeliveryStatus, attempts int) *godwit.Delivery {
	d := r.delivery
	d.Status, d.Attempts, d.UpdatedAt = status, attempts, start.Add(time.Second)
	return &d
}

var owned = dispatch.LiveState{Known: true, Owned: true, Held: true}

// The commit of this node passes on the outcome; Await does not read the store again.
func TestOutcomeIsTold(t *testing.T) {
	for _, status := range []godwit.DeliveryStatus{godwit.DeliveryAccepted, godwit.DeliveryPending, godwit.DeliveryTerminal} {
		r := newRig(owned)
		done := r.await(t, 0)
		r.o.Stored(r.tried(status, 1))
		a := <-done
		if a.Open != 0 || len(a.Deliveries) != 1 || a.Deliveries[0].Status != status || len(r.reads) != 0 {
			t.Errorf("%s: %+v after %d more reads", status, a, len(r.reads))
		}
		if len(r.o.boxes) != 0 || r.o.n.Load() != 0 {
			t.Error("a caller that has its answer is still told")
		}
	}
}

// Await returns at once if all outcomes are already known.
func TestAwaitReturnsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		standing   dispatch.LiveState
		status     godwit.DeliveryStatus
		attempts   int
		open, held int
	}{
		"finished":                     {owned, godwit.DeliveryAccepted, 1, 0, 0},
		"tried, and not held":          {dispatch.LiveState{Known: true, Owned: true}, godwit.DeliveryPending, 1, 0, 0},
		"tried by another node":        {dispatch.LiveState{Known: true}, godwit.DeliveryPending, 1, 0, 0},
		"its endpoint is not known":    {dispatch.LiveState{}, godwit.DeliveryPending, 0, 1, 1},
		"not sent before the limit":    {dispatch.LiveState{Known: true, Owned: true, NotBefore: start.Add(time.Minute)}, godwit.DeliveryPending, 0, 1, 1},
		"cancelled, so not waited for": {owned, godwit.DeliveryCancelled, 0, 0, 0},
	} {
		r := newRig(c.standing)
		r.delivery.Status, r.delivery.Attempts = c.status, c.attempts
		if a := <-r.await(t, 0); a.Open != c.open || a.Held != c.held {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// An attempt made before the wait began is not an outcome.
func TestAwaitCountsNewAttempts(t *testing.T) {
	r := newRig(owned)
	r.delivery.Attempts = 2
	done := r.await(t, 2)
	r.o.Stored(r.tried(godwit.DeliveryPending, 2)) // the return of its claim
	r.o.Stored(r.tried(godwit.DeliveryPending, 3))
	if a := <-done; a.Open != 0 || a.Deliveries[0].Attempts != 3 {
		t.Errorf("%+v", a)
	}
}

// Await polls the store for a delivery of another node, and for one whose result was refused.
func TestAwaitPolls(t *testing.T) {
	for name, s := range map[string]dispatch.LiveState{"another node's": {Known: true}, "refused": owned} {
		r := newRig(s)
		done := r.await(t, 0)
		if s.Owned {
			r.o.Refused(r.delivery.EventID)
		}
		if !r.hands.Await(start.Add(pollInterval), time.Minute) {
			t.Fatalf("%s: the store is not polled", name)
		}
		r.delivery = *r.tried(godwit.DeliveryAccepted, 1)
		r.hands.Advance(pollInterval)
		if a := <-done; a.Open != 0 || a.Deliveries[0].Status != godwit.DeliveryAccepted {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// At the limit Await reads the store once more; unfinished deliveries stay open.
func TestAwaitEnds(t *testing.T) {
	r := newRig(owned)
	done := r.await(t, 0)
	if !r.hands.Await(start.Add(10*time.Second), time.Minute) {
		t.Fatal("no limit is set")
	}
	r.hands.Advance(10 * time.Second)
	if a := <-done; a.Open != 1 || a.Held != 0 || len(r.reads) != 1 {
		t.Errorf("%+v, read %d times more", a, len(r.reads))
	}
}
