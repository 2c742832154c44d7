package sqlite

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func BenchmarkStats(b *testing.B) {
	storetest.BenchStats(b, openBusy, processor, logRow(b, logReady))
}

func TestStatsAside(t *testing.T) { storetest.RunStatsAside(t, openBusy, logRow(t, logCommitted)) }

// logRow inserts rows into the log of the history.
func logRow(t testing.TB, state int64) func(store.Store, []byte) {
	return func(s store.Store, row []byte) {
		err := s.(*Store).write(t.Context(), "insert", func(c *conn) error {
			_, err := c.exec("INSERT INTO stats_log (state, data) VALUES (?, ?)", state, row)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func openBusy(t testing.TB) store.Store {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
