package postgres

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

const day = 24 * time.Hour

// at moves a load to a time: its ids and times are those of now.
func (l *load) at(b *store.Batch, now time.Time) *store.Batch {
	b.Now = now
	for i := range b.Accepts {
		e := &b.Accepts[i].Events[0]
		e.Event.ID, e.Event.CreatedAt = mintEvent(now), now
		for j := range e.Deliveries {
			e.Deliveries[j].ID = mintDelivery(now)
		}
	}
	for i := range b.Results {
		a := b.Results[i].Attempt
		a.ID, a.StartedAt = mintAttempt(now), now
	}
	return b
}

// finishedAt stores events that were accepted and delivered at a time.
func (l *load) finishedAt(t *testing.T, n int, now time.Time) *store.Batch {
	t.Helper()
	accepted := l.at(l.accepts(n, false), now)
	l.commit(t, accepted, l.at(l.results(accepted), now))
	return accepted
}

func partitionNames(t *testing.T, s *Store, table string) []string {
	t.Helper()
	list, err := partitionsOf(t.Context(), s.pool, table)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.suffix)
	}
	return names
}

func sweepAll(t *testing.T, s *Store, w store.Sweep) store.Swept {
	t.Helper()
	var sum store.Swept
	for range 100 {
		n, err := s.Sweep(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		sum.Events += n.Events
		sum.Deliveries += n.Deliveries
		sum.Attempts += n.Attempts
		sum.Expired += n.Expired
		if !n.More {
			return sum
		}
	}
	t.Fatal("the sweep does not come to an end")
	return sum
}

func TestPartitionsArePreparedAheadAndDropped(t *testing.T) {
	start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	s := openAt(t, Options{Now: start, exactBytes: 1}) // nothing is small: rows go with their partition only
	l := newLoad(t, s)
	want := []string{"_20260501_000000", "_20260502_000000", "_20260503_000000", "_20260504_000000", "_default"}
	for _, table := range partitioned {
		if names := partitionNames(t, s, table); !slices.Equal(names, want) {
			t.Errorf("%s has partitions %v, want %v", table, names, want)
		}
	}
	for d := range 3 {
		l.finishedAt(t, 10, start.Add(time.Duration(d)*day))
	}
	if n := count(t, s, `SELECT count(*) FROM events_default`) + count(t, s, `SELECT count(*) FROM deliveries_default`); n != 0 {
		t.Errorf("%d rows lie in default partitions", n)
	}

	// The cut-off is inside the second day: the first day is dropped, the second waits for its end.
	now := start.Add(3 * day)
	cut := start.Add(day + time.Hour)
	swept := sweepAll(t, s, store.Sweep{Now: now, EventsBefore: cut, AttemptsBefore: cut, Limit: 5})
	if swept.Events != 10 || swept.Deliveries != 10 || swept.Attempts != 10 {
		t.Errorf("swept %+v, want the 10 of the first day", swept)
	}
	want = []string{"_20260502_000000", "_20260503_000000", "_20260504_000000", "_20260505_000000", "_20260506_000000",
		"_20260507_000000", "_default"}
	for _, table := range partitioned {
		if names := partitionNames(t, s, table); !slices.Equal(names, want) {
			t.Errorf("%s has partitions %v, want %v", table, names, want)
		}
		if n := count(t, s, `SELECT count(*) FROM `+table); n != 20 {
			t.Errorf("%s has %d rows, want 20", table, n)
		}
	}
}

func TestSmallPartitionsAreSweptExactly(t *testing.T) {
	start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	s := openAt(t, Options{Now: start})
	l := newLoad(t, s)
	l.finishedAt(t, 10, start)
	l.finishedAt(t, 10, start.Add(2*time.Hour))
	cut := start.Add(time.Hour)
	swept := sweepAll(t, s, store.Sweep{Now: start.Add(3 * time.Hour), EventsBefore: cut, AttemptsBefore: cut, Limit: 3})
	if swept.Events != 10 || swept.Deliveries != 10 || swept.Attempts != 10 {
		t.Errorf("swept %+v, want those before the cut-off", swept)
	}
}

func TestPartitionWaitsForWhatIsPending(t *testing.T) {
	start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	s := openAt(t, Options{Now: start, exactBytes: 1})
	l := newLoad(t, s)
	l.finishedAt(t, 5, start)
	claimed := l.at(l.accepts(1, false), start)
	l.commit(t, claimed)
	now := start.Add(40 * day)
	w := store.Sweep{Now: now, EventsBefore: now.Add(-30 * day), Limit: 10}
	if swept := sweepAll(t, s, w); swept.Events != 0 {
		t.Errorf("swept %+v although a delivery is being attempted", swept)
	}
	l.commit(t, l.at(l.results(claimed), now))
	if swept := sweepAll(t, s, w); swept.Events != 6 || swept.Deliveries != 6 {
		t.Errorf("swept %+v, want all 6", swept)
	}
}

// An event restored from a dead letter counts as new, although its id is in a dropped day.
func TestRestoredEventsOutliveTheirPartition(t *testing.T) {
	start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	s := openAt(t, Options{Now: start})
	l := newLoad(t, s)
	accepted := l.at(l.accepts(2, false), start)
	dead := l.at(l.results(accepted), start)
	for i := range dead.Results {
		dead.Results[i].Delivery.Status = godwit.DeliveryTerminal
	}
	l.commit(t, accepted, dead)
	sweepAll(t, s, store.Sweep{Now: start, EventsBefore: start.Add(time.Hour), Limit: 10}) // the rows are deleted, the day's partition stays
	if n := count(t, s, `SELECT count(*) FROM events`); n != 0 {
		t.Fatalf("%d events are left", n)
	}

	restored := start.Add(4 * day)
	id, event := dead.Results[0].Delivery.ID, dead.Results[0].Delivery.EventID
	made, err := s.Requeue(t.Context(), store.Requeue{
		TenantID: l.tenant, Deliveries: []godwit.DeliveryID{id}, Trigger: godwit.TriggerReplay, Now: restored,
	})
	if err != nil || len(made) != 1 {
		t.Fatalf("requeued %v, %v", made, err)
	}
	claim, err := storetest.ClaimOne(t.Context(), s, store.Claim{EndpointID: l.endpoint, Epoch: l.epoch, Now: restored, Limit: 5})
	if err != nil || len(claim.Work) != 1 {
		t.Fatalf("claimed %v, %v", claim, err)
	}
	l.commit(t, l.at(l.results(&store.Batch{Accepts: accepted.Accepts[:1]}), restored))

	sweepAll(t, s, store.Sweep{Now: restored, EventsBefore: start.Add(2 * day), Limit: 10})
	if names := partitionNames(t, s, "events"); slices.Contains(names, "_20260501_000000") {
		t.Errorf("partitions are %v, the first should be gone", names)
	}
	if _, err := s.Event(t.Context(), l.tenant, event); err != nil {
		t.Errorf("event within its new time: %v", err)
	}
	ds, err := s.ListDeliveries(t.Context(), store.DeliveryFilter{TenantID: l.tenant, EventID: event}, store.Page{Limit: 5})
	if err != nil || len(ds) != 1 || ds[0].ID != id || ds[0].Status != godwit.DeliveryAccepted {
		t.Errorf("its deliveries are %+v, %v", ds, err)
	}

	sweepAll(t, s, store.Sweep{Now: restored, EventsBefore: restored.Add(time.Hour), Limit: 10})
	for _, table := range []string{"events", "deliveries", "kept_events"} {
		if n := count(t, s, `SELECT count(*) FROM `+table); n != 0 {
			t.Errorf("%s has %d rows after the event's time", table, n)
		}
	}
}

// All partitions use the fast compression for bodies larger than a page.
func TestPartitionsInheritCompression(t *testing.T) {
	s := openAt(t, Options{})
	n := count(t, s, `SELECT count(DISTINCT (attcompression, attstorage)) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
		WHERE a.attname = 'body' AND (c.relname = 'events' OR c.relname LIKE 'events\_%') AND c.relkind IN ('r', 'p')`)
	if n != 1 {
		t.Errorf("partitions store bodies in %d different ways", n)
	}
}

// Rows in the range of a new partition do not stop the store.
func TestRowsInTheWayOfAPartition(t *testing.T) {
	start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	s := openAt(t, Options{Now: start})
	l := newLoad(t, s)
	future := start.Add(20 * day)
	l.finishedAt(t, 3, future) // by a wrong clock
	if _, err := s.Sweep(t.Context(), store.Sweep{Now: future, Limit: 10}); err != nil {
		t.Fatal(err)
	}
	l.finishedAt(t, 3, future)
	cut := future.Add(time.Hour)
	if swept := sweepAll(t, s, store.Sweep{Now: future, EventsBefore: cut, AttemptsBefore: cut, Limit: 10}); swept.Events != 6 || swept.Attempts != 6 {
		t.Errorf("swept %+v, want all 6", swept)
	}
	if names := partitionNames(t, s, "events"); !strings.HasSuffix(names[len(names)-1], "default") {
		t.Errorf("partitions are %v", names)
	}
}
