package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A delivery that waits for a slot uses none of its endpoint's rate.
func TestWaitingForASlotKeepsTheRate(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, func(c *engine.Config) { c.MaxInFlight = 1 })
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/busy", apptest.Status(200).Until(gate))
	srv.Endpoint(sink.URL("/busy"), apptest.Fields{"patterns": []string{"busy"}})
	limited := policy(apptest.Fields{"rate_per_second": 0.001, "burst": 1})
	limited["patterns"] = []string{"limited"}
	ep := srv.Endpoint(sink.URL("/limited"), limited)
	srv.Publish("busy", `{}`)
	sink.Wait(1)
	ev := srv.Publish("limited", `{}`)
	close(gate)
	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted) // the clock has not moved
}

// If an endpoint is deleted during the commit of an event for it, the delivery returns to the store and is cancelled there.
// Otherwise no lane would hold it until the next start.
func TestDeletedWhileTheCommitIsUnderWay(t *testing.T) {
	var srv *apptest.Server
	var ep apptest.Endpoint
	returned := make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if len(b.Accepts) > 0 {
			if err := deleteEndpoint(srv.App.Management(), srv.App.Store(), srv.Tenant, ep.ID); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		committed, err := commit()
		if len(b.Results) == 1 && b.Results[0].Attempt == nil && len(committed.Fenced) == 0 {
			close(returned)
		}
		return committed, err
	}}
	srv = boot(t, s, nil, nil)
	sink := apptest.NewSink(t)
	ep = srv.Endpoint(sink.URL("/"))
	srv.Publish("order.paid", `{"some":"body"}`)
	await(t, "the return of the claim", returned)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if stats := srv.App.Engine().Stats(); stats.HeldBytes != 0 || len(sink.Requests("/")) != 0 {
		t.Errorf("held are %+v, %d requests", stats, len(sink.Requests("/")))
	}
}

// A retry is not sent if a Retry-After holds its endpoint beyond the end of its run.
func TestRunThatEndsInTheQueue(t *testing.T) {
	hands := clock.NewManual(start)
	claimed, expired := make(chan struct{}, 4), make(chan struct{})
	s := &tampered{
		claim: func(_ store.Claim, claim func() (*store.Claimed, error)) (*store.Claimed, error) {
			got, err := claim()
			if err == nil && len(got.Work) > 0 {
				defer func() { claimed <- struct{}{} }()
			}
			return got, err
		},
		commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
			committed, err := commit()
			for i := range b.Results {
				if r := &b.Results[i]; r.Attempt == nil && r.Delivery.Reason == godwit.ReasonTimeExhausted {
					close(expired)
				}
			}
			return committed, err
		},
	}
	srv := boot(t, s, hands, nil)
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(503), apptest.RetryAfter(503, "3600").Until(gate), apptest.Status(200))
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"concurrency": 1, "max_elapsed_seconds": 60}))
	first := srv.Publish("order.paid", `{"n":1}`)
	srv.WaitAttempts(first, ep, 1)
	second := srv.Publish("order.paid", `{"n":2}`)
	sink.Wait(2)
	srv.Advance(2 * time.Second)
	await(t, "the claim of the retry", claimed)
	close(gate)
	srv.WaitDelivery(second, ep, godwit.DeliveryExhausted)
	srv.Advance(2 * time.Minute)
	await(t, "the end of the run", expired)
	if d := srv.Delivery(first, ep); d.Status != godwit.DeliveryExhausted || d.Attempts != 1 || len(sink.Requests("/")) != 2 {
		t.Errorf("delivery %+v after %d requests", d, len(sink.Requests("/")))
	}
}

// The target of a temporary redirect answers with a permanent one. The endpoint's URL does not change.
func TestMoveOfATemporaryPlaceIsNotStored(t *testing.T) {
	srv := boot(t, &tampered{}, nil, nil)
	sink := apptest.NewSink(t)
	sink.Script("/registered", apptest.Redirect(307, "/temporary"))
	sink.Script("/temporary", apptest.Redirect(308, "/elsewhere"))
	ep := srv.Endpoint(sink.URL("/registered"))
	d := srv.WaitDelivery(srv.Publish("order.paid", `{}`), ep, godwit.DeliveryTerminal)
	if d.Reason != godwit.ReasonMoveRefused {
		t.Errorf("delivery %+v", d)
	}
	e, err := srv.App.Store().Endpoint(context.Background(), srv.Tenant, ep.ID)
	if err != nil || e.URL != sink.URL("/registered") || len(sink.Requests("/elsewhere")) != 0 {
		t.Errorf("stored: %+v, %v", e, err)
	}
}

// A credential stays with its origin: a 308 to another port does not move an endpoint that has one. An endpoint without a
// credential moves.
func TestMoveTakesNoCredentialAlong(t *testing.T) {
	srv := boot(t, &tampered{}, nil, nil)
	old, other := apptest.NewSink(t), apptest.NewSink(t)
	old.Script("/", apptest.Redirect(308, other.URL("/")))
	kept := srv.Endpoint(old.URL("/"), apptest.Fields{"patterns": []string{"kept"}, "auth": map[string]string{"kind": "bearer", "token": "hush"}})
	d := srv.WaitDelivery(srv.Publish("kept", `{}`), kept, godwit.DeliveryTerminal)
	if d.Reason != godwit.ReasonMoveRefused || len(other.Requests("/")) != 0 {
		t.Errorf("delivery %+v, %d requests elsewhere", d, len(other.Requests("/")))
	}
	moves := srv.Endpoint(old.URL("/"), apptest.Fields{"patterns": []string{"moves"}})
	srv.WaitDelivery(srv.Publish("moves", `{}`), moves, godwit.DeliveryAccepted)
}

// An endpoint that was read before a change must not replace the changed one.
func TestLateReadDoesNotUndoAChange(t *testing.T) {
	hands := clock.NewManual(start)
	read, proceed := make(chan struct{}), make(chan struct{})
	late := false
	s := &tampered{load: func(load func() (*store.LoadedEndpoint, error)) (*store.LoadedEndpoint, error) {
		loaded, err := load()
		if late {
			late = false
			close(read)
			<-proceed
		}
		return loaded, err
	}}
	srv := boot(t, s, hands, nil)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"))
	late = true
	ctx := context.Background()
	done := make(chan error, 2)
	go func() { done <- srv.App.Engine().Changed(ctx, ep.ID) }()
	await(t, "the first read", read)
	go func() {
		_, err := srv.App.Management().Endpoints.Pause(ctx, srv.Tenant, ep.ID, "")
		done <- err
	}()
	close(proceed)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	srv.Publish("order.paid", `{}`)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(sink.Requests("/")); n != 0 {
		t.Errorf("%d requests to a paused endpoint", n)
	}
}

// The dispatcher reads an endpoint again on its own if it changed while the store was unreadable.
func TestUnreadChangeIsReadLater(t *testing.T) {
	hands := clock.NewManual(start)
	away, again := false, make(chan struct{})
	s := &tampered{load: func(load func() (*store.LoadedEndpoint, error)) (*store.LoadedEndpoint, error) {
		if away {
			away = false
			return nil, fmt.Errorf("load: %w", store.ErrUnavailable)
		}
		loaded, err := load()
		if err == nil && loaded.Endpoint.Status == godwit.EndpointPaused {
			defer close(again)
		}
		return loaded, err
	}}
	srv := boot(t, s, hands, nil)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"))
	away = true
	if _, err := srv.App.Management().Endpoints.Pause(context.Background(), srv.Tenant, ep.ID, ""); err == nil {
		t.Fatal("the pause reached the engine")
	}
	srv.Advance(10 * time.Second)
	await(t, "the second read", again)
}
