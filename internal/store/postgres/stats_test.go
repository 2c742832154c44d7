package postgres

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func BenchmarkStats(b *testing.B) {
	storetest.BenchStats(b, open, clientCPU, logRow(b, logReady))
}

func TestStatsAside(t *testing.T) { storetest.RunStatsAside(t, open, logRow(t, logCommitted)) }

// logRow inserts rows into the log of the history.
func logRow(t testing.TB, state int16) func(store.Store, []byte) {
	return func(s store.Store, row []byte) {
		if _, err := s.(*Store).pool.Exec(t.Context(), `INSERT INTO stats_log (state, data) VALUES ($1, $2)`, state, row); err != nil {
			t.Fatal(err)
		}
	}
}
