package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// What the engine writes about endpoints beside results.
var engineCases = []testCase{
	{"health is replaced as a whole row", engineHealth},
	{"health of an endpoint without outcomes", engineHealthEmpty},
	{"reset of health", engineResetHealth},
	{"disable", engineDisable},
	{"move", engineMove},
}

func (f *fixture) makeHealth() godwit.Health {
	return godwit.Health{
		EndpointID: f.endpoint, ConsecutiveFailures: 3, ConsecutiveTerminal: 2, Accepted: 1 << 40, Transient: 5, Terminal: 6,
		LastAcceptedAt: f.now.Add(-time.Hour), LastFailureAt: f.now.Add(-time.Second), LastReason: godwit.ReasonStatus,
		AvgDurationMS: 12.5, HoldUntil: f.now.Add(time.Minute), SunsetAt: f.now.Add(time.Hour),
		CircuitOpenAt: f.now.Add(-time.Second), ProbeAt: f.now.Add(30 * time.Second), UpdatedAt: f.now,
	}
}

func engineHealth(t *testing.T, f *fixture) {
	full := f.makeHealth()
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
	h := f.makeHealth()
	f.commit(&store.Batch{Health: []godwit.Health{h}})
	f.tick(time.Minute)
	f.must(f.s.ResetHealth(f.ctx, f.endpoint, f.now))
	h.ConsecutiveFailures, h.ConsecutiveTerminal = 0, 0
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
