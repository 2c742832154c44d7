package postgres

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// suiteTime is about when the shared suite plays, so that its rows fall into partitions.
var suiteTime = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

func open(t testing.TB) store.Store { return openAt(t, Options{Now: suiteTime}) }

func openAt(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), postgrestest.URL(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open) }
