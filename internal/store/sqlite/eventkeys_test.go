package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Events are found by their key in a segment, behind the last segment, and after the newest events were removed and their numbers are used again.
func TestEventsAreFoundByKey(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{})
	s.sweeps.keys.size.Store(10)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tenant, other := newIDAt[godwit.TenantID](now), newIDAt[godwit.TenantID](now)
	add := func(n int, of godwit.TenantID, key func(i int) string) {
		t.Helper()
		b := &store.Batch{Now: now}
		for i := range n {
			now = now.Add(time.Millisecond)
			b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{{Event: &godwit.Event{
				ID: newIDAt[godwit.EventID](now), TenantID: of, Type: "order.paid", Key: key(i), ContentType: "application/json", Body: []byte("{}"), CreatedAt: now,
			}}}})
		}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(before time.Time) {
		t.Helper()
		for more := true; more; {
			swept, err := s.Sweep(t.Context(), store.Sweep{Now: now, EventsBefore: before, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			more = swept.More
		}
	}
	segments := func() (n int) {
		t.Helper()
		err := s.read(t.Context(), "count segments", func(c *conn) error {
			_, err := c.one(t.Context(), "SELECT count(*) FROM event_keys", nil, func(r *rows) { n = int(r.int(0)) })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	find := func(key string, want int) {
		t.Helper()
		list, err := s.ListEvents(t.Context(), store.EventFilter{TenantID: tenant, Key: key}, store.Page{Limit: 50})
		if err != nil || len(list) != want {
			t.Errorf("%d events with the key %s, want %d; %v", len(list), key, want, err)
		}
		for i := range list {
			if list[i].Key != key || list[i].TenantID != tenant || i > 0 && !list[i].CreatedAt.Before(list[i-1].CreatedAt) {
				t.Errorf("event %d with the key %s is %+v", i, key, list[i])
			}
		}
	}
	numbered := func(i int) string { return fmt.Sprint("key-", i) }
	begun := now.Add(-time.Hour)
	add(25, tenant, numbered)
	add(3, other, numbered)
	add(2, tenant, func(int) string { return "key-3" })
	sweep(begun)
	if n := segments(); n != 3 {
		t.Errorf("%d segments of 30 events, want 3", n)
	}
	add(5, tenant, func(i int) string { return fmt.Sprint("late-", i) })
	find("key-0", 1)
	find("key-3", 3)
	find("key-24", 1)
	find("late-4", 1)
	find("none", 0)

	sweep(now.Add(time.Millisecond)) // removes all
	if n := segments(); n != 0 {
		t.Errorf("%d segments without events", n)
	}
	add(30, tenant, func(i int) string { return fmt.Sprint("again-", i) })
	find("again-0", 1)
	find("again-29", 1)
	find("key-3", 0)
	sweep(begun)
	find("again-0", 1)
	find("again-29", 1)

	// A key of very many events is found by a walk through the newest.
	add(mostKeyed+10, tenant, func(int) string { return "frequent" })
	find("frequent", 50)
}
