package fanout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// amongOthers configures an expander of a node with other nodes beside it, and a clock that stands still.
func amongOthers(hands *clock.Manual, owns func(shard int) bool) func(*Config) {
	return func(c *Config) {
		c.Clock, c.Alone, c.Owns = hands, func() bool { return false }, owns
	}
}

func (x *Expander) worksOn(id godwit.EventID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.known[id] != nil
}

// A node takes up another node's fan-out only if its cursor stands still and its shard is the node's own.
func TestForeignFanoutIsLeftToItsNode(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	owns := false
	x, m := newExpander(t, amongOthers(hands, func(int) bool { return owns }))
	m.listed = true
	id := m.store(2 * PartRows)
	look := func(what string, want bool) {
		t.Helper()
		if err := x.resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := x.worksOn(id); got != want {
			t.Fatalf("%s: the node works on it: %t", what, got)
		}
		hands.Advance(patience)
	}
	look("another node has just stored it", false)
	look("it stands still, but is of another node's shard", false)
	if ofTenant, here := x.Open(godwit.TenantID{1}); ofTenant != 1 || here != 0 {
		t.Errorf("%d fan-outs of the tenant are open, this node works on %d", ofTenant, here)
	}
	owns = true
	m.move(id, PartRows)
	look("it has moved", false)
	look("it stands still", true)
	if ofTenant, here := x.Open(godwit.TenantID{1}); ofTenant != 1 || here != 1 {
		t.Errorf("%d fan-outs of the tenant are open, this node works on %d", ofTenant, here)
	}
	close(m.gate)
	if err := x.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if m.deliveries != PartRows {
		t.Errorf("%d deliveries stored, want the %d that were left", m.deliveries, PartRows)
	}
}

// A node that is alone takes up everything at once.
func TestLoneNodeTakesUpAll(t *testing.T) {
	x, m := newExpander(t, func(c *Config) { c.Owns = func(int) bool { return false } })
	m.listed = true
	close(m.gate)
	id := m.store(3)
	if err := x.Wait(t.Context(), id); err != nil || m.deliveries != 3 {
		t.Errorf("%d deliveries stored (%v)", m.deliveries, err)
	}
}

// asked tells of each list that is read.
type asked struct {
	*memory
	lists chan struct{}
}

func (a *asked) Fanouts(ctx context.Context, after godwit.EventID, limit int) ([]store.Fanout, error) {
	list, err := a.memory.Fanouts(ctx, after, limit)
	a.lists <- struct{}{}
	return list, err
}

// Another node has stored a fan-out since the list of all was read: a caller that has the event's id waits for it all the same.
func TestWaitForForeignFanoutThatIsNew(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	lists := make(chan struct{}, 1)
	x, m := newExpander(t, amongOthers(hands, func(int) bool { return false }), func(c *Config) {
		c.Store = &asked{c.Store.(*memory), lists}
	})
	m.listed = true
	if err := x.resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-lists
	hands.Advance(time.Millisecond)
	id := godwit.NewEventID(hands.Now())
	m.mu.Lock()
	m.open[id] = store.Fanout{TenantID: godwit.TenantID{1}, Events: []godwit.EventID{id}, Endpoints: make([]godwit.EndpointID, PartRows)}
	m.mu.Unlock()
	canceled, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- x.Wait(canceled, id) }()
	select {
	case <-lists:
	case err := <-waited:
		t.Fatalf("Wait returned %v and did not look", err)
	}
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("Wait returned %v although the fan-out is open", err)
	}
}

// A caller that waits for another node's fan-out is woken when that node has completed it.
func TestWaitForForeignFanout(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	lists := make(chan struct{})
	x, m := newExpander(t, amongOthers(hands, func(int) bool { return false }), func(c *Config) {
		c.Store = &asked{c.Store.(*memory), lists}
	})
	m.listed = true
	id := m.store(PartRows)
	waited := make(chan error, 1)
	go func() { waited <- x.Wait(t.Context(), id) }()
	<-lists
	for range 3 {
		if !hands.Await(hands.Now().Add(foreignInterval), time.Hour) {
			t.Fatal("the caller does not look again")
		}
		hands.Advance(foreignInterval)
		<-lists
	}
	select {
	case err := <-waited:
		t.Fatalf("Wait returned although the fan-out is open: %v", err)
	default:
	}
	hands.Await(hands.Now().Add(foreignInterval), time.Hour)
	m.mu.Lock()
	delete(m.open, id)
	m.mu.Unlock()
	hands.Advance(foreignInterval)
	<-lists
	if err := <-waited; err != nil {
		t.Error(err)
	}

	canceled, cancel := context.WithCancel(t.Context())
	id = m.store(PartRows)
	hands.Advance(lookInterval)
	go func() { waited <- x.Wait(canceled, id) }()
	<-lists
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has gone: %v", err)
	}
}
