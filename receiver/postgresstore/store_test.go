package postgresstore_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/postgresstore"
	"github.com/godwit-hq/godwit/receiver/storetest"
)

func TestMain(m *testing.M) {
	os.Exit(storetest.Main(m, func(ctx context.Context, url string) (receiver.Store, error) {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return nil, err
		}
		return postgresstore.New(ctx, pool, postgresstore.Options{})
	}))
}

func fresh(t *testing.T) (*postgresstore.Store, *pgxpool.Pool, string) {
	t.Helper()
	url := postgrestest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgresstore.New(t.Context(), pool, postgresstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, pool, url
}

func freshStore(t *testing.T) receiver.Store { s, _, _ := fresh(t); return s }

func TestStore(t *testing.T) { storetest.Run(t, freshStore) }

func TestConcurrency(t *testing.T) {
	trace.Covers(t, "IKH-RSP-7", "CCW-IDM-7")
	storetest.RunConcurrency(t, freshStore)
}

func TestProcesses(t *testing.T) {
	trace.Covers(t, "CCW-IDM-7", "IKH-EXP-3")
	storetest.RunProcesses(t, func(t *testing.T) (receiver.Store, string) {
		s, _, url := fresh(t)
		return s, url
	})
}

// TestClaimSortsNothing: of a long queue each claim reads what it takes, and no more.
func TestClaimSortsNothing(t *testing.T) {
	_, pool, _ := fresh(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO webhook_inbox (id, event_id, event_type, delivery, received_at, at)
SELECT i, '', '', '{}', i, i FROM generate_series(1, 10000) i`)
	if err == nil {
		_, err = pool.Exec(t.Context(), `ANALYZE webhook_inbox`)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(t.Context(), "EXPLAIN "+postgresstore.ClaimJobs, 10000, 1, "token", 1)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "webhook_inbox_open") || strings.Contains(text, "Sort") {
		t.Errorf("the plan is\n%s", text)
	}
}

func TestInbox(t *testing.T) {
	storetest.RunInbox(t, func(t *testing.T) receiver.Inbox { s, _, _ := fresh(t); return s })
}

func TestTx(t *testing.T) {
	storetest.RunTx(t, func(t *testing.T) storetest.TxStore {
		s, pool, _ := fresh(t)
		if _, err := pool.Exec(t.Context(), `CREATE TABLE effects (n INTEGER)`); err != nil {
			t.Fatal(err)
		}
		return storetest.TxStore{
			Store: s,
			Effect: func(ctx context.Context) error {
				_, err := postgresstore.Tx(ctx).Exec(ctx, `INSERT INTO effects VALUES (1)`)
				return err
			},
			Count: func(t *testing.T) (n int) {
				if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM effects`).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			},
		}
	})
}

// TestTablesAreMadeAtOnce: processes that start together do not hinder each other.
func TestTablesAreMadeAtOnce(t *testing.T) {
	url := postgrestest.URL(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			pool, err := pgxpool.New(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer pool.Close()
			if _, err := postgresstore.New(t.Context(), pool, postgresstore.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestTxOutsideAHandler(t *testing.T) {
	if postgresstore.Tx(t.Context()) != nil {
		t.Error("a transaction came out of nothing")
	}
}
