package engine_test

import (
	"context"
	"encoding/json"
	"runtime"
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

func endpoint(t *testing.T, srv *apptest.Server, ep apptest.Endpoint) *godwit.Endpoint {
	t.Helper()
	e, err := srv.App.Store().Endpoint(context.Background(), srv.Tenant, ep.ID)
	must(t, err)
	return e
}

// notices lists the notices of a kind, newest first.
func notices(t *testing.T, srv *apptest.Server, kind godwit.NoticeKind) (found []godwit.Notice) {
	t.Helper()
	list, err := srv.App.Store().ListNotices(context.Background(), srv.Tenant, false, store.Page{Limit: 200})
	must(t, err)
	for _, n := range list {
		if n.Kind == kind {
			found = append(found, n)
		}
	}
	return found
}

func status(codes ...int) (replies []apptest.Reply) {
	for _, code := range codes {
		replies = append(replies, apptest.Status(code))
	}
	return replies
}

// An endpoint is degraded when more than half of an hour's attempts fail. One notice is raised, deliveries go on, and the
// state ends by itself as the hour moves on.
func TestDegraded(t *testing.T) {
	trace.Covers(t, "CCW-HLT-2")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	sink.Script("/", status(200, 500, 500, 500, 200)...)
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	srv.Endpoint(sink.URL("/alerts"), dialect("cybercube", "godwit.alert.endpoint_degraded"))
	health := func() godwit.Health { h, _ := srv.App.Engine().Health(ep.ID); return h }

	for i, want := range []struct {
		degraded bool
		told     int
	}{{false, 0}, {false, 0}, {true, 1}, {true, 1}} { // 0 of 1, 1 of 2, 2 of 3, 3 of 4
		srv.WaitAttempts(srv.Publish("project.created", `{}`), ep, 1)
		if h := health(); !h.DegradedAt.IsZero() != want.degraded {
			t.Errorf("after attempt %d: %+v", i+1, h)
		}
		if n := len(notices(t, srv, godwit.NoticeEndpointDegraded)); n != want.told {
			t.Errorf("after attempt %d: told %d times", i+1, n)
		}
	}
	if e := endpoint(t, srv, ep); e.Status != godwit.EndpointActive {
		t.Errorf("a degraded endpoint is %s", e.Status)
	}
	var alert struct {
		Data json.RawMessage `json:"data"`
	}
	must(t, json.Unmarshal(sink.WaitOn("/alerts", 1)[0].Body, &alert))
	for _, want := range []string{"endpoint_degraded", ep.ID.String(), "HTTP 500", "67%"} {
		if !strings.Contains(string(alert.Data), want) {
			t.Errorf("alert without %q: %s", want, alert.Data)
		}
	}
	if _, err := srv.App.Management().Endpoints.Pause(context.Background(), srv.Tenant, ep.ID, ""); err != nil { // no attempts from here on
		t.Fatal(err)
	}
	srv.Advance(59 * time.Minute)
	if h := health(); h.DegradedAt.IsZero() {
		t.Error("recovered within the hour")
	}
	srv.Advance(time.Minute)
	if h := health(); !h.DegradedAt.IsZero() {
		t.Errorf("an hour later: %+v", h)
	}
}

// Ten failures in a row leave an endpoint active, the eleventh disables it; one success in between resets the count. After a
// day the engine enables it, and delivers the waiting events as usual.
func TestDisabledByFailuresAndBack(t *testing.T) {
	trace.Covers(t, "CCW-HLT-3", "CCW-HLT-5", "CCW-HLT-6", "CCW-HLT-8")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	srv.Endpoint(sink.URL("/alerts"), dialect("cybercube", "godwit.alert.endpoint_disabled"))
	publish := func(answer int) godwit.EventID {
		sink.Script("/", apptest.Status(answer))
		ev := srv.Publish("project.created", `{}`)
		srv.WaitAttempts(ev, ep, 1)
		return ev
	}
	fail := func(n int) {
		for range n {
			publish(500)
		}
	}
	fail(10)
	publish(200)
	fail(10)
	if e := endpoint(t, srv, ep); e.Status != godwit.EndpointActive {
		t.Fatalf("after ten failures: %+v", e)
	}
	if h, _ := srv.App.Engine().Health(ep.ID); h.Streak != 10 {
		t.Fatalf("health %+v", h)
	}
	fail(1)
	e := endpoint(t, srv, ep)
	if e.Status != godwit.EndpointDisabled || e.StatusReason != "11 consecutive failures, the last: HTTP 500" ||
		!e.ReenableAt.Equal(stored(hands.Now().Add(24*time.Hour))) {
		t.Fatalf("after eleven: %+v", e)
	}
	if n := len(notices(t, srv, godwit.NoticeEndpointDisabled)); n != 1 {
		t.Errorf("%d notices", n)
	}
	sink.WaitOn("/alerts", 1)
	sink.Script("/", apptest.Status(200))
	before := len(sink.Requests("/"))
	held := srv.Publish("project.created", `{}`)

	srv.Advance(24*time.Hour - time.Second)
	if n := len(sink.Requests("/")); n != before || endpoint(t, srv, ep).Status != godwit.EndpointDisabled {
		t.Errorf("%d requests to a disabled endpoint", n-before)
	}
	srv.Advance(time.Second)
	srv.WaitDelivery(held, ep, godwit.DeliveryAccepted)
	if a := srv.Attempts(held, ep); len(a) != 1 || a[0].N != 1 || !a[0].StartedAt.Equal(stored(hands.Now())) {
		t.Errorf("attempts of what was held: %+v", a)
	}
	e = endpoint(t, srv, ep)
	h, _ := srv.App.Engine().Health(ep.ID)
	if e.Status != godwit.EndpointActive || !e.ReenableAt.IsZero() || !e.StatusAt.Equal(stored(hands.Now())) || h.Streak != 0 {
		t.Errorf("after a day: %+v; %+v", e, h)
	}
	if n := notices(t, srv, godwit.NoticeEndpointEnabled); len(n) != 1 || !strings.Contains(n[0].Detail, "11 consecutive failures") {
		t.Errorf("notices %+v", n)
	}
}

// An endpoint that answered 410 Gone is not enabled again automatically.
func TestGoneStaysDisabled(t *testing.T) {
	trace.Covers(t, "CCW-HLT-5")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, punctual)
	sink := apptest.NewSink(t)
	sink.Script("/", status(410, 200)...)
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	srv.WaitDelivery(srv.Publish("project.created", `{}`), ep, godwit.DeliveryTerminal)
	if e := endpoint(t, srv, ep); e.Status != godwit.EndpointDisabled || !e.ReenableAt.IsZero() {
		t.Fatalf("after a 410: %+v", e)
	}
	held := srv.Publish("project.created", `{}`)
	srv.Advance(72 * time.Hour)
	if e := endpoint(t, srv, ep); e.Status != godwit.EndpointDisabled || len(sink.Requests("/")) != 1 {
		t.Errorf("three days later: %+v, %d requests", e, len(sink.Requests("/")))
	}
	srv.EndpointCall(ep, "POST", "/resume", nil)
	srv.WaitDelivery(held, ep, godwit.DeliveryAccepted)
}

// The time to enable an endpoint survives a restart, whether it is still to come or passed while no server ran.
func TestRestSurvivesARestart(t *testing.T) {
	for name, away := range map[string]time.Duration{"to come": time.Hour, "passed": 30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			hands := clock.NewManual(start)
			srv := boot(t, &tampered{}, hands, punctual)
			sink := apptest.NewSink(t)
			sink.Script("/", status(500, 500, 200)...)
			ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"disable_after_failures": 2, "reenable_after_seconds": 86400}))
			srv.WaitAttempts(srv.Publish("order.paid", `{}`), ep, 2) // without jitter the second attempt comes at once
			held := srv.Publish("order.paid", `{}`)
			must(t, srv.Stop())
			hands.Advance(away)
			again := reboot(t, srv, hands)
			if away < 24*time.Hour {
				if e := endpoint(t, again, ep); e.Status != godwit.EndpointDisabled {
					t.Errorf("came back early: %+v", e)
				}
				again.Advance(24*time.Hour - away)
			}
			again.WaitDelivery(held, ep, godwit.DeliveryAccepted)
		})
	}
}

// An unreachable store delays the end of a rest, and does not lead to a second notice.
func TestRestEndsWhenTheStoreIsBack(t *testing.T) {
	hands := clock.NewManual(start)
	failed := make(chan struct{})
	tries := 0
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		for _, c := range b.Changes {
			if !c.Enable {
				continue
			}
			if tries++; tries == 1 {
				if _, err := commit(); err != nil { // stored, but the caller gets an error
					return nil, err
				}
				defer close(failed)
				return nil, store.ErrUnavailable
			}
		}
		return commit()
	}}
	told := make(chan godwit.Notice, 16)
	srv := boot(t, s, hands, func(c *engine.Config) {
		punctual(c)
		c.OnNotice = func(n godwit.Notice) { told <- n }
	})
	sink := apptest.NewSink(t)
	sink.Script("/", status(500, 200)...)
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"disable_after_failures": 1, "reenable_after_seconds": 60}))
	srv.WaitAttempts(srv.Publish("order.paid", `{}`), ep, 1)
	held := srv.Publish("order.paid", `{}`)
	srv.Advance(time.Minute)
	await(t, "the commit that fails", failed)
	for len(told) < 2 { // the disabling, and the enabling by the second try, a second after the first failed
		srv.Advance(time.Second)
		runtime.Gosched()
	}
	srv.WaitDelivery(held, ep, godwit.DeliveryAccepted)
	if n := notices(t, srv, godwit.NoticeEndpointEnabled); len(n) != 1 {
		t.Errorf("%d notices", len(n))
	}
}

// If an operator extends the rest while its end is being stored, it ends at the new time.
func TestRestIsProlonged(t *testing.T) {
	hands := clock.NewManual(start)
	var srv *apptest.Server
	var ep apptest.Endpoint
	prolonged := make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		select {
		case <-prolonged:
			return commit()
		default:
		}
		for _, c := range b.Changes {
			if c.Enable {
				e := endpoint(t, srv, ep)
				e.ReenableAt = b.Now.Add(time.Hour)
				e.Version++
				must(t, srv.App.Store().UpdateEndpoint(context.Background(), e))
				defer close(prolonged)
			}
		}
		return commit()
	}}
	enabled := make(chan struct{}, 2)
	srv = boot(t, s, hands, func(c *engine.Config) {
		punctual(c)
		c.OnNotice = func(n godwit.Notice) {
			if n.Kind == godwit.NoticeEndpointEnabled {
				enabled <- struct{}{}
			}
		}
	})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404))
	ep = srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"disable_after_failures": 1, "reenable_after_seconds": 60}))
	srv.WaitDelivery(srv.Publish("order.paid", `{}`), ep, godwit.DeliveryTerminal)
	srv.Advance(time.Minute)
	await(t, "the end of the rest to be stored", prolonged)
	await(t, "what was told of it", enabled)
	if e := endpoint(t, srv, ep); e.Status != godwit.EndpointDisabled {
		t.Fatalf("after a minute: %+v", e)
	}
	srv.Advance(2 * time.Hour)
	await(t, "the new end", enabled)
	if e := endpoint(t, srv, ep); e.Status != godwit.EndpointActive {
		t.Errorf("after two hours: %+v", e)
	}
}
