package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func open(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestLeases(t *testing.T) {
	storetest.RunLeases(t, func(t testing.TB, now func() time.Time) store.Store {
		s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Exclusive: true, Time: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestConcurrency(t *testing.T) { storetest.RunConcurrency(t, open) }

func TestCrash(t *testing.T) {
	storetest.RunCrash(t, storetest.Crash{
		Location: func(t testing.TB) string { return t.TempDir() },
		Open: func(ctx context.Context, location string) (store.Store, error) {
			return sqlite.Open(ctx, location, sqlite.Options{Exclusive: true})
		},
	})
}

// places are the data directories of stores that a test may open again.
type places map[store.Store]string

func (p places) open(t testing.TB) store.Store { return p.openAt(t, t.TempDir()) }

func (p places) openAt(t testing.TB, dir string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	p[s] = dir
	t.Cleanup(func() { s.Close() })
	return s
}

func (p places) reopen(t testing.TB, s store.Store) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return p.openAt(t, p[s])
}

func TestNodes(t *testing.T) {
	p := places{}
	storetest.RunNodes(t, storetest.Nodes{
		Open: p.open, Reopen: p.reopen, Beside: func(_ testing.TB, s store.Store) store.Store { return s },
	})
}

func TestCommands(t *testing.T) {
	p := places{}
	storetest.RunCommands(t, storetest.Commands{
		Open: p.open, Reopen: p.reopen,
		Exec: func(t testing.TB, s store.Store, statement string) error {
			db, err := sql.Open("sqlite", filepath.Join(p[s], "godwit.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			_, err = db.ExecContext(t.Context(), statement)
			return err
		},
	})
}
