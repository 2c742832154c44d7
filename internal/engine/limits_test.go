package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// flood accepts n events of a type at once.
func flood(t *testing.T, srv *apptest.Server, eventType string, n int) {
	t.Helper()
	s := engine.Submission{TenantID: srv.Tenant}
	for i := range n {
		s.Events = append(s.Events, engine.Publication{Type: eventType, ContentType: "application/json", Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	_, err := srv.App.Engine().Submit(context.Background(), s)
	must(t, err)
}

// startsOf lists the start times of the attempts to an endpoint, in order, and checks that each was a delivery's first.
func startsOf(t *testing.T, srv *apptest.Server, ep apptest.Endpoint) (starts []time.Time) {
	t.Helper()
	ctx, st := context.Background(), srv.App.Store()
	page := store.Page{Limit: 200}
	for {
		list, err := st.ListDeliveries(ctx, store.DeliveryFilter{TenantID: srv.Tenant, EndpointID: ep.ID}, page)
		must(t, err)
		for _, d := range list {
			attempts, err := st.Attempts(ctx, srv.Tenant, d.ID)
			must(t, err)
			for _, a := range attempts {
				starts = append(starts, a.StartedAt)
				if a.N != 1 || a.Trigger != godwit.TriggerAccept {
					t.Errorf("attempt %+v", a)
				}
			}
		}
		if len(list) < page.Limit {
			slices.SortFunc(starts, time.Time.Compare)
			return starts
		}
		page.After = list[len(list)-1].ID
	}
}

// most returns the largest number of starts in any period of the given length.
func most(starts []time.Time, per time.Duration) (n int) {
	for i, j := 0, 0; j < len(starts); j++ {
		for starts[j].Sub(starts[i]) >= per {
			i++
		}
		n = max(n, j-i+1)
	}
	return n
}

// 1500 events for one endpoint: a hundred a second, a thousand a minute, the rest in the next minute. Waiting uses up no
// attempt.
func TestEndpointLimits(t *testing.T) {
	trace.Covers(t, "CCW-LIM-1", "CCW-LIM-3", "CCW-LIM-4", "CCW-LIM-5", "CCW-RTY-10", "CCW-HTTP-19")
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"), dialect("cybercube", "project.*"))
	const events = 1500
	flood(t, srv, "project.created", events)
	sent := 0
	for second := 0; sent < events; second++ {
		if second%60 < 10 {
			sent += 100
		}
		seen := sink.Wait(sent)
		if second == 0 {
			told := seen[99].Header
			if told.Get("X-RateLimit-Limit") != "1000" || told.Get("X-RateLimit-Reset") != strconv.FormatInt(start.Add(time.Minute).Unix(), 10) {
				t.Errorf("told %v", told)
			}
			var remaining []int
			for i := range seen {
				n, err := strconv.Atoi(seen[i].Header.Get("X-RateLimit-Remaining"))
				must(t, err)
				remaining = append(remaining, n)
			}
			slices.Sort(remaining)
			if remaining[0] != 900 || remaining[99] != 999 || len(slices.Compact(remaining)) != 100 {
				t.Errorf("told of %v left", remaining)
			}
		}
		srv.Advance(500 * time.Millisecond)
		srv.Advance(500 * time.Millisecond)
	}
	starts := waitStarts(t, srv, ep, events)
	if second, minute := most(starts, time.Second), most(starts, time.Minute); second != 100 || minute != 1000 {
		t.Errorf("at most %d a second and %d a minute", second, minute)
	}
	if last := starts[events-1]; !last.Equal(stored(start.Add(64 * time.Second))) {
		t.Errorf("the last one started at %s", last)
	}
	if h, _ := srv.App.Engine().Health(ep.ID); h.Streak != 0 || h.Accepted != events {
		t.Errorf("health %+v", h)
	}
}

func waitStarts(t *testing.T, srv *apptest.Server, ep apptest.Endpoint, n int) []time.Time {
	t.Helper()
	srv.WaitRecorded("all attempts", func() bool {
		h, _ := srv.App.Engine().Health(ep.ID)
		left, err := srv.App.Store().CountPending(context.Background(), ep.ID)
		must(t, err)
		return h.Accepted == int64(n) && left == 0
	}, func() string { h, _ := srv.App.Engine().Health(ep.ID); return fmt.Sprintf("%+v", h) })
	return startsOf(t, srv, ep)
}

// An account's endpoints share one limit evenly, however many deliveries one of them has waiting.
func TestAccountLimit(t *testing.T) {
	trace.Covers(t, "CCW-LIM-2")
	p, err := profile.Lookup("cybercube")
	must(t, err)
	if n := p.Defaults().AccountPerMinute; n != 10000 {
		t.Fatalf("by default %d a minute", n)
	}
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	const perMinute = 20
	var eps []apptest.Endpoint
	for i, events := range []int{60, 10, 10} {
		name := fmt.Sprint("e", i)
		fields := dialect("cybercube", name)
		fields["policy"] = map[string]any{"account_per_minute": perMinute}
		eps = append(eps, srv.Endpoint(sink.URL("/"+name), fields))
		flood(t, srv, name, events)
	}
	other := srv.Endpoint(sink.URL("/other"), dialect("eds", "other")) // not subject to the account's limit
	srv.WaitDelivery(srv.Publish("other", `{}`), other, godwit.DeliveryAccepted)
	for minute := range 4 {
		sink.Wait(1 + perMinute*(minute+1))
		srv.Advance(30 * time.Second)
		srv.Advance(31 * time.Second) // a start counts a little longer than a minute
	}
	var all []time.Time
	for i, events := range []int{60, 10, 10} {
		all = append(all, waitStarts(t, srv, eps[i], events)...)
	}
	slices.SortFunc(all, time.Time.Compare)
	if n := most(all, time.Minute); n != perMinute || len(all) != 80 {
		t.Errorf("%d in a minute, %d in all", n, len(all))
	}
	// The first endpoint had used all of the first minute when the others came. From then on they take turns.
	for i := 1; i < 3; i++ {
		if starts := startsOf(t, srv, eps[i]); !starts[9].Before(start.Add(3 * time.Minute)) {
			t.Errorf("endpoint %d had to wait until %s", i, starts[9])
		}
	}
}

// A limit that is removed or lowered takes effect at once for waiting deliveries.
func TestChangedLimit(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	limited := func(perMinute, account int) map[string]any {
		return map[string]any{"policy": map[string]any{"per_minute": perMinute, "account_per_minute": account}}
	}
	fields := dialect("cybercube", "project.*")
	fields["policy"] = limited(3, 1000)["policy"]
	ep := srv.Endpoint(sink.URL("/"), fields)
	flood(t, srv, "project.created", 20)
	sink.Wait(3)
	srv.EndpointCall(ep, "PATCH", "", limited(5, 1000)) // three of them are used up
	sink.Wait(5)
	srv.EndpointCall(ep, "PATCH", "", limited(0, 8))
	sink.Wait(8)
	srv.EndpointCall(ep, "PATCH", "", limited(0, 0))
	if starts := waitStarts(t, srv, ep, 20); most(starts, time.Second) != 20 {
		t.Errorf("starts %v", starts) // all without a move of the clock
	}
	if n := len(sink.Requests("/")); n != 20 {
		t.Errorf("%d requests", n)
	}
}

// Waiting deliveries and the counts of a limit survive a restart: no endpoint gets more than its limit.
func TestLimitOverARestart(t *testing.T) {
	trace.Covers(t, "CCW-LIM-4")
	for name, fields := range map[string]map[string]any{
		"endpoint": {"per_minute": 5},
		"account":  {"account_per_minute": 5},
	} {
		t.Run(name, func(t *testing.T) {
			hands := clock.NewManual(start)
			srv := boot(t, &tampered{}, hands, nil)
			sink := apptest.NewSink(t)
			limited := dialect("cybercube", "project.*")
			limited["policy"] = fields
			ep := srv.Endpoint(sink.URL("/"), limited)
			flood(t, srv, "project.created", 12)
			sink.Wait(5)
			must(t, srv.Stop())
			again := srv
			for range 3 {
				must(t, again.Stop()) // first: starts that a stopping server has taken and not used count as made
				hands.Advance(21 * time.Second)
				again = reboot(t, srv, hands)
			}
			sink.Wait(10)
			again.Advance(61 * time.Second)
			sink.Wait(12)
			starts := waitStarts(t, again, ep, 12)
			if n := most(starts, time.Minute); n != 5 || len(starts) != 12 {
				t.Errorf("%d in a minute, %d in all", n, len(starts))
			}
		})
	}
}

// An endpoint's limit for a second holds across a restart, although the stored counts are by the minute.
func TestSecondLimitOverARestart(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"per_second": 5}))
	flood(t, srv, "project.created", 12)
	sink.Wait(5)
	must(t, srv.Stop())
	hands.Advance(500 * time.Millisecond)
	again := reboot(t, srv, hands)
	for _, sent := range []int{10, 12} {
		again.Advance(500 * time.Millisecond)
		sink.Wait(sent)
		again.Advance(500 * time.Millisecond)
	}
	starts := waitStarts(t, again, ep, 12)
	if n := most(starts, time.Second); n != 5 || len(starts) != 12 {
		t.Errorf("%d in a second, %d in all", n, len(starts))
	}
}

// Many lanes wait for one account's limit with few slots, while their endpoints are paused, resumed and changed: every
// delivery is sent once, and every lane gets its turn.
func TestLimitsUnderChange(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{TimeScale: 6000, Tune: func(c *engine.Config) { c.MaxInFlight, c.Window = 3, 16 }})
	sink := apptest.NewSink(t)
	const lanes, events = 5, 40
	var eps []apptest.Endpoint
	for i := range lanes {
		fields := dialect("cybercube", fmt.Sprint("e", i))
		fields["policy"] = map[string]any{"per_minute": 7, "account_per_minute": 20}
		eps = append(eps, srv.Endpoint(sink.URL("/"), fields))
	}
	var wg sync.WaitGroup
	for i := range lanes {
		wg.Go(func() { flood(t, srv, fmt.Sprint("e", i), events) })
		wg.Go(func() {
			for n := range 10 {
				srv.EndpointCall(eps[i], "POST", "/pause", nil)
				srv.EndpointCall(eps[i], "PATCH", "", map[string]any{"policy": map[string]any{"per_minute": 5 + n%3, "account_per_minute": 10 * (n % 4)}})
				srv.EndpointCall(eps[i], "POST", "/resume", nil)
			}
		})
	}
	wg.Wait()
	sink.Wait(lanes * events)
	for _, ep := range eps {
		waitStarts(t, srv, ep, events)
	}
	if n := len(sink.Requests("")); n != lanes*events {
		t.Errorf("%d requests for %d events", n, lanes*events)
	}
}
