package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Cases for the engine's writes to endpoints besides results.
var engineCases = []testCase{
	{"health is replaced as a whole row", engineHealth},
	{"health of an endpoint without outcomes", engineHealthEmpty},
	{"reset of health", engineResetHealth},
	{"disable", engineDisable},
	{"enable after a time of rest", engineEnable},
	{"shorten a rest", engineShortenRest},
	{"enable leaves what a person has changed", engineEnableRefused},
	{"move", engineMove},
}

func makeHealth(f *fixture) godwit.Health {
	var recent godwit.Recent
	for i := range 90 {
		recent.Add(f.now.Add(time.Duration(i-90)*time.Minute), time.Minute, i%3 == 0)
	}
	return godwit.Health{
		Streak: 9, DegradedAt: f.now.Add(-time.Minute), Recent: recent,
		EndpointID: f.endpoint, ConsecutiveFailures: 3, ConsecutiveTerminal: 2, Accepted: 1 << 40, Transient: 5, Terminal: 6,
		LastAcceptedAt: f.now.Add(-time.Hour), LastFailureAt: f.now.Add(-time.Second), LastReason: godwit.ReasonStatus,
		AvgDurationMS: 12.5, HoldUntil: f.now.Add(time.Minute), SunsetAt: f.now.Add(time.Hour),
		CircuitOpenAt: f.now.Add(-time.Second), ProbeAt: f.now.Add(30 * time.Second), UpdatedAt: f.now,
	}
}

func engineHealth(t *testing.T, f *fixture) {
	full := makeHealth(f)
	f.commit(&store.Batch{Health: []godwit.Health{full}})
	same(t, "health", got(f.s.Health(f.ctx, f.endpoint))(t), &full)
	bare := godwit.Health{EndpointID: f.endpoint, Accepted: 1, UpdatedAt: f.tick(time.Second)}
	f.commit(&store.Batch{Health: []godwit.Health{bare}})
	same(t, "health", got(f.s.Health(f.ctx, f.endpoint))(t), &bare)
	same(t, "loaded health", got(f.s.LoadEndpoint(f.ctx, f.endpoint))(t).Health, bare)
}

func engineHealthEmpty(t *testing.T, f *fixture) {
	same(t, "health", got(f.s.Health(f.ctx, f.endpoint))(t), &godwit.Health{EndpointID: f.endpoint})
	_, err := f.s.Health(f.ctx, mint[godwit.EndpointID](f.now))
	f.is(err, store.ErrNotFound)
	f.must(f.s.ResetHealth(f.ctx, f.endpoint, f.now))
}

func engineResetHealth(t *testing.T, f *fixture) {
	h := makeHealth(f)
	f.commit(&store.Batch{Health: []godwit.Health{h}})
	f.tick(time.Minute)
	f.must(f.s.ResetHealth(f.ctx, f.endpoint, f.now))
	h.ConsecutiveFailures, h.ConsecutiveTerminal, h.Streak = 0, 0, 0
	h.HoldUntil, h.CircuitOpenAt, h.ProbeAt, h.UpdatedAt = time.Time{}, time.Time{}, time.Time{}, f.now
	same(t, "health", got(f.s.Health(f.ctx, f.endpoint))(t), &h)
}

func engineDisable(t *testing.T, f *fixture) {
	before := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	f.tick(time.Minute)
	f.commit(&store.Batch{Changes: []store.EndpointChange{{EndpointID: f.endpoint, Disable: "endpoint-gone"}}})
	want := *before
	want.Status, want.StatusReason, want.StatusAt, want.UpdatedAt = godwit.EndpointDisabled, "endpoint-gone", f.now, f.now
	want.Version++
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)

	f.tick(time.Minute)
	f.commit(&store.Batch{Changes: []store.EndpointChange{
		{EndpointID: f.endpoint, Disable: "again"}, {EndpointID: mint[godwit.EndpointID](f.now), Disable: "unknown"},
	}})
	same(t, "endpoint that was disabled before", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)

	want.Status, want.StatusReason = godwit.EndpointPaused, "owner"
	want.Version++
	f.must(f.s.UpdateEndpoint(f.ctx, &want))
	f.commit(&store.Batch{Changes: []store.EndpointChange{{EndpointID: f.endpoint, Disable: "again"}}})
	same(t, "paused endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
}

func engineEnable(t *testing.T, f *fixture) {
	h := makeHealth(f)
	rest := f.now.Add(24 * time.Hour)
	want := *got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	f.commit(&store.Batch{
		Health: []godwit.Health{h}, Changes: []store.EndpointChange{{EndpointID: f.endpoint, Disable: "failures", ReenableAt: rest}},
	})
	want.Status, want.StatusReason, want.StatusAt, want.UpdatedAt = godwit.EndpointDisabled, "failures", f.now, f.now
	want.ReenableAt = rest
	want.Version++
	same(t, "disabled", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	same(t, "loaded", got(f.s.LoadEndpoint(f.ctx, f.endpoint))(t).Endpoint, want)

	enable := &store.Batch{Changes: []store.EndpointChange{{EndpointID: f.endpoint, Enable: true}}}
	f.now = rest.Add(-time.Microsecond)
	enable.Now = f.now
	f.commit(enable)
	same(t, "too early", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	same(t, "its health", got(f.s.Health(f.ctx, f.endpoint))(t), &h)

	f.now, enable.Now = rest, rest
	f.commit(enable)
	want.Status, want.StatusReason, want.StatusAt, want.UpdatedAt = godwit.EndpointActive, "", f.now, f.now
	want.ReenableAt = time.Time{}
	want.Version++
	same(t, "enabled", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	h.ConsecutiveFailures, h.ConsecutiveTerminal, h.Streak = 0, 0, 0
	h.HoldUntil, h.CircuitOpenAt, h.ProbeAt, h.UpdatedAt = time.Time{}, time.Time{}, time.Time{}, f.now
	same(t, "health", got(f.s.Health(f.ctx, f.endpoint))(t), &h)

	enable.Now = f.tick(time.Hour)
	f.commit(enable)
	same(t, "enabled again", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	same(t, "health of an active one", got(f.s.Health(f.ctx, f.endpoint))(t), &h)
}

func engineShortenRest(t *testing.T, f *fixture) {
	ahead, early := f.now.Add(24*time.Hour), f.now.Add(time.Hour)
	want := *got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	shorten := func(until time.Time) {
		f.commit(&store.Batch{Now: f.now, Changes: []store.EndpointChange{{EndpointID: f.endpoint, RestUntil: until}}})
	}
	shorten(early)
	same(t, "active endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	f.commit(&store.Batch{Now: ahead, Changes: []store.EndpointChange{
		{EndpointID: f.endpoint, Disable: "failures", ReenableAt: ahead.Add(time.Hour)},
	}})
	shorten(early)
	want.Status, want.StatusReason, want.StatusAt, want.UpdatedAt, want.ReenableAt = godwit.EndpointDisabled, "failures", f.now, f.now, early
	want.Version += 2
	same(t, "shortened", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	shorten(early.Add(time.Minute))
	same(t, "a rest does not become longer", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	want.ReenableAt = time.Time{}
	want.Version++
	f.must(f.s.UpdateEndpoint(f.ctx, &want))
	shorten(early)
	same(t, "disabled for good", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
}

func engineEnableRefused(t *testing.T, f *fixture) {
	for name, change := range map[string]func(e *godwit.Endpoint){
		"paused":            func(e *godwit.Endpoint) { e.Status, e.ReenableAt = godwit.EndpointPaused, time.Time{} },
		"active":            func(e *godwit.Endpoint) { e.Status, e.ReenableAt = godwit.EndpointActive, time.Time{} },
		"deleted":           func(e *godwit.Endpoint) { e.Status = godwit.EndpointDeleted },
		"disabled later":    func(e *godwit.Endpoint) { e.ReenableAt = f.now.Add(48 * time.Hour) },
		"disabled for good": func(e *godwit.Endpoint) { e.ReenableAt = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			id := f.newEndpoint()
			rest := f.now.Add(24 * time.Hour)
			f.commit(&store.Batch{Changes: []store.EndpointChange{{EndpointID: id, Disable: "failures", ReenableAt: rest}}})
			e := got(f.s.Endpoint(f.ctx, f.tenant, id))(t)
			change(e)
			e.Version++
			f.must(f.s.UpdateEndpoint(f.ctx, e))
			f.now = rest
			f.commit(&store.Batch{Changes: []store.EndpointChange{{EndpointID: id, Enable: true}}})
			same(t, "endpoint", got(f.s.LoadEndpoint(f.ctx, id))(t).Endpoint, *e)
		})
	}
}

func engineMove(t *testing.T, f *fixture) {
	want := *got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	f.tick(time.Minute)
	move := func(from, to string) {
		f.commit(&store.Batch{Changes: []store.EndpointChange{{EndpointID: f.endpoint, MoveFrom: from, MoveTo: to}}})
	}
	move("https://another.example/", "https://new.example/")
	same(t, "endpoint that has changed its URL since", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
	move(want.URL, "https://new.example/")
	want.URL, want.UpdatedAt = "https://new.example/", f.now
	want.Version++
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &want)
}
