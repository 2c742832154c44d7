package sqlite_test

import (
	"context"
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
