package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// RunConcurrency tests that the guarantees hold under concurrent use.
func RunConcurrency(t *testing.T, open func(t testing.TB) store.Store) {
	for _, c := range []testCase{
		{"one of many reserves a key", concurrentReserve},
		{"one of many accepts under a key", concurrentAccept},
		{"a delivery is claimed once", concurrentClaim},
		{"an endpoint's version is written once", concurrentUpdate},
		{"a version of an event type is changed or deleted once", concurrentDeletion},
		{"an allowance is shared", concurrentAllowance},
		{"endpoints are created within a limit", concurrentCreation},
		{"a key check is written once", concurrentKeyCheck},
		{"storm", concurrentStorm},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newFixture(t, open)) })
	}
}

// together runs fn in n goroutines that start at the same time, and reports the first error of each.
func together(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			if err := fn(i); err != nil {
				t.Errorf("goroutine %d: %v", i, err)
			}
		})
	}
	done.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func concurrentReserve(t *testing.T, f *fixture) {
	var won atomic.Int32
	together(t, 100, func(i int) error {
		r := reservation(f, "k")
		r.Fingerprint[0] = byte(i)
		found, err := f.s.Reserve(f.ctx, r)
		if err == nil && found == nil {
			won.Add(1)
		}
		return err
	})
	if n := won.Load(); n != 1 {
		t.Errorf("%d of 100 reserved the key", n)
	}
}

func concurrentAccept(t *testing.T, f *fixture) {
	var won atomic.Int32
	answers := make([]byte, 100)
	together(t, len(answers), func(i int) error {
		r := makeRecord(f, "k")
		r.Response.Body = []byte{byte(i)}
		a, _ := keyedAccept(f, r)
		plain, _ := keyedAccept(f, nil)
		c, err := f.s.Commit(f.ctx, &store.Batch{Now: f.now, Accepts: []store.Accept{plain, a}})
		if err != nil {
			return err
		}
		answers[i] = byte(i)
		if c.Existing[1] == nil {
			won.Add(1)
		} else {
			answers[i] = c.Existing[1].Response.Body[0]
		}
		return nil
	})
	if n := won.Load(); n != 1 {
		t.Errorf("%d of %d were accepted under one key", n, len(answers))
	}
	for _, a := range answers {
		if a != answers[0] {
			t.Fatalf("requests with one key got different answers: %v", answers)
		}
	}
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != int64(len(answers)+1) {
		t.Errorf("%d deliveries are pending, want %d", n, len(answers)+1)
	}
}

func concurrentClaim(t *testing.T, f *fixture) {
	const deliveries = 300
	b := &store.Batch{}
	for range deliveries {
		b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{f.fanOut(f.makeEvent(), f.endpoint)}})
	}
	f.commit(b)
	var mu sync.Mutex
	claims := map[godwit.DeliveryID]int{}
	together(t, 8, func(int) error {
		for {
			c, err := ClaimOne(f.ctx, f.s, store.Claim{EndpointID: f.endpoint, Epoch: f.epoch(f.endpoint), Now: f.now, Limit: 7})
			if err != nil || len(c.Work) == 0 {
				return err
			}
			mu.Lock()
			for _, w := range c.Work {
				claims[w.Delivery.ID]++
			}
			mu.Unlock()
		}
	})
	if len(claims) != deliveries {
		t.Errorf("%d of %d deliveries were claimed", len(claims), deliveries)
	}
	for id, n := range claims {
		if n != 1 {
			t.Errorf("%v was claimed %d times", id, n)
		}
	}
}

func concurrentDeletion(t *testing.T, f *fixture) {
	f.must(f.s.PutEventType(f.ctx, makeEventType(f, "order.paid")))
	first := got(f.s.EventType(f.ctx, f.tenant, "order.paid"))(t)
	var won atomic.Int32
	together(t, 20, func(i int) error {
		var err error
		if i%2 == 0 {
			err = f.s.DeleteEventType(f.ctx, f.tenant, "order.paid", first.Version)
		} else {
			next := *first
			next.Description = fmt.Sprint(i)
			err = f.s.PutEventType(f.ctx, &next)
		}
		switch {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound):
			return err
		}
		return nil
	})
	if n := won.Load(); n != 1 {
		t.Errorf("%d of 20 changed or deleted one version", n)
	}
}

func concurrentUpdate(t *testing.T, f *fixture) {
	var won atomic.Int32
	together(t, 20, func(i int) error {
		e, err := f.s.Endpoint(f.ctx, f.tenant, f.endpoint)
		if err != nil {
			return err
		}
		e.Version, e.Description = 2, fmt.Sprint(i)
		switch err := f.s.UpdateEndpoint(f.ctx, e); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		return nil
	})
	if n := won.Load(); n != 1 {
		t.Errorf("version 2 was written %d times", n)
	}
}
