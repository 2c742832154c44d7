package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A replay sends events to one endpoint only, in the order of acceptance: those it received before in a new run of the same
// delivery, the others in a new delivery.
func TestReplayTo(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	fields := dialect("cybercube", "project.*")
	fields["policy"] = map[string]any{"concurrency": 1}
	had := srv.Endpoint(sink.URL("/had"), fields)
	var events []godwit.Event
	for i := range 5 {
		ev := srv.Publish("project.created", fmt.Sprintf(`{"n":%d}`, i))
		srv.WaitDelivery(ev, had, godwit.DeliveryAccepted)
		events = append([]godwit.Event{{ID: ev}}, events...)
		srv.Advance(time.Second)
	}
	ctx, e := context.Background(), srv.App.Engine()
	for i := range events {
		event, err := srv.App.Store().Event(ctx, srv.Tenant, events[i].ID)
		must(t, err)
		events[i] = *event
	}
	first := srv.Delivery(events[4].ID, had)

	n, err := e.ReplayTo(ctx, srv.Tenant, had.ID, append(events, events[0]), "somebody")
	must(t, err)
	seen := sink.WaitOn("/had", 10)
	if n != 5 || string(seen[5].Body) != string(seen[0].Body) || string(seen[9].Body) != string(seen[4].Body) {
		t.Errorf("%d replayed: %s ... %s", n, seen[5].Body, seen[9].Body)
	}
	again := srv.WaitAttempts(events[4].ID, had, 2)
	if again[1].DeliveryID != first.ID || again[1].Trigger != godwit.TriggerReplay || again[1].Trace.Actor != "somebody" {
		t.Errorf("attempts %+v", again)
	}

	fields["patterns"] = []string{"other"}
	late := srv.Endpoint(sink.URL("/late"), fields)
	n, err = e.ReplayTo(ctx, srv.Tenant, late.ID, events, "somebody")
	must(t, err)
	for i, r := range sink.WaitOn("/late", 5) {
		if n != 5 || string(r.Body) != string(seen[i].Body) {
			t.Errorf("%d replayed, the %d.: %s", n, i+1, r.Body)
		}
	}
	if n := len(sink.Requests("/had")); n != 10 {
		t.Errorf("%d requests to the other endpoint", n)
	}
	srv.EndpointCall(late, "POST", "/pause", nil)
	for range 2 { // the second time they are pending
		if n, err = e.ReplayTo(ctx, srv.Tenant, late.ID, events, ""); n != 5 || err != nil {
			t.Errorf("paused: %d, %v", n, err)
		}
	}
	srv.EndpointCall(late, "POST", "/resume", nil)
	sink.WaitOn("/late", 10)

	other, _ := srv.NewTenant("other", godwit.AllScopes...)
	if _, err := e.ReplayTo(ctx, other, late.ID, nil, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant's endpoint: %v", err)
	}
	events[0].TenantID = other
	if _, err := e.ReplayTo(ctx, srv.Tenant, late.ID, events, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant's event: %v", err)
	}
	if _, err := e.ReplayTo(ctx, srv.Tenant, late.ID, make([]godwit.Event, engine.MaxReplay+1), ""); !errors.Is(err, engine.ErrTooMany) {
		t.Errorf("too many: %v", err)
	}
}

// In dialects that say so, an event accepted while an endpoint is paused does not go to it. A waiting retry keeps waiting.
func TestSkipWhilePaused(t *testing.T) {
	trace.Covers(t, "OJS-SUB-6")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	sink.Script("/", status(500, 200)...)
	ep := srv.Endpoint(sink.URL("/"), dialect("ojs", "job.*"))
	waiting := srv.Publish("job.done", `{"n":1}`)
	srv.WaitAttempts(waiting, ep, 1)
	srv.EndpointCall(ep, "POST", "/pause", nil)
	receipts, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: []engine.Publication{
		{Type: "job.done", ContentType: "application/json", Body: []byte(`{"n":2}`)},
	}})
	must(t, err)
	if receipts[0].Fanout[0] != 0 {
		t.Errorf("a paused endpoint gets %d deliveries", receipts[0].Fanout[0])
	}
	srv.Advance(time.Hour)
	if n := len(sink.Requests("/")); n != 1 {
		t.Errorf("%d requests while paused", n)
	}
	srv.EndpointCall(ep, "POST", "/resume", nil)
	srv.WaitDelivery(waiting, ep, godwit.DeliveryAccepted)
	srv.WaitDelivery(srv.Publish("job.done", `{"n":3}`), ep, godwit.DeliveryAccepted)
	if n := len(sink.Requests("/")); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// Deliveries to a paused endpoint are sent when it is resumed, oldest first, each as a first attempt.
func TestHeldWhilePaused(t *testing.T) {
	trace.Covers(t, "CCW-HLT-6", "CCW-RTY-10")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	fields := dialect("cybercube", "project.*")
	fields["policy"] = map[string]any{"concurrency": 1}
	ep := srv.Endpoint(sink.URL("/"), fields)
	srv.EndpointCall(ep, "POST", "/pause", nil)
	for i := range 3 {
		srv.Publish("project.created", fmt.Sprintf(`{"n":%d}`, i))
		srv.Advance(time.Hour)
	}
	srv.EndpointCall(ep, "POST", "/resume", nil)
	for i, r := range sink.Wait(3) {
		if got := r.Header.Get("X-Webhook-Delivery-Attempt"); got != "1" || !strings.Contains(string(r.Body), fmt.Sprintf(`"n":%d`, i)) {
			t.Errorf("request %d says attempt %s: %s", i+1, got, r.Body)
		}
	}
}
