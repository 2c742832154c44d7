package sqlite

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// A handing is a store in which deliveries of small events are handed over.
type handing struct {
	t        *testing.T
	s        *Store
	endpoint godwit.EndpointID
	epoch    int64
}

func newHanding(t *testing.T, dir string) *handing {
	t.Helper()
	h := &handing{t: t, s: openAt(t, dir, Options{}), endpoint: newID[godwit.EndpointID]()}
	h.acquire()
	return h
}

func (h *handing) acquire() {
	h.t.Helper()
	leases, err := storetest.TakeAll(h.t.Context(), h.s, "a")
	if err != nil {
		h.t.Fatal(err)
	}
	h.epoch = leases[0].Epoch
	for _, l := range leases {
		if l.Epoch != h.epoch {
			h.t.Fatal("epochs differ")
		}
	}
}

// accepts makes events with one claimed delivery each, and their results.
func (h *handing) accepts(n int) (accepts []store.Accept, results []store.Result) {
	for range n {
		b, e := event(1)
		d := store.NewDelivery{ID: newID[godwit.DeliveryID](), EndpointID: h.endpoint, Trigger: godwit.TriggerAccept, ClaimEpoch: h.epoch}
		b.Accepts[0].Events[0].Deliveries = []store.NewDelivery{d}
		accepts = append(accepts, b.Accepts[0])
		results = append(results, store.Result{Epoch: h.epoch, Delivery: godwit.Delivery{
			ID: d.ID, TenantID: e.TenantID, EventID: e.ID, EndpointID: h.endpoint, Status: godwit.DeliveryAccepted, Attempts: 1,
		}, Attempt: &godwit.Attempt{N: 1, DeliveryID: d.ID, Verdict: godwit.Verdict{Outcome: godwit.Accepted}}})
	}
	return accepts, results
}

func (h *handing) commit(b *store.Batch) {
	h.t.Helper()
	b.Now = noon
	if c, err := h.s.Commit(h.t.Context(), b); err != nil || len(c.Fenced) != 0 {
		h.t.Fatal(c, err)
	}
}

// count runs a query for one number.
func (h *handing) count(query string) (n int64) {
	h.t.Helper()
	err := h.s.read(h.t.Context(), "count", func(c *conn) error {
		_, err := c.one(h.t.Context(), query, nil, func(r *rows) { n = r.int(0) })
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *handing) check(what string, pending, rows, handovers int64) {
	h.t.Helper()
	n, err := h.s.CountPending(h.t.Context(), h.endpoint)
	if err != nil || n != pending {
		h.t.Errorf("%s: %d are pending, want %d, %v", what, n, pending, err)
	}
	if n := h.count("SELECT count(*) FROM deliveries"); n != rows {
		h.t.Errorf("%s: %d deliveries have a row, want %d", what, n, rows)
	}
	if n := h.count("SELECT count(*) FROM handovers"); n != handovers {
		h.t.Errorf("%s: %d handovers, want %d", what, n, handovers)
	}
}

// Deliveries get their rows with their results, and a handover is removed with its last delivery.
func TestHandover(t *testing.T) {
	h := newHanding(t, t.TempDir())
	accepts, results := h.accepts(10)
	h.commit(&store.Batch{Accepts: accepts[:6]})
	h.commit(&store.Batch{Accepts: accepts[6:], Results: results[:3]})
	h.check("some results", 7, 3, 2)
	h.commit(&store.Batch{Results: results[5:]})
	h.check("more results", 2, 8, 1)
	h.acquire()
	h.check("after the claims have ended", 2, 10, 0)
}

// A batch may mix stored and new events.
func TestHandoverOfKnownEvents(t *testing.T) {
	h := newHanding(t, t.TempDir())
	accepts, results := h.accepts(30)
	h.commit(&store.Batch{Accepts: accepts[:5]})
	mixed := append(slices.Concat(accepts[5:9], accepts[:3], accepts[9:20], accepts[17:18], accepts[3:5], accepts[20:]), accepts[5])
	h.commit(&store.Batch{Accepts: mixed})
	h.commit(&store.Batch{Accepts: mixed})
	h.check("all of them", 30, 0, 2)
	h.commit(&store.Batch{Results: results[:29]})
	h.check("but one", 1, 29, 1)
	h.commit(&store.Batch{Results: results[29:]})
	h.check("done", 0, 30, 0)
}

// Slow deliveries get their rows once many newer ones exist.
func TestHandoverTakesLong(t *testing.T) {
	h := newHanding(t, t.TempDir())
	slow, late := h.accepts(3)
	h.commit(&store.Batch{Accepts: slow})
	h.commit(&store.Batch{Results: late[:1]})
	const step = 2500
	for n := int64(0); n < handedEvents; n += step {
		h.check("before the bound", n+2, 1, n/step+1)
		accepts, _ := h.accepts(step)
		h.commit(&store.Batch{Accepts: accepts})
	}
	h.check("beyond the bound", handedEvents+2, 3, handedEvents/step)
	h.commit(&store.Batch{Results: late[1:]}) // their claims were kept
	h.check("late results", handedEvents, 3, handedEvents/step)
}

// The writer's cache of handovers matches the database after other connections' writes and after failures.
func TestHandoverIsReadBack(t *testing.T) {
	dir := t.TempDir()
	h := newHanding(t, dir)
	accepts, results := h.accepts(4)
	h.commit(&store.Batch{Accepts: accepts})
	boom := errors.New("boom")
	err := h.s.write(t.Context(), "fail", func(c *conn) error {
		out := &store.Committed{}
		if _, err := h.s.record(c, &store.Batch{Results: results[:2]}, out, store.NewTally(time.Time{})); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	h.check("after a failure", 4, 0, 1)
	h.commit(&store.Batch{Results: results[:1]})

	beside := &handing{t: t, s: openAt(t, dir, Options{}), endpoint: h.endpoint, epoch: h.epoch}
	beside.check("beside", 3, 1, 1)
	beside.commit(&store.Batch{Results: results[1:2]})
	if c, err := h.s.Commit(t.Context(), &store.Batch{Now: noon, Results: results[1:]}); err != nil || len(c.Fenced) != 1 {
		t.Errorf("results of which one is known: %+v, %v", c, err)
	}
	h.check("in the end", 0, 4, 0)
}
