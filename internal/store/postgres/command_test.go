package postgres

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func TestCommands(t *testing.T) {
	storetest.RunCommands(t, storetest.Commands{
		Open: open,
		Reopen: func(t testing.TB, s store.Store) store.Store {
			url := s.(*Store).pool.Config().ConnString()
			s.Close()
			return reopen(t, url)
		},
		Exec: func(t testing.TB, s store.Store, statement string) error {
			_, err := s.(*Store).pool.Exec(t.Context(), statement)
			return err
		},
	})
}

func reopen(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, Options{Now: suiteTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
