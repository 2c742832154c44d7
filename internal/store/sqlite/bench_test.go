//go:build unix

package sqlite

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// processor returns the CPU time of this process.
func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// A load makes batches as the engine does: events of 1 KiB for some endpoints, claimed at once, and their results.
type load struct {
	b         *testing.B
	s         *Store
	now       time.Time
	tenant    godwit.TenantID
	endpoints []godwit.EndpointID
	epochs    [godwit.Shards]int64
	body      []byte
	held      []godwit.Work
	aside     *conn // for checkpoints
}

func newLoad(b *testing.B, endpoints int) *load {
	s, err := Open(b.Context(), b.TempDir(), Options{Exclusive: true})
	if err != nil {
		b.Fatal(err)
	}
	l := &load{b: b, s: s, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), body: bytes.Repeat([]byte("x"), 1024)}
	b.Cleanup(func() {
		if l.aside != nil {
			l.aside.close()
		}
		s.Close()
	})
	l.tenant = newIDAt[godwit.TenantID](l.now)
	for range endpoints {
		l.endpoints = append(l.endpoints, newIDAt[godwit.EndpointID](l.now))
	}
	leases, err := storetest.TakeAll(b.Context(), l.s, "bench")
	if err != nil {
		b.Fatal(err)
	}
	for _, lease := range leases {
		l.epochs[lease.Shard] = lease.Epoch
	}
	return l
}

// accepts makes n accepts, each an event with one claimed delivery.
func (l *load) accepts(n int) []store.Accept {
	accepts := make([]store.Accept, n)
	for i := range accepts {
		l.now = l.now.Add(50 * time.Microsecond)
		e := &godwit.Event{
			ID: newIDAt[godwit.EventID](l.now), TenantID: l.tenant, Type: "order.paid", Key: "8e03978e-40d5-43e8-bc93-6894a57f9324",
			ContentType: "application/json", Body: l.body, Principal: godwit.KeyID(l.tenant), CreatedAt: l.now,
		}
		endpoint := l.endpoints[i%len(l.endpoints)]
		epoch := l.epochs[endpoint.Shard()]
		d := store.NewDelivery{ID: newIDAt[godwit.DeliveryID](l.now), EndpointID: endpoint, Trigger: godwit.TriggerAccept, ClaimEpoch: epoch}
		accepts[i].Events = []store.NewEvent{{Event: e, Deliveries: []store.NewDelivery{d}}}
		l.held = append(l.held, godwit.Work{Event: e, Delivery: godwit.Delivery{
			ID: d.ID, TenantID: l.tenant, EventID: e.ID, EndpointID: endpoint, Status: godwit.DeliveryPending, DueAt: l.now,
			CreatedAt: l.now, UpdatedAt: l.now, Run: godwit.Run{Trigger: godwit.TriggerAccept},
		}})
	}
	return accepts
}

// results makes accepted results of n held deliveries, with the health of their endpoints.
func (l *load) results(n int) ([]store.Result, []godwit.Health) {
	results := make([]store.Result, n)
	touched := map[godwit.EndpointID]bool{}
	for i, w := range l.held[:n] {
		d := w.Delivery
		d.Status, d.Reason, d.Attempts, d.LastStatus, d.UpdatedAt = godwit.DeliveryAccepted, godwit.ReasonAccepted, 1, 200, l.now
		d.Run.Attempts, d.Run.FirstAt = 1, l.now
		results[i] = store.Result{Delivery: d, Epoch: l.epochs[d.EndpointID.Shard()], Attempt: &godwit.Attempt{
			ID: newIDAt[godwit.AttemptID](l.now), DeliveryID: d.ID, TenantID: d.TenantID, EventID: d.EventID, EndpointID: d.EndpointID,
			N: 1, Trigger: godwit.TriggerAccept, StartedAt: l.now, Duration: 3 * time.Millisecond, URL: "https://receiver.example/hook",
			Status: 200, Verdict: godwit.Verdict{Outcome: godwit.Accepted, Reason: godwit.ReasonAccepted},
			Trace: godwit.Trace{Proto: "HTTP/1.1", RemoteAddr: "192.0.2.1:443", Body: `{"ok":true}`, SignedWith: []string{"sec_0190"}},
		}}
		touched[d.EndpointID] = true
	}
	l.held = l.held[n:]
	var health []godwit.Health
	for id := range touched {
		health = append(health, godwit.Health{EndpointID: id, Accepted: 1, LastAcceptedAt: l.now, AvgDurationMS: 3, UpdatedAt: l.now})
	}
	return results, health
}

// prepare commits events until n deliveries are held, and checkpoints the WAL, so that none of this counts as the cost of the
// measured work.
func (l *load) prepare(n int) {
	for len(l.held) < n {
		l.commit(&store.Batch{Accepts: l.accepts(500)})
	}
	if l.aside == nil {
		var err error
		if l.aside, err = l.s.openKeeper(l.b.Context()); err != nil {
			l.b.Fatal(err)
		}
	}
	if _, _, err := walStep(l.aside, "PASSIVE"); err != nil {
		l.b.Fatal(err)
	}
}

func (l *load) commit(b *store.Batch) {
	b.Now = l.now
	c, err := l.s.Commit(l.b.Context(), b)
	if err != nil || len(c.Fenced) != 0 {
		l.b.Fatal(err, c)
	}
}

// BenchmarkCommit measures the cost of a row. The CPU time is the relevant number: the wall clock includes one disk wait per
// commit.
func BenchmarkCommit(b *testing.B) {
	for _, kind := range []string{"accept", "result", "mixed"} {
		for _, endpoints := range []int{1, 10, 50} {
			for _, size := range []int{1, 16, 100, 300} {
				b.Run(fmt.Sprintf("%s/endpoints=%d/batch=%d", kind, endpoints, size), func(b *testing.B) {
					benchmarkCommit(b, kind, endpoints, size)
				})
			}
		}
	}
}

func benchmarkCommit(b *testing.B, kind string, endpoints, size int) {
	l := newLoad(b, endpoints)
	l.commit(&store.Batch{Accepts: l.accepts(size)})
	var used time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		batch := &store.Batch{}
		if kind != "accept" {
			if kind == "result" && len(l.held) < size {
				l.prepare(20 * 300)
			}
			batch.Results, batch.Health = l.results(size)
		}
		if kind != "result" {
			batch.Accepts = l.accepts(size)
		}
		if kind == "accept" {
			l.held = l.held[:0]
		}
		before := processor()
		b.StartTimer()
		l.commit(batch)
		used += processor() - before
	}
	rows := float64(b.N * size)
	b.ReportMetric(float64(used.Nanoseconds())/1000/rows, "cpu-µs/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/rows, "µs/row")
}

// BenchmarkBacklog measures what a million waiting deliveries of one endpoint cost the other endpoints.
func BenchmarkBacklog(b *testing.B) {
	const backlog = 1_000_000
	l := newLoad(b, 1)
	l.body = l.body[:64]
	l.epochs = [godwit.Shards]int64{} // unclaimed
	for n := 0; n < backlog; n += 5000 {
		l.commit(&store.Batch{Accepts: l.accepts(5000)})
		l.held = l.held[:0]
	}
	leases, err := storetest.TakeAll(b.Context(), l.s, "bench")
	if err != nil {
		b.Fatal(err)
	}
	endpoint := l.endpoints[0]
	shards := make([]int, godwit.Shards)
	for i := range shards {
		shards[i] = i
	}
	b.Run("EndpointsDue", func(b *testing.B) {
		for b.Loop() {
			if due, err := l.s.EndpointsDue(b.Context(), shards); err != nil || len(due) != 1 {
				b.Fatal(due, err)
			}
		}
	})
	b.Run("ClaimDue/limit=100", func(b *testing.B) {
		for b.Loop() {
			c, err := storetest.ClaimOne(b.Context(), l.s, store.Claim{
				EndpointID: endpoint, Epoch: leases[endpoint.Shard()].Epoch, Now: l.now, Limit: 100, MaxBytes: 1 << 20,
			})
			if err != nil || len(c.Work) != 100 {
				b.Fatal(len(c.Work), err)
			}
		}
	})
	b.Run("CountPending", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.s.CountPending(b.Context(), endpoint); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ListDeliveries/newest=50", func(b *testing.B) {
		for b.Loop() {
			ds, err := l.s.ListDeliveries(b.Context(), store.DeliveryFilter{TenantID: l.tenant, EndpointID: endpoint}, store.Page{Limit: 50})
			if err != nil || len(ds) != 50 {
				b.Fatal(len(ds), err)
			}
		}
	})
	b.Run("Sweep/limit=500", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.s.Sweep(b.Context(), store.Sweep{Now: l.now, EventsBefore: l.now, Limit: 500}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
