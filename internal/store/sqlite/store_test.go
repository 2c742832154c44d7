package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

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

func TestConcurrency(t *testing.T) { storetest.RunConcurrency(t, open) }

func TestCrash(t *testing.T) {
	storetest.RunCrash(t, storetest.Crash{
		Location: func(t testing.TB) string { return t.TempDir() },
		Open: func(ctx context.Context, location string) (store.Store, error) {
			return sqlite.Open(ctx, location, sqlite.Options{Exclusive: true})
		},
	})
}

func TestCommands(t *testing.T) {
	places := map[store.Store]string{}
	openAt := func(t testing.TB, dir string) store.Store {
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		places[s] = dir
		t.Cleanup(func() { s.Close() })
		return s
	}
	storetest.RunCommands(t, storetest.Commands{
		Open: func(t testing.TB) store.Store { return openAt(t, t.TempDir()) },
		Reopen: func(t testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, places[s])
		},
		Exec: func(t testing.TB, s store.Store, statement string) error {
			db, err := sql.Open("sqlite", filepath.Join(places[s], "godwit.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			_, err = db.ExecContext(t.Context(), statement)
			return err
		},
	})
}
