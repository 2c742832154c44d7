package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

var statsCases = []testCase{
	{"counts what a batch stores, folded or not", statsCounted},
	{"a repeated batch counts once", statsRepeated},
	{"refused accepts and results count nothing", statsRefused},
	{"minutes, hours and days", statsLevels},
	{"tenants and environments are apart", statsApart},
	{"many endpoints are folded in steps", statsManyEndpoints},
	{"endpoints that are named count once", statsNamed},
	{"causes of failures", statsCauses},
	{"those of a deleted tenant go", statsOfDeleted},
	{"old pages are swept", statsSwept},
	{"begins once", statsBegun},
	{"counts the backlog", statsBacklog},
}

// fold folds the whole log, and returns the number of steps.
func (f *fixture) fold(apply bool) (steps int) {
	f.t.Helper()
	for {
		step := got(f.s.FoldStats(f.ctx, store.StatsFold{Apply: apply}))(f.t)
		if step.Aside != 0 || step.Damaged != 0 {
			f.t.Fatalf("fold: %+v", step)
		}
		if !step.More {
			return steps
		}
		steps++
	}
}

// history reads the only series of a selection, in the hour around now.
func (f *fixture) history(sel stats.Selection) *stats.Series {
	f.t.Helper()
	hour := f.now.Unix() / 3600 * 3600
	list, _, err := stats.Read(f.ctx, f.s, sel, stats.Range{Level: stats.Minute, Since: hour - 3600, Until: hour + 7200})
	f.must(err)
	switch len(list) {
	case 0:
		return &stats.Series{}
	case 1:
		return list[0]
	}
	f.t.Fatalf("%d series", len(list))
	return nil
}

func ofEndpoint(f *fixture, id godwit.EndpointID) stats.Selection {
	return stats.Selection{Kind: stats.OfEndpoint, Owner: f.tenant, Endpoints: []godwit.EndpointID{id}}
}

// counted compares counts before and after folding.
func (f *fixture) counted(what string, sel stats.Selection, want stats.Counts) {
	f.t.Helper()
	same(f.t, what, f.history(sel).Total.Counts, want)
}

func statsCounted(t *testing.T, f *fixture) {
	second := f.newEndpoint()
	f.accept(f.fanOut(f.makeEvent(), f.endpoint, second), store.NewEvent{Event: f.makeEvent()})
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryPending)
	f.record(r)
	f.tick(2 * time.Minute)
	f.record(f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted), f.attempted(f.claimOne(second), godwit.DeliveryTerminal))
	f.record(store.Result{Delivery: f.claimOne(f.acceptFor(second)).Delivery, Epoch: f.epoch(second)}) // returned without an attempt
	check := func(when string) {
		t.Helper()
		of := func(kind stats.Kind, owner [16]byte) stats.Selection {
			return stats.Selection{Kind: kind, Owner: owner}
		}
		all := stats.Counts{Events: 3, Acknowledged: 1, Failed: 2, Dead: 1}
		f.counted(when+": server", of(stats.OfServer, [16]byte{}), all)
		f.counted(when+": environment", of(stats.OfEnvironment, godwit.DefaultEnvironment), all)
		f.counted(when+": tenant", of(stats.OfTenant, f.tenant), all)
		f.counted(when+": first endpoint", ofEndpoint(f, f.endpoint), stats.Counts{Events: 1, Acknowledged: 1, Failed: 1})
		f.counted(when+": second endpoint", ofEndpoint(f, second), stats.Counts{Events: 2, Failed: 1, Dead: 1})
		if n := len(f.history(ofEndpoint(f, f.endpoint)).Total.Latency); n != 1 {
			t.Errorf("%s: %d latencies", when, n)
		}
	}
	check("log")
	f.fold(false)
	check("merged")
	f.fold(true)
	check("folded")
	if n := f.fold(true); n != 0 {
		t.Errorf("%d steps were left", n)
	}
	check("folded again")
}

// acceptFor stores an event for an endpoint, and returns the endpoint.
func (f *fixture) acceptFor(id godwit.EndpointID) godwit.EndpointID {
	f.accept(f.fanOut(f.makeEvent(), id))
	return id
}

func statsRepeated(t *testing.T, f *fixture) {
	plain := f.fanOut(f.makeEvent(), f.endpoint)
	keyed, _ := keyedAccept(f, makeRecord(f, "key"))
	f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	b := &store.Batch{Now: f.now, Accepts: []store.Accept{{Events: []store.NewEvent{plain}}, keyed}, Results: []store.Result{r}}
	f.commit(b)
	sel := stats.Selection{Kind: stats.OfTenant, Owner: f.tenant}
	want := stats.Counts{Events: 3, Acknowledged: 1}
	f.counted("once", sel, want)
	f.commit(b)
	f.fold(true)
	f.commit(b)
	f.counted("three times", sel, want)
}

func statsRefused(t *testing.T, f *fixture) {
	first, _ := keyedAccept(f, makeRecord(f, "key"))
	f.commit(&store.Batch{Accepts: []store.Accept{first}})
	other, _ := keyedAccept(f, makeRecord(f, "key"))
	f.commit(&store.Batch{Accepts: []store.Accept{other}})
	f.acceptOne()
	late := f.attempted(f.claim(f.endpoint, 10).Work[0], godwit.DeliveryAccepted)
	late.Epoch++
	f.commit(&store.Batch{Results: []store.Result{late}})
	f.counted("refused", stats.Selection{Kind: stats.OfTenant, Owner: f.tenant}, stats.Counts{Events: 2})
}

func statsLevels(t *testing.T, f *fixture) {
	begin := godwit.DayOf(f.now).AddDate(0, 0, 1)
	commits := []time.Duration{0, 59 * time.Second, time.Minute, 59*time.Minute + 59*time.Second, time.Hour, 23*time.Hour + 59*time.Minute, 24 * time.Hour, 40 * 24 * time.Hour}
	for i, after := range commits {
		f.now = begin.Add(after)
		f.accept(store.NewEvent{Event: f.makeEvent()})
		if i%3 == 0 {
			f.fold(i%2 == 0)
		}
	}
	sel := stats.Selection{Kind: stats.OfTenant, Owner: f.tenant}
	points := func(level stats.Level, since, until time.Duration) (found []int64) {
		t.Helper()
		list, _, err := stats.Read(f.ctx, f.s, sel, stats.Range{Level: level, Since: begin.Add(since).Unix(), Until: begin.Add(until).Unix()})
		f.must(err)
		for _, s := range list {
			for i := range s.Points {
				if n := s.Points[i].Events; n != 0 {
					found = append(found, int64(i), n)
				}
			}
		}
		return found
	}
	check := func(when string) {
		t.Helper()
		same(t, when+": minutes", points(stats.Minute, 0, 2*time.Hour), []int64{0, 2, 1, 1, 59, 1, 60, 1})
		same(t, when+": some minutes", points(stats.Minute, time.Minute, time.Hour), []int64{0, 1, 58, 1})
		same(t, when+": hours", points(stats.Hour, 0, 48*time.Hour), []int64{0, 4, 1, 1, 23, 1, 24, 1})
		same(t, when+": days", points(stats.Day, -24*time.Hour, 50*24*time.Hour), []int64{1, 6, 2, 1, 41, 1})
		for _, level := range stats.Levels {
			_, n, _, err := stats.Top(f.ctx, f.s, stats.Selection{Kind: stats.OfTenant}, stats.Range{Level: level, Since: begin.Unix(), Until: begin.Add(48 * time.Hour).Unix()}, 10)
			f.must(err)
			same(t, when+": tenants", n, 1)
		}
	}
	check("partly folded")
	f.fold(true)
	check("folded")
}

func statsApart(t *testing.T, f *fixture) {
	other := f.newTenant()
	e := f.makeEvent()
	e.TenantID = other
	f.accept(store.NewEvent{Event: e}, f.fanOut(f.makeEvent(), f.endpoint))
	f.record(f.attempted(f.claimOne(f.endpoint), godwit.DeliveryTerminal))
	hour := f.now.Unix() / 3600 * 3600
	r := stats.Range{Level: stats.Minute, Since: hour, Until: hour + 7200}
	for _, when := range []string{"log", "folded"} {
		list, all, _, err := stats.Top(f.ctx, f.s, stats.Selection{Kind: stats.OfTenant, Environment: godwit.DefaultEnvironment}, r, 1)
		f.must(err)
		if all != 2 || len(list) != 1 || list[0].Tenant != f.tenant || list[0].Total.Failed != 1 {
			t.Fatalf("%s: %d tenants, %+v", when, all, list)
		}
		list, all, _, err = stats.Top(f.ctx, f.s, stats.Selection{Kind: stats.OfEndpoint}, r, 10)
		f.must(err)
		if all != 1 || list[0].Endpoint != f.endpoint || list[0].Tenant != f.tenant || list[0].Total.Dead != 1 {
			t.Fatalf("%s: %d endpoints, %+v", when, all, list)
		}
		_, all, _, err = stats.Top(f.ctx, f.s, stats.Selection{Kind: stats.OfEndpoint, Owner: other}, r, 10)
		f.must(err)
		same(t, when+": endpoints of the other", all, 0)
		_, all, _, err = stats.Top(f.ctx, f.s, stats.Selection{Kind: stats.OfTenant, Environment: mint[godwit.EnvironmentID](f.now)}, r, 10)
		f.must(err)
		same(t, when+": of another environment", all, 0)
		f.fold(true)
	}
}

func statsManyEndpoints(t *testing.T, f *fixture) {
	n := f.fanOut(f.makeEvent())
	const count = 3*store.StatsRowEntries + 1
	for range count {
		n.Deliveries = append(n.Deliveries, store.NewDelivery{ID: mint[godwit.DeliveryID](f.now), EndpointID: mint[godwit.EndpointID](f.now), Trigger: godwit.TriggerAccept})
	}
	f.accept(n)
	f.acceptOne()
	if steps := f.fold(true); steps < 4 {
		t.Errorf("folded in %d steps", steps)
	}
	sel := stats.Selection{Kind: stats.OfEndpoint, Owner: f.tenant}
	hour := f.now.Unix() / 3600 * 3600
	list, all, _, err := stats.Top(f.ctx, f.s, sel, stats.Range{Level: stats.Hour, Since: hour, Until: hour + 3600}, 5)
	f.must(err)
	if all != count+1 || len(list) != 5 || list[0].Total.Events != 1 {
		t.Errorf("%d endpoints, %d shown", all, len(list))
	}
	f.counted("tenant", stats.Selection{Kind: stats.OfTenant, Owner: f.tenant}, stats.Counts{Events: 2})
}

func statsNamed(t *testing.T, f *fixture) {
	second := f.newEndpoint()
	f.accept(f.fanOut(f.makeEvent(), f.endpoint, second))
	f.accept(f.fanOut(f.makeEvent(), second))
	f.record(f.attempted(f.claimOne(f.endpoint), godwit.DeliveryTerminal))
	hour := f.now.Unix() / 3600 * 3600
	r := stats.Range{Level: stats.Minute, Since: hour, Until: hour + 3600}
	for _, when := range []string{"log", "pages"} {
		for _, owner := range []godwit.TenantID{f.tenant, {}} {
			sel := stats.Selection{Kind: stats.OfEndpoint, Owner: owner, Endpoints: []godwit.EndpointID{f.endpoint, second, f.endpoint}}
			list, all, _, err := stats.Top(f.ctx, f.s, sel, r, 1)
			f.must(err)
			if all != 2 || len(list) != 1 || list[0].Endpoint != f.endpoint || list[0].Total.Counts != (stats.Counts{Events: 1, Failed: 1, Dead: 1}) {
				t.Errorf("%s: %d endpoints, the first %+v", when, all, list)
			}
			list, _, err = stats.Read(f.ctx, f.s, sel, r)
			f.must(err)
			if len(list) != 2 || list[0].Total.Events != 1 || list[1].Total.Events != 2 {
				t.Errorf("%s: %+v", when, list)
			}
			causes, _, err := stats.Failures(f.ctx, f.s, sel, r)
			f.must(err)
			if len(causes) != 1 || causes[0].Count != 1 {
				t.Errorf("%s: %d causes", when, len(causes))
			}
		}
		f.fold(true)
	}
}

func statsCauses(t *testing.T, f *fixture) {
	second := f.newEndpoint()
	attempt := func(id godwit.EndpointID, reason godwit.Reason, status int) {
		f.tick(2 * time.Minute)
		f.accept(f.fanOut(f.makeEvent(), id))
		r := f.attempted(f.claimOne(id), godwit.DeliveryTerminal)
		r.Attempt.Verdict.Outcome, r.Attempt.Verdict.Reason, r.Attempt.Status = godwit.Terminal, reason, status
		r.Attempt.StartedAt, r.Attempt.Duration = f.now, 0
		f.record(r)
	}
	begin := f.now
	attempt(f.endpoint, godwit.Reason(godwit.FailureTLSVerify), 0)
	attempt(f.endpoint, godwit.ReasonStatus, 503)
	f.fold(true)
	first := f.now
	attempt(second, godwit.ReasonStatus, 503)
	attempt(second, godwit.ReasonStatus, 503)
	f.fold(true)
	attempt(second, godwit.ReasonUnauthorized, 401)
	r := stats.Range{Level: stats.Minute, Since: begin.Unix() / 60 * 60, Until: f.now.Unix()/60*60 + 60}
	list, _, err := stats.Failures(f.ctx, f.s, stats.Selection{Owner: f.tenant}, r)
	f.must(err)
	var text []string
	for _, c := range list {
		text = append(text, fmt.Sprint(c.Kind, c.Status, c.Count, c.Endpoints))
	}
	same(t, "causes", text, []string{"server-error 503 3 2", "certificate 0 1 1", "client-error 401 1 1"})
	if list[0].Example != second || list[0].First != first.Unix() || list[0].Last != first.Add(4*time.Minute).Unix() {
		t.Errorf("example %s, seen %d to %d; first failure %d", list[0].Example, list[0].First, list[0].Last, first.Unix())
	}
	r.Since = first.Add(2*time.Minute).Unix() / 60 * 60
	list, _, err = stats.Failures(f.ctx, f.s, stats.Selection{Owner: f.tenant, Endpoints: []godwit.EndpointID{second}}, r)
	f.must(err)
	if len(list) != 2 || list[0].Count != 2 || list[0].Endpoints != 1 {
		t.Errorf("of the second endpoint: %+v", list)
	}
}

func statsOfDeleted(t *testing.T, f *fixture) {
	f.accept(f.fanOut(f.makeEvent(), f.endpoint))
	f.fold(true)
	f.accept(f.fanOut(f.makeEvent(), f.endpoint))
	got(RemoveTenant(f.ctx, f.s, f.tenant, f.now))(t)
	f.fold(true)
	for more := true; more; {
		_, left, err := f.s.SweepStats(f.ctx, store.StatsSweep{Limit: 2})
		f.must(err)
		more = left
	}
	f.counted("tenant", stats.Selection{Kind: stats.OfTenant, Owner: f.tenant}, stats.Counts{})
	f.counted("endpoint", ofEndpoint(f, f.endpoint), stats.Counts{})
	f.counted("server", stats.Selection{Kind: stats.OfServer}, stats.Counts{Events: 2})
	_, all, _, err := stats.Top(f.ctx, f.s, stats.Selection{Kind: stats.OfTenant}, stats.Range{Level: stats.Day, Since: 0, Until: 1 << 32 / 86400 * 86400}, 10)
	f.must(err)
	same(t, "tenants", all, 0)
}

func statsSwept(t *testing.T, f *fixture) {
	f.accept(store.NewEvent{Event: f.makeEvent()})
	f.fold(true)
	old := f.now
	f.tick(3 * time.Hour)
	f.accept(store.NewEvent{Event: f.makeEvent()})
	f.fold(true)
	sw := store.StatsSweep{Limit: 1}
	sw.Before[stats.Minute] = f.now.Add(-time.Hour)
	removed := int64(0)
	for more := true; more; {
		n, left, err := f.s.SweepStats(f.ctx, sw)
		f.must(err)
		removed, more = removed+n, left
	}
	same(t, "removed pages: of the server, the environment and the tenant", removed, int64(3))
	count := func(level stats.Level) (n int64) {
		list, _, err := stats.Read(f.ctx, f.s, stats.Selection{Kind: stats.OfServer}, stats.Range{
			Level: level, Since: old.Unix() / 86400 * 86400, Until: (f.now.Unix()/86400 + 1) * 86400})
		f.must(err)
		for _, s := range list {
			n += s.Total.Events
		}
		return n
	}
	same(t, "minutes left", count(stats.Minute), int64(1))
	same(t, "hours left", count(stats.Hour), int64(2))
}

func statsBegun(t *testing.T, f *fixture) {
	began := func() time.Time {
		return got(f.s.ReadStats(f.ctx, stats.Selection{Kind: stats.OfServer}, func(*stats.Page) error { return nil }))(t).Began
	}
	if at := began(); !at.IsZero() {
		t.Errorf("began at %s", at)
	}
	f.must(f.s.BeginStats(f.ctx, f.now))
	f.must(f.s.BeginStats(f.ctx, f.now.Add(time.Hour)))
	if at := began(); !at.Equal(f.now) {
		t.Errorf("began at %s", at)
	}
}

func statsBacklog(t *testing.T, f *fixture) {
	count := func(filter store.BacklogFilter) store.Backlog {
		t.Helper()
		filter.UpTo = 3
		b := *got(f.s.CountBacklog(f.ctx, filter))(t)
		b.OldestAt = b.OldestAt.UTC()
		return b
	}
	same(t, "none", count(store.BacklogFilter{}), store.Backlog{Healthy: 1})
	first := f.now
	f.acceptOne()
	f.tick(time.Minute)
	paused := f.makeEndpoint()
	paused.Status = godwit.EndpointPaused
	f.must(f.s.CreateEndpoint(f.ctx, paused, nil))
	f.acceptFor(paused.ID)
	want := store.Backlog{Waiting: 2, OldestAt: first.UTC(), Healthy: 1, Paused: 1}
	same(t, "all", count(store.BacklogFilter{}), want)
	same(t, "of the tenant", count(store.BacklogFilter{Tenant: f.tenant}), want)
	same(t, "of the environment", count(store.BacklogFilter{Environment: godwit.DefaultEnvironment}), want)
	same(t, "of another tenant", count(store.BacklogFilter{Tenant: f.newTenant()}), store.Backlog{})
	f.acceptOne()
	f.acceptOne()
	want.Waiting = 3
	same(t, "up to a bound", count(store.BacklogFilter{}), want)
	r := f.attempted(f.claim(f.endpoint, 1).Work[0], godwit.DeliveryAccepted)
	f.commit(&store.Batch{Results: []store.Result{r}, Health: []godwit.Health{{EndpointID: f.endpoint, Streak: 1}}})
	b := count(store.BacklogFilter{})
	if b.Failing != 1 || b.Healthy != 0 {
		t.Errorf("after a failure: %+v", b)
	}
	// A list of endpoints by health has those that are counted.
	listed := func(h store.EndpointHealth) int {
		return len(got(f.s.ListEndpoints(f.ctx, store.EndpointFilter{TenantID: f.tenant, Health: h}, store.Page{Limit: 9}))(t))
	}
	same(t, "listed after a failure", []int{listed(store.HealthHealthy), listed(store.HealthFailing), listed(store.HealthOpen)}, []int{0, 1, 0})
	f.commit(&store.Batch{Results: []store.Result{f.attempted(f.claim(f.endpoint, 1).Work[0], godwit.DeliveryAccepted)},
		Health: []godwit.Health{{EndpointID: f.endpoint, Streak: 9, CircuitOpenAt: f.now}}})
	if b := count(store.BacklogFilter{}); b.Open != 1 || b.Failing != 0 {
		t.Errorf("with an open circuit: %+v", b)
	}
	same(t, "listed with an open circuit", []int{listed(store.HealthHealthy), listed(store.HealthFailing), listed(store.HealthOpen)}, []int{0, 0, 1})
}
