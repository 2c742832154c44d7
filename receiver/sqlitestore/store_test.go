package sqlitestore_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/sqlitestore"
	"github.com/godwit-hq/godwit/receiver/storetest"
)

func TestMain(m *testing.M) {
	os.Exit(storetest.Main(m, func(ctx context.Context, path string) (receiver.Store, error) {
		return sqlitestore.Open(ctx, path, sqlitestore.Options{})
	}))
}

func open(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func fresh(t *testing.T) *sqlitestore.Store { return open(t, filepath.Join(t.TempDir(), "a b?c.db")) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) receiver.Store { return fresh(t) })
}

func TestConcurrency(t *testing.T) {
	trace.Covers(t, "IKH-RSP-7", "CCW-IDM-7")
	storetest.RunConcurrency(t, func(t *testing.T) receiver.Store { return fresh(t) })
}

func TestProcesses(t *testing.T) {
	trace.Covers(t, "CCW-IDM-7", "IKH-EXP-3")
	slowtest.Needs(t, "other processes")
	storetest.RunProcesses(t, func(t *testing.T) (receiver.Store, string) {
		path := filepath.Join(t.TempDir(), "webhooks.db")
		return open(t, path), path
	})
}

func TestInbox(t *testing.T) {
	storetest.RunInbox(t, func(t *testing.T) receiver.Inbox { return fresh(t) })
}

// TestClaimSortsNothing: of a long queue each claim reads what it takes, and no more.
func TestClaimSortsNothing(t *testing.T) {
	rows, err := fresh(t).DB().QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+sqlitestore.ClaimJobs, "token", 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, step)
	}
	text := strings.Join(plan, "\n")
	if strings.Count(text, "webhook_inbox_due (state=? AND at<?)") != 2 || strings.Count(text, "FOR ORDER BY") > 1 { // the few that both give
		t.Errorf("the plan is\n%s", text)
	}
}

func TestTx(t *testing.T) {
	storetest.RunTx(t, func(t *testing.T) storetest.TxStore {
		s := fresh(t)
		return effects(t, s)
	})
}

// TestTxInAnApplicationsDatabase: one that was opened with nothing but a path.
func TestTxInAnApplicationsDatabase(t *testing.T) {
	storetest.RunTx(t, func(t *testing.T) storetest.TxStore {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s, err := sqlitestore.New(t.Context(), db, sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return effects(t, s)
	})
}

func effects(t *testing.T, s *sqlitestore.Store) storetest.TxStore {
	if _, err := s.DB().ExecContext(t.Context(), `CREATE TABLE effects (n INTEGER)`); err != nil {
		t.Fatal(err)
	}
	return storetest.TxStore{
		Store: s, OneWriter: true,
		Effect: func(ctx context.Context) error {
			_, err := sqlitestore.Tx(ctx).ExecContext(ctx, `INSERT INTO effects VALUES (1)`)
			return err
		},
		Count: func(t *testing.T) (n int) {
			if err := s.DB().QueryRowContext(t.Context(), `SELECT count(*) FROM effects`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		},
	}
}

func TestOpenTwiceKeepsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.db")
	a := open(t, path)
	r := receiver.Reserve{Hold: receiver.Hold{Scope: storetest.ScopeOf("k"), Token: "a"}, Now: storetest.Start, LeaseUntil: storetest.Start.Add(1e9)}
	if found, err := a.Reserve(t.Context(), r); err != nil || found.State != receiver.Reserved {
		t.Fatal(found, err)
	}
	a.Close()
	r.Token = "b"
	if found, err := open(t, path).Reserve(t.Context(), r); err != nil || found.State != receiver.InProgress {
		t.Fatal(found, err)
	}
}

func TestTxOutsideAHandler(t *testing.T) {
	if sqlitestore.Tx(t.Context()) != nil {
		t.Error("a transaction came out of nothing")
	}
}
