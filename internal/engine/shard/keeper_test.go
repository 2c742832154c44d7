package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// leases is a store of leases that the test sets.
type leases struct {
	acquire  func() ([]godwit.Lease, error)
	renew    func([]godwit.Lease) ([]godwit.Lease, error)
	released []godwit.Lease
}

func (l *leases) Acquire(context.Context, string, time.Time, time.Duration, int) ([]godwit.Lease, error) {
	return l.acquire()
}

func (l *leases) Renew(_ context.Context, held []godwit.Lease, _ time.Time, _ time.Duration) ([]godwit.Lease, error) {
	return l.renew(held)
}

func (l *leases) Release(_ context.Context, held []godwit.Lease, _ time.Time) error {
	l.released = held
	return nil
}

func (l *leases) Holders(context.Context) ([]godwit.Node, error) {
	return []godwit.Node{{Name: "b", Holder: "process 7 on b.example"}, {Name: "c"}}, nil
}

// owner records the calls to it.
type owner struct{ told []string }

func (o *owner) Relearn(context.Context) error     { o.told = append(o.told, "relearn"); return nil }
func (o *owner) Gained(_ context.Context, s []int) { o.told = append(o.told, fmt.Sprint("gained ", s)) }
func (o *owner) DropForeign()                      { o.told = append(o.told, "drop foreign") }
func (o *owner) WakeAll()                          { o.told = append(o.told, "wake all") }
func (o *owner) is(t *testing.T, what ...string) {
	t.Helper()
	if !slices.Equal(o.told, what) {
		t.Errorf("the owner was told %q, want %q", o.told, what)
	}
	o.told = nil
}

func newKeeper(l *leases) (*Keeper, *clock.Manual) {
	hands := clock.NewManual(start)
	return NewKeeper(Config{Store: l, Clock: hands, Log: slog.New(slog.DiscardHandler), Node: "a", TTL: 15 * time.Second}), hands
}

// A node that starts alone delivers for its shards as long as their leases last.
func TestAcquire(t *testing.T) {
	l := &leases{acquire: func() ([]godwit.Lease, error) { return []godwit.Lease{{Shard: 3, Epoch: 7}, {Shard: 5, Epoch: 2}}, nil }}
	k, _ := newKeeper(l)
	o := &owner{}
	if err := k.Acquire(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.is(t, "gained [3 5]") // the endpoints loaded at start are recent enough
	if k.EpochAt(3, start) != 7 || k.EpochAt(4, start) != 0 || !k.Valid(start) {
		t.Error("a lease does not count")
	}
	late := start.Add(15 * time.Second)
	if k.EpochAt(3, late) != 0 || k.Valid(late) || k.Owned(3) != 7 {
		t.Error("a lease that ran out must not count, but stays owned")
	}
	if err := k.Release(); err != nil || len(l.released) != 2 || k.Owned(3) != 0 || k.Shards() != nil {
		t.Errorf("release: %v, %v", err, l.released)
	}
}

// A node that waited for another node reads all endpoints again before it delivers.
func TestAcquireAfterAnotherNode(t *testing.T) {
	free := make(chan struct{})
	l := &leases{acquire: func() ([]godwit.Lease, error) {
		select {
		case <-free:
			return []godwit.Lease{{Shard: 1, Epoch: 4}}, nil
		default:
			return nil, nil
		}
	}}
	k, hands := newKeeper(l)
	o, done := &owner{}, make(chan error, 1)
	go func() { done <- k.Acquire(context.Background(), o) }()
	<-k.Standby()
	if got := k.Holder(); got != "b (process 7 on b.example), c" {
		t.Errorf("it waits for %s", got)
	}
	if !hands.Await(start.Add(time.Second), time.Minute) {
		t.Fatal("it does not try again")
	}
	close(free)
	hands.Advance(time.Second)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	o.is(t, "relearn", "gained [1]")
}

// The effect of each answer to a renewal.
func TestRenew(t *testing.T) {
	both := []godwit.Lease{{Shard: 1, Epoch: 1}, {Shard: 2, Epoch: 1}}
	for name, c := range map[string]struct {
		late    time.Duration
		renewed []godwit.Lease
		anew    []godwit.Lease
		err     error
		told    []string
		epochs  [2]int64 // of shards 1 and 2 afterwards
	}{
		"all renewed":                {renewed: both, told: []string{"drop foreign", "gained []"}, epochs: [2]int64{1, 1}},
		"renewed after they ran out": {late: time.Minute, renewed: both, told: []string{"drop foreign", "gained []", "wake all"}, epochs: [2]int64{1, 1}},
		"one lost":                   {renewed: both[:1], told: []string{"drop foreign", "gained []"}, epochs: [2]int64{1, 0}},
		"all lost, one had anew": {anew: []godwit.Lease{{Shard: 2, Epoch: 9}},
			told: []string{"relearn", "drop foreign", "gained [2]", "wake all"}, epochs: [2]int64{0, 9}},
		"the store is away": {err: store.ErrUnavailable, epochs: [2]int64{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leases{
				acquire: func() ([]godwit.Lease, error) { return c.anew, nil },
				renew:   func([]godwit.Lease) ([]godwit.Lease, error) { return c.renewed, c.err },
			}
			k, hands := newKeeper(l)
			k.Set(both, start.Add(15*time.Second))
			hands.Advance(c.late)
			o := &owner{}
			if err := k.renew(t.Context(), o); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			o.is(t, c.told...)
			if got := [2]int64{k.Owned(1), k.Owned(2)}; got != c.epochs {
				t.Errorf("epochs %v, want %v", got, c.epochs)
			}
		})
	}
}
