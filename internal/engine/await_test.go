package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// A caller that starts to wait between a 401 and the immediate second attempt with a renewed credential gets the outcome of
// the second attempt; the first decides nothing (EDS-STA-401b).
func TestAwaitWaitsForTheRenewedCredential(t *testing.T) {
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/hook", apptest.Status(401), apptest.Status(200).Until(gate))
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	srv.Endpoint(sink.URL("/hook"))
	ev := srv.Publish("a.b", `{}`)
	sink.WaitOn("/hook", 2)
	var awaited *engine.Awaited
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if awaited, err = srv.App.Engine().Await(context.Background(), srv.Tenant, ev, nil, time.Minute); err != nil {
			t.Error(err)
		}
	}()
	// Await has read the store once, and reads it again if no result arrives.
	if !hands.Await(start.Add(250*time.Millisecond), 5*time.Minute) {
		t.Fatal("it does not wait for the second answer")
	}
	close(gate)
	await(t, "the outcome", done)
	if awaited == nil || awaited.Open != 0 || len(awaited.Deliveries) != 1 || awaited.Deliveries[0].Status != godwit.DeliveryAccepted {
		t.Errorf("awaited %+v", awaited)
	}
}

// A node that lost its shards gets no further results of its deliveries. Callers that wait there read the new owner's results
// from the store.
func TestAwaitHearsOfTheNewOwnersResult(t *testing.T) {
	ctx := t.Context()
	c := newCluster(t, clock.Real{})
	first, stopFirst := c.node(t, "first")
	defer stopFirst()
	<-first.Started()
	m := c.management(t, first)
	tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	must(t, err)
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(503).Until(gate), apptest.Status(200))
	_, _, err = m.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: sink.URL("/"), Patterns: []string{"a.b"}}})
	must(t, err)
	receipts, err := first.Submit(ctx, engine.Submission{
		TenantID: tenant.ID, Events: []engine.Publication{{Type: "a.b", ContentType: "application/json", Body: []byte("{}")}},
	})
	must(t, err)
	sink.Wait(1)
	awaited := make(chan *engine.Awaited, 1)
	go func() {
		a, err := first.Await(ctx, tenant.ID, receipts[0].Events[0].ID, nil, time.Minute)
		if err != nil {
			t.Error(err)
		}
		awaited <- a
	}()
	// Another node takes the shards as if the first had been silent for too long.
	_, err = storetest.TakeAll(ctx, c.store, "second")
	must(t, err)
	second, stopSecond := c.node(t, "second")
	defer stopSecond()
	<-second.Started()
	sink.Wait(2) // claimed deliveries are due again
	close(gate)  // the first node's result comes too late
	got := make(chan struct{})
	var a *engine.Awaited
	go func() { a = <-awaited; close(got) }()
	await(t, "the outcome", got)
	if a == nil || a.Open != 0 || len(a.Deliveries) != 1 || a.Deliveries[0].Status != godwit.DeliveryAccepted {
		t.Errorf("awaited %+v", a)
	}
}
