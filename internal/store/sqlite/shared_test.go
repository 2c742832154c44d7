package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// queue starts changes while another write has the turn, one after the other, and waits until all of them wait.
func queue(t *testing.T, s *Store, changes ...func() error) (results []error) {
	t.Helper()
	s.turn <- struct{}{}
	results = make([]error, len(changes))
	var all sync.WaitGroup
	for i, change := range changes {
		all.Go(func() { results[i] = change() })
		for waiting := 0; waiting <= i; {
			s.sharing.mu.Lock()
			waiting = len(s.sharing.waiting)
			s.sharing.mu.Unlock()
		}
	}
	<-s.turn
	all.Wait()
	return results
}

// Changes that wait at the same time are stored by one transaction; one that fails does not touch the others.
func TestSharedTransaction(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{})
	insert := func(name string, then func() error) func() error {
		return func() error {
			return s.writeShared(t.Context(), "insert "+name, func(c *conn) error {
				if _, err := c.exec("INSERT INTO allowances (tenant_id, name, at, expires_at, uses) VALUES (x'00', ?, 1, 1, 1)", name); err != nil {
					return err
				}
				return then()
			})
		}
	}
	stored := func() (names []string) {
		t.Helper()
		err := s.read(t.Context(), "read", func(c *conn) error {
			return c.each(t.Context(), "SELECT name FROM allowances ORDER BY name", nil, func(r *rows) error { names = append(names, r.text(0)); return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	fine := func() error { return nil }
	var before int
	refused := errors.New("refused")
	results := queue(t, s, insert("a", fine), insert("b", func() error { return refused }), insert("c", func() error { before = len(stored()); return nil }))
	if results[0] != nil || !errors.Is(results[1], refused) || !strings.HasPrefix(fmt.Sprint(results[1]), "insert b: ") || results[2] != nil {
		t.Errorf("results are %v", results)
	}
	if got := stored(); before != 0 || fmt.Sprint(got) != "[a c]" {
		t.Errorf("%d were stored before the last change ran, and %v at the end", before, got)
	}

	// If the transaction cannot go on, nothing of it is stored.
	full := fmt.Errorf("disk: %w", store.ErrUnavailable)
	results = queue(t, s, insert("d", fine), insert("e", func() error { return full }), insert("f", fine))
	for _, err := range results {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("results are %v", results)
		}
	}
	if got := stored(); fmt.Sprint(got) != "[a c]" {
		t.Errorf("stored are %v", got)
	}
	if err := insert("g", fine)(); err != nil || fmt.Sprint(stored()) != "[a c g]" {
		t.Errorf("after a failure: %v, %v", err, stored())
	}
}

// More changes than a transaction takes, some of which exclude each other, and one whose caller goes away.
func TestManySharedChanges(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var changes []func() error
	for i := range 2*maxShared + 5 {
		changes = append(changes, func() error {
			return s.CreateTenant(t.Context(), &godwit.Tenant{ID: godwit.TenantID{1, byte(i)}, UID: fmt.Sprintf("customer-%d", i/2), Name: "n"})
		})
	}
	changes = append(changes, func() error {
		cancel()
		return s.CreateTenant(ctx, &godwit.Tenant{ID: godwit.TenantID{2}, UID: "gone", Name: "n"})
	})
	s.turn <- struct{}{}
	results := make([]error, len(changes))
	var all sync.WaitGroup
	for i, change := range changes {
		all.Go(func() { results[i] = change() })
	}
	<-s.turn
	all.Wait()
	made, taken := 0, 0
	for i, err := range results[:len(results)-1] {
		switch {
		case err == nil:
			made++
		case errors.Is(err, store.ErrConflict):
			taken++
		default:
			t.Errorf("change %d: %v", i, err)
		}
	}
	if made != maxShared+3 || taken != maxShared+2 {
		t.Errorf("%d were made and %d refused", made, taken)
	}
	if !errors.Is(results[len(results)-1], context.Canceled) {
		t.Errorf("got %v", results[len(results)-1])
	}
	if len(s.sharing.waiting) != 0 {
		t.Error("some still wait")
	}
}
