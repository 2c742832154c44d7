package engine_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the initial time of manual clocks: at the end of a microsecond, since stores keep no finer time.
var start = time.Date(2026, 7, 1, 12, 0, 0, 999, time.UTC)

// A tampered store is a real store in which a test replaces single calls. A nil member keeps the real call.
type tampered struct {
	engine.Store
	commit func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error)
	claim  func(c store.Claim, claim func() (*store.Claimed, error)) (*store.Claimed, error)
	claims func(list []store.Claim, claim func() ([]store.Claimed, error)) ([]store.Claimed, error) // without claim
	beat   func(beat func() (*godwit.Cluster, error)) (*godwit.Cluster, error)
	load   func(load func() (*store.LoadedEndpoint, error)) (*store.LoadedEndpoint, error)
	sweep  func(sweep func() (*store.Swept, error)) (*store.Swept, error)
	folded func() // after each step of the history's fold
	aged   func() // after each sweep of the history
}

func (s *tampered) Commit(ctx context.Context, b *store.Batch) (*store.Committed, error) {
	call := func() (*store.Committed, error) { return s.Store.Commit(ctx, b) }
	if s.commit == nil {
		return call()
	}
	return s.commit(b, call)
}

func (s *tampered) ClaimDue(ctx context.Context, claims []store.Claim) ([]store.Claimed, error) {
	if s.claims != nil {
		return s.claims(claims, func() ([]store.Claimed, error) { return s.Store.ClaimDue(ctx, claims) })
	}
	if s.claim == nil {
		return s.Store.ClaimDue(ctx, claims)
	}
	list := make([]store.Claimed, len(claims))
	for i, c := range claims {
		claimed, err := s.claim(c, func() (*store.Claimed, error) { return storetest.ClaimOne(ctx, s.Store, c) })
		if err != nil {
			claimed = &store.Claimed{Err: err}
		}
		list[i] = *claimed
	}
	return list, nil
}

func (s *tampered) Beat(ctx context.Context, b store.Beat) (*godwit.Cluster, error) {
	call := func() (*godwit.Cluster, error) { return s.Store.Beat(ctx, b) }
	if s.beat == nil {
		return call()
	}
	return s.beat(call)
}

func (s *tampered) LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error) {
	call := func() (*store.LoadedEndpoint, error) { return s.Store.LoadEndpoint(ctx, id) }
	if s.load == nil {
		return call()
	}
	return s.load(call)
}

func (s *tampered) Sweep(ctx context.Context, w store.Sweep) (*store.Swept, error) {
	call := func() (*store.Swept, error) { return s.Store.Sweep(ctx, w) }
	if s.sweep == nil {
		return call()
	}
	return s.sweep(call)
}

func (s *tampered) FoldStats(ctx context.Context, f store.StatsFold) (*store.StatsFolded, error) {
	step, err := s.Store.FoldStats(ctx, f)
	if s.folded != nil {
		s.folded()
	}
	return step, err
}

func (s *tampered) SweepStats(ctx context.Context, w store.StatsSweep) (int64, bool, error) {
	removed, more, err := s.Store.SweepStats(ctx, w)
	if s.aged != nil {
		s.aged()
	}
	return removed, more, err
}

// boot starts a server on SQLite whose engine uses the tampered store. Leases outlast every step of a manual clock, unless
// tune says otherwise.
func boot(t *testing.T, s *tampered, hands *clock.Manual, tune func(*engine.Config)) *apptest.Server {
	t.Helper()
	return apptest.Start(t, apptest.Options{Clock: hands, Tune: func(c *engine.Config) {
		if hands != nil {
			c.LeaseTTL = 10000 * time.Hour
		}
		if tune != nil {
			tune(c)
		}
		s.Store, c.Store = c.Store, s
	}})
}

// await waits for a signal.
func await(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	select {
	case <-signal:
	case <-limit.C:
		t.Fatalf("waited in vain for %s", what)
	}
}

// policy returns policy overrides with short retry delays and no circuit.
func policy(more apptest.Fields) apptest.Fields {
	p := map[string]any{"base_seconds": 1, "cap_seconds": 1, "circuit_after": 0}
	for name, value := range more {
		p[name] = value
	}
	return apptest.Fields{"policy": p}
}

// deleteEndpoint deletes an endpoint in the steps of its command: plan, store, notify.
func deleteEndpoint(m *management.Service, s store.Endpoints, tenant godwit.TenantID, id godwit.EndpointID) error {
	ctx := context.Background()
	next, err := m.Endpoints.PlanDelete(ctx, tenant, id, godwit.Match{})
	if err != nil {
		return err
	}
	if err := s.UpdateEndpoint(ctx, next); err != nil {
		return err
	}
	m.Endpoints.Deleted(ctx, next)
	return nil
}
