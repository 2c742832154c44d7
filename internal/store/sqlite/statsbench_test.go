package sqlite

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func BenchmarkStats(b *testing.B) {
	storetest.BenchStats(b, openBusy, processor, func(s store.Store, row []byte) {
		err := s.(*Store).write(b.Context(), "insert", func(c *conn) error {
			_, err := c.exec("INSERT INTO stats_log (state, data) VALUES (2, ?)", row)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}

func openBusy(t testing.TB) store.Store {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
