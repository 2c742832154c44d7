package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// newConfigEndpoint stores an endpoint of its own tenant.
func newConfigEndpoint(t testing.TB, s *Store) *godwit.Endpoint {
	t.Helper()
	e := &godwit.Endpoint{ID: mintEndpoint(suiteTime), TenantID: mintTenant(suiteTime), URL: "https://receiver.example", Status: godwit.EndpointActive, Version: 1}
	if err := s.CreateEndpoint(t.Context(), e, nil); err != nil {
		t.Fatal(err)
	}
	return e
}

func configVersion(t testing.TB, s *Store) int64 {
	t.Helper()
	v, err := s.ConfigVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A transaction that changes many rows raises the version once, and one that is rolled back does not raise it.
func TestTransactionRaisesTheConfigVersionOnce(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	tenant := mintTenant(suiteTime)
	before := configVersion(t, s)
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const add = `INSERT INTO endpoints (id, tenant_id, url, method, profile, description, status, status_reason, version)
		SELECT gen_random_uuid(), $1, '', '', '', '', 'active', '', 1 FROM generate_series(1, $2)`
	if _, err := tx.Exec(t.Context(), add, [16]byte(tenant), 100); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := configVersion(t, s); v != before {
		t.Errorf("version %d after a rollback, %d before", v, before)
	}
	if _, err := s.pool.Exec(t.Context(), add, [16]byte(tenant), 100); err != nil {
		t.Fatal(err)
	}
	changes, err := s.ConfigChanges(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	if n := store.ConfigDistance(before, changes.Version); n != 1 || len(changes.List) != 100 {
		t.Errorf("%d changes raised the version by %d", len(changes.List), n)
	}
}

// Versions appear in the order of commits: a reader that has seen a version sees every change up to it. Transactions that
// change the same endpoints from many connections wait for each other and do not deadlock.
func TestConfigVersionsFollowTheOrderOfCommits(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime, Connections: 12})
	const writers, rounds = 8, 25
	endpoints := make([]*godwit.Endpoint, writers)
	for i := range endpoints {
		endpoints[i] = newConfigEndpoint(t, s)
	}
	start := configVersion(t, s)
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for n := range rounds {
				e := *endpoints[i]
				e.Version, e.Description = int64(n)+2, fmt.Sprint(n)
				if err := s.UpdateEndpoint(t.Context(), &e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { writing.Wait(); close(ended) }()
	told := map[[16]byte]int64{} // changes of each endpoint that were listed
	for version, last := start, false; !last; {
		select {
		case <-ended:
			last = true
		default:
		}
		changes, err := s.ConfigChanges(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes.List {
			told[c.ID]++
		}
		version = changes.Version
		for _, e := range endpoints {
			stored, err := s.Endpoint(t.Context(), e.TenantID, e.ID)
			if err != nil {
				t.Fatal(err)
			}
			if stored.Version < told[e.ID]+1 {
				t.Fatalf("version %d of an endpoint is read after change %d was listed", stored.Version, told[e.ID])
			}
		}
	}
	for _, e := range endpoints {
		if told[e.ID] != rounds {
			t.Errorf("%d changes of an endpoint were listed, want %d", told[e.ID], rounds)
		}
	}
	if n := store.ConfigDistance(start, configVersion(t, s)); n != writers*rounds {
		t.Errorf("%d changes raised the version by %d", writers*rounds, n)
	}
}

// Old changes are removed, and a node that knew only those learns that it must read everything.
func TestOldConfigChangesAreRemoved(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	e := newConfigEndpoint(t, s)
	old := configVersion(t, s)
	for range 2 { // the second change is the one with the round number
		if _, err := s.pool.Exec(t.Context(), `UPDATE config_version SET version = ((version >> 16) / 1000 * 1000 + 30999) << 16`); err != nil {
			t.Fatal(err)
		}
		e.Version++
		if err := s.UpdateEndpoint(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	var oldest, rows int64
	if err := s.pool.QueryRow(t.Context(), `SELECT min(version), count(*) FROM config_changes`).Scan(&oldest, &rows); err != nil {
		t.Fatal(err)
	}
	if oldest <= old || rows != 1 {
		t.Errorf("%d changes are left, the oldest is %d", rows, oldest)
	}
	changes, err := s.ConfigChanges(t.Context(), old)
	if err != nil || !changes.Unknown || changes.Version != configVersion(t, s) {
		t.Errorf("%+v, %v", changes, err)
	}
}
