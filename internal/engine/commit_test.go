package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An unreachable store must not keep the server from stopping. The next server repeats deliveries whose results were not
// recorded.
func TestStopWithTheStoreAway(t *testing.T) {
	var away atomic.Bool
	refused := make(chan struct{}, 1)
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if away.Load() {
			select {
			case refused <- struct{}{}:
			default:
			}
			return nil, fmt.Errorf("commit: %w", store.ErrUnavailable)
		}
		return commit()
	}}
	srv := boot(t, s, nil, nil)
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(200).Until(gate), apptest.Status(200))
	ep := srv.Endpoint(sink.URL("/"))
	ev := srv.Publish("order.paid", `{}`)
	sink.Wait(1)
	away.Store(true)
	close(gate)
	await(t, "a commit that fails", refused)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := srv.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}()
	await(t, "the stop", stopped)

	again := apptest.Start(t, apptest.Options{Data: srv.Config.Data})
	again.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	if n := len(sink.Requests("/")); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// A commit that times out does not discard the results in it: they are written later, and the deliveries are not repeated.
func TestResultOutlivesASlowStore(t *testing.T) {
	slow := true
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if slow && len(b.Results) > 0 {
			slow = false
			return nil, fmt.Errorf("commit batch: %w", context.DeadlineExceeded)
		}
		return commit()
	}}
	srv := boot(t, s, nil, nil)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"))
	ev := srv.Publish("order.paid", `{}`)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	if n := len(sink.Requests("/")); n != 1 {
		t.Errorf("%d requests for one event", n)
	}
}

// If the store permanently refuses a result, it is stored without the receiver's text, and its delivery is not repeated.
func TestResultThatCannotBeStoredIsStripped(t *testing.T) {
	refusal := errors.New("row is not acceptable")
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		for i := range b.Results {
			if a := b.Results[i].Attempt; a != nil && a.Trace.Body != "" {
				return nil, refusal
			}
		}
		return commit()
	}}
	srv := boot(t, s, nil, nil)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(200).Body("text/plain", "poison"))
	ep := srv.Endpoint(sink.URL("/"))
	ev := srv.Publish("order.paid", `{}`)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	if n := len(sink.Requests("/")); n != 1 {
		t.Errorf("%d requests for one event", n)
	}
	if a := srv.Attempts(ev, ep); len(a) != 1 || a[0].Trace.Detail == "" || a[0].Trace.Body != "" {
		t.Errorf("attempts %+v", a)
	}
}

// A delivery can be claimed again after the commit of its result but before the lane is notified. The lane must keep the new
// claim.
func TestClaimBeforeTheFormerResultIsSettled(t *testing.T) {
	hands := clock.NewManual(start)
	gate, claimed := make(chan struct{}), make(chan struct{}, 1)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(503), apptest.Status(200).Until(gate))
	var srv *apptest.Server
	first := true
	s := &tampered{
		commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
			committed, err := commit()
			if first && len(b.Results) > 0 {
				first = false
				d := &b.Results[0].Delivery
				if _, err := srv.App.Engine().Retry(context.Background(), d.TenantID, d.ID, "test"); err != nil {
					t.Errorf("retry: %v", err)
				}
				await(t, "the claim", claimed)
				sink.Wait(2)
			}
			return committed, err
		},
		claim: func(_ store.Claim, claim func() (*store.Claimed, error)) (*store.Claimed, error) {
			got, err := claim()
			if err == nil && len(got.Work) > 0 {
				claimed <- struct{}{}
			}
			return got, err
		},
	}
	srv = boot(t, s, hands, nil)
	ep := srv.Endpoint(sink.URL("/"), policy(nil))
	ev := srv.Publish("order.paid", `{"some":"body"}`)
	srv.WaitAttempts(ev, ep, 1)
	other := srv.Publish("order.paid", `{"some":"body"}`) // its commit comes after the first was settled
	sink.Wait(3)
	if stats := srv.App.Engine().Stats(); stats.Held != 2 || stats.HeldBytes != 2*int64(len(`{"some":"body"}`)) {
		t.Errorf("two deliveries are in flight, but held are %+v", stats)
	}
	close(gate)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	srv.WaitDelivery(other, ep, godwit.DeliveryAccepted)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if stats := srv.App.Engine().Stats(); stats.Held != 0 || stats.HeldBytes != 0 {
		t.Errorf("at the end held are %+v", stats)
	}
}

// Lanes share the transactions in which they claim. If the answer to one is lost, each lane takes its deliveries back and claims
// them again: none is lost, and none is sent twice.
func TestLostAnswerToASharedClaim(t *testing.T) {
	var mu sync.Mutex
	lost := map[godwit.EndpointID]bool{}
	s := &tampered{claims: func(list []store.Claim, claim func() ([]store.Claimed, error)) ([]store.Claimed, error) {
		claimed, err := claim()
		mu.Lock()
		defer mu.Unlock()
		for i := range claimed {
			if id := list[i].EndpointID; len(claimed[i].Work) > 0 && !lost[id] {
				lost[id] = true
				err = store.ErrUnavailable
			}
		}
		return claimed, err
	}}
	srv := boot(t, s, nil, nil)
	sink := apptest.NewSink(t)
	var endpoints []apptest.Endpoint
	for i := range 5 {
		path := fmt.Sprintf("/%d", i)
		sink.Script(path, apptest.Status(503), apptest.Status(200))
		endpoints = append(endpoints, srv.Endpoint(sink.URL(path), policy(nil)))
	}
	ev := srv.Publish("order.paid", `{}`)
	for i, ep := range endpoints {
		srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
		if n := len(sink.Requests(fmt.Sprintf("/%d", i))); n != 2 {
			t.Errorf("endpoint %d got %d requests, want the one that failed and another", i, n)
		}
		if !lost[ep.ID] {
			t.Errorf("no answer was lost to endpoint %d", i)
		}
	}
}
