package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// Lookups that share a query each get their own record, or none.
func TestLookupsShareQueries(t *testing.T) {
	s := openAt(t, Options{HotConnections: 1})
	for i := 1; i < 7; i++ {
		key := fmt.Sprint("key ", i)
		applied(t, s, reserve(reserved("t1", key, "cmd "+key)))
	}
	held, err := s.hot.Acquire(t.Context()) // all lookups but the first wait for the second query
	if err != nil {
		t.Fatal(err)
	}
	var waiting, ended sync.WaitGroup
	for i := range 2 * maxLookups {
		waiting.Add(1)
		ended.Go(func() {
			key := fmt.Sprint("key ", i%7)
			waiting.Done()
			r, err := s.Find(t.Context(), "t1", key)
			switch {
			case err != nil:
				t.Error(err)
			case i%7 == 0 && r != nil:
				t.Errorf("found %+v under a free key", r)
			case i%7 != 0 && (r == nil || r.Key != key || r.CommandID != "cmd "+key):
				t.Errorf("%s: found %+v", key, r)
			}
		})
	}
	waiting.Wait()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Find(gone, "t1", "key 1"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left got %v", err)
	}
	held.Release()
	ended.Wait()
}
