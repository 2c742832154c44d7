package postgres

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func BenchmarkStats(b *testing.B) {
	storetest.BenchStats(b, open, clientCPU, func(s store.Store, row []byte) {
		if _, err := s.(*Store).pool.Exec(b.Context(), `INSERT INTO stats_log (state, data) VALUES (2, $1)`, row); err != nil {
			b.Fatal(err)
		}
	})
}
