package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// suiteTime is about the time of the shared suite's rows, so that they fall into partitions.
var suiteTime = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func open(t testing.TB) store.Store { return openAt(t, Options{Now: suiteTime}) }

// newDatabase creates a database for the test. If partitions start at suiteTime, it copies a prepared template.
func newDatabase(t testing.TB, o Options) string {
	t.Helper()
	if !o.Now.Equal(suiteTime) || o.PartitionWidth != 0 {
		return postgrestest.URL(t)
	}
	digest, err := SchemaDigest()
	if err != nil {
		t.Fatal(err)
	}
	return postgrestest.Template{Content: digest + " at " + suiteTime.String(), Prepare: func(ctx context.Context, url string) error {
		s, err := Open(ctx, url, Options{Now: suiteTime})
		if err != nil {
			return err
		}
		return s.Close()
	}}.URL(t)
}

func openAt(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), newDatabase(t, o), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openURL(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, Options{Now: suiteTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// beside opens the same database a second time.
func beside(t testing.TB, s store.Store) store.Store {
	t.Helper()
	return openURL(t, s.(*Store).pool.Config().ConnString())
}

func reopen(t testing.TB, s store.Store) store.Store {
	t.Helper()
	s.Close()
	return beside(t, s)
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestLeases(t *testing.T) {
	storetest.RunLeases(t, func(t testing.TB, now func() time.Time) store.Store {
		return openAt(t, Options{Now: suiteTime, Time: now})
	})
}

func TestNodes(t *testing.T) {
	storetest.RunNodes(t, storetest.Nodes{Open: open, Beside: beside, Reopen: reopen})
}

// The rows of a past day that processes counted apart become one; nothing is lost, and today's stay.
func TestUsageOfEndedProcessesIsMerged(t *testing.T) {
	s := open(t).(*Store)
	now := suiteTime
	tenant := godwit.NewTenantID(now)
	for day := range 3 {
		for slot := range 4 {
			_, err := s.pool.Exec(t.Context(), `INSERT INTO usage (tenant_id, day, slot, events, deliveries, attempts, bytes_accepted, bytes_sent) VALUES ($1, $2::date - $3::int, $4, 1, 2, 3, 4, 5)`,
				[16]byte(tenant), godwit.DayOf(now), day, slot)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if _, err := s.Sweep(t.Context(), store.Sweep{Now: now, UsageBefore: now.AddDate(-1, 0, 0), Limit: 100}); err != nil {
			t.Fatal(err)
		}
		var rows, events, sent int
		if err := s.pool.QueryRow(t.Context(), `SELECT count(*), sum(events)::int8, sum(bytes_sent)::int8 FROM usage`).Scan(&rows, &events, &sent); err != nil {
			t.Fatal(err)
		}
		if rows != 4+2 || events != 12 || sent != 60 {
			t.Errorf("%d rows with %d events and %d bytes", rows, events, sent)
		}
	}
}
