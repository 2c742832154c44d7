package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

func ping() engine.Publication {
	return engine.Publication{Type: "webhook.test", ContentType: "application/json", Body: []byte(`{"ping":true}`)}
}

// A probe sends one signed request to an endpoint in any state, returns the answer, and stores nothing.
func TestProbe(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	e, ctx := srv.App.Engine(), context.Background()
	for _, state := range []string{"/pause", "/resume"} {
		srv.EndpointCall(ep, "POST", state, nil)
		before, _ := e.Health(ep.ID)
		sink.Script("/", apptest.Status(500).Body("text/plain", "not today"))
		p, err := e.SendTest(ctx, srv.Tenant, ep.ID, ping())
		must(t, err)
		if p.Exchange.Status != 500 || string(p.Exchange.Body) != "not today" || p.Verdict.Outcome != godwit.Transient {
			t.Errorf("after %s: %+v", state, p)
		}
		seen := sink.Requests("/")
		last := seen[len(seen)-1]
		if last.Header.Get("X-Webhook-Signature") == "" || last.Header.Get("X-Webhook-Event-Type") != "webhook.test" || last.Header.Get("X-RateLimit-Remaining") != "1000" {
			t.Errorf("header %v", last.Header)
		}
		if after, _ := e.Health(ep.ID); after.Transient != before.Transient || after.Streak != before.Streak || !after.LastFailureAt.Equal(before.LastFailureAt) {
			t.Errorf("health before %+v, after %+v", before, after)
		}
		if _, err := srv.App.Store().Event(ctx, srv.Tenant, p.Event.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the event is stored: %v", err)
		}
		if _, err := srv.App.Store().Delivery(ctx, srv.Tenant, p.Delivery); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the delivery is stored: %v", err)
		}
	}
	srv.Advance(100 * time.Hour)
	sink.Script("/", apptest.Status(200))
	srv.WaitAttempts(srv.Publish("project.created", `{}`), ep, 1)
	if n := len(sink.Requests("/")); n != 3 {
		t.Errorf("%d requests", n)
	}
	other, _ := srv.NewTenant("other", godwit.AllScopes...)
	if _, err := e.SendTest(ctx, other, ep.ID, ping()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant's probe: %v", err)
	}
	sink.Close()
	p, err := e.SendTest(ctx, srv.Tenant, ep.ID, ping())
	must(t, err)
	if p.Exchange.Status != 0 || p.Exchange.Failure == nil || p.Exchange.Failure.Kind != godwit.FailureRefused {
		t.Errorf("a closed port: %+v", p.Exchange)
	}
}

// A probe ends when its caller's context or the engine ends.
func TestProbeEnds(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Stall())
	ep := srv.Endpoint(sink.URL("/"), dialect("ojs", "job.*"))
	e := srv.App.Engine()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _, err := e.SendTest(ctx, srv.Tenant, ep.ID, ping()); ended <- err }()
	sink.Wait(1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller: %v", err)
	}
	go func() { _, err := e.SendTest(context.Background(), srv.Tenant, ep.ID, ping()); ended <- err }()
	sink.Wait(2)
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Stop() }()
	for cut := false; !cut; { // a stop waits for the request as for any other, until the drain limit
		select {
		case err := <-ended:
			cut = true
			if !errors.Is(err, engine.ErrStopping) {
				t.Errorf("after the engine: %v", err)
			}
		default:
			hands.Advance(time.Second)
		}
	}
	must(t, <-stopped)
	if _, err := e.SendTest(context.Background(), srv.Tenant, ep.ID, ping()); !errors.Is(err, engine.ErrStopping) {
		t.Errorf("of an engine that has stopped: %v", err)
	}
}
