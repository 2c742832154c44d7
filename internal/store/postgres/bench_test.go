package postgres

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// BenchmarkCommit measures the cost of a row in batches of different sizes, in µs of wall clock, of CPU in this process and,
// if the server runs on the same Linux machine, of CPU in the server. A mixed batch has as many accepts as results; its row is
// one of each.
func BenchmarkCommit(b *testing.B) {
	for _, kind := range []string{"accept", "keyed", "result", "mixed"} {
		for _, size := range []int{1, 16, 100, 300} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) { benchCommit(b, kind, size) })
		}
	}
}

// load makes batches for one endpoint whose shard is held.
type load struct {
	s        *Store
	tenant   godwit.TenantID
	endpoint godwit.EndpointID
	epoch    int64
	body     []byte
	spent    cost
}

// cost is the time that some work took.
type cost struct{ wall, client, server time.Duration }

func newLoad(tb testing.TB, s *Store) *load {
	tb.Helper()
	now := time.Now().UTC()
	l := &load{s: s, body: bytes.Repeat([]byte(`{"order":"4711","total":42}     `), 32)}
	l.tenant, l.endpoint = mintTenant(now), mintEndpoint(now)
	leases, err := storetest.TakeAll(tb.Context(), s, "bench")
	if err != nil {
		tb.Fatal(err)
	}
	for _, lease := range leases {
		if lease.Shard == l.endpoint.Shard() {
			l.epoch = lease.Epoch
		}
	}
	return l
}

var (
	mintTenant   func(time.Time) godwit.TenantID   = godwit.NewID
	mintEndpoint func(time.Time) godwit.EndpointID = godwit.NewID
	mintEvent    func(time.Time) godwit.EventID    = godwit.NewID
	mintDelivery func(time.Time) godwit.DeliveryID = godwit.NewID
	mintAttempt  func(time.Time) godwit.AttemptID  = godwit.NewID
)

func (l *load) accepts(n int, keyed bool) *store.Batch {
	now := time.Now().UTC().Truncate(time.Microsecond)
	b := &store.Batch{Now: now, Accepts: make([]store.Accept, n)}
	for i := range b.Accepts {
		e := &godwit.Event{
			ID: mintEvent(now), TenantID: l.tenant, Type: "order.paid", Key: rand.Text(),
			ContentType: "application/json", Body: l.body, CreatedAt: now,
		}
		b.Accepts[i].Events = []store.NewEvent{{Event: e, Deliveries: []store.NewDelivery{
			{ID: mintDelivery(now), EndpointID: l.endpoint, Trigger: godwit.TriggerAccept, ClaimEpoch: l.epoch},
		}}}
		if keyed {
			b.Accepts[i].Record = &godwit.IdempotencyRecord{
				ID: godwit.IdempotencyID(godwit.KeyID(e.ID), "POST /v1/events", "key"), TenantID: l.tenant, CreatedAt: now,
				ExpiresAt: now.Add(24 * time.Hour),
				Response:  &godwit.StoredResponse{Status: 202, ContentType: "application/json", Body: []byte(`{"id":"` + e.ID.String() + `"}`)},
			}
		}
	}
	return b
}

// results makes the results of a batch's deliveries.
func (l *load) results(accepted *store.Batch) *store.Batch {
	now := time.Now().UTC().Truncate(time.Microsecond)
	b := &store.Batch{Now: now, Results: make([]store.Result, 0, len(accepted.Accepts))}
	for _, a := range accepted.Accepts {
		e, d := a.Events[0].Event, a.Events[0].Deliveries[0]
		b.Results = append(b.Results, store.Result{
			Epoch: l.epoch,
			Delivery: godwit.Delivery{
				ID: d.ID, TenantID: l.tenant, EventID: e.ID, EndpointID: l.endpoint, Status: godwit.DeliveryAccepted,
				Reason: godwit.ReasonAccepted, Attempts: 1, LastStatus: 200, DueAt: e.CreatedAt, CreatedAt: e.CreatedAt,
				UpdatedAt: now, Run: godwit.Run{Trigger: godwit.TriggerAccept, Attempts: 1, FirstAt: now},
			},
			Attempt: &godwit.Attempt{
				ID: mintAttempt(now), DeliveryID: d.ID, TenantID: l.tenant, EventID: e.ID, EndpointID: l.endpoint, N: 1,
				Trigger: godwit.TriggerAccept, StartedAt: now, Duration: 1234 * time.Microsecond, URL: "https://receiver.example/hooks/4711",
				Status: 200, Verdict: godwit.Verdict{Outcome: godwit.Accepted, Reason: godwit.ReasonAccepted},
				Trace: godwit.Trace{
					Proto: "HTTP/1.1", RemoteAddr: "192.0.2.1:443", SignedWith: []string{"sec_0199a2b0-0000-7000-8000-000000000000"},
				},
			},
		})
	}
	b.Health = []godwit.Health{{EndpointID: l.endpoint, Accepted: 1, LastAcceptedAt: now, LastReason: godwit.ReasonAccepted, UpdatedAt: now}}
	return b
}

// commit stores batches that must succeed, and sums up their cost.
func (l *load) commit(tb testing.TB, batches ...*store.Batch) {
	tb.Helper()
	l.measure(tb, func() {
		for _, b := range batches {
			c, err := l.s.Commit(tb.Context(), b)
			if err != nil {
				tb.Fatal(err)
			}
			if len(c.Fenced) != 0 {
				tb.Fatalf("%d results were fenced", len(c.Fenced))
			}
		}
	})
}

// measure adds the cost of fn, whose statements run on the hot connection.
func (l *load) measure(tb testing.TB, fn func()) {
	tb.Helper()
	conn, err := l.s.hot.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	pid := conn.Conn().PgConn().PID()
	conn.Release()
	client, server, started := clientCPU(), serverCPU(pid), time.Now()
	fn()
	l.spent.wall += time.Since(started)
	l.spent.client += clientCPU() - client
	l.spent.server += serverCPU(pid) - server
}

// report gives the cost of a row.
func (l *load) report(b *testing.B, rows int) {
	n := float64(rows)
	b.ReportMetric(float64(l.spent.wall.Nanoseconds())/n/1e3, "wall-µs/row")
	b.ReportMetric(float64(l.spent.client.Nanoseconds())/n/1e3, "client-µs/row")
	b.ReportMetric(float64(l.spent.server.Nanoseconds())/n/1e3, "server-µs/row")
	b.ReportMetric(0, "ns/op")
}

func benchCommit(b *testing.B, kind string, size int) {
	s := openAt(b, Options{HotConnections: 1})
	l := newLoad(b, s)
	const chunk = 20
	waiting := l.accepts(size, false) // deliveries that a mixed batch finishes
	l.commit(b, waiting)
	for range 10 { // warm up plans and caches
		next := l.accepts(size, kind == "keyed")
		l.commit(b, next, l.results(waiting))
		waiting = next
	}
	l.spent = cost{}
	b.ResetTimer()
	done := 0
	for ; done < b.N; done += chunk {
		b.StopTimer()
		batches := make([]*store.Batch, chunk)
		for i := range batches {
			switch kind {
			case "accept", "keyed":
				batches[i] = l.accepts(size, kind == "keyed")
			case "result":
				accepted := l.accepts(size, false)
				before := l.spent
				l.commit(b, accepted)
				l.spent = before
				batches[i] = l.results(accepted)
			case "mixed":
				batches[i] = l.accepts(size, false)
				r := l.results(waiting)
				waiting = &store.Batch{Accepts: batches[i].Accepts}
				batches[i].Results, batches[i].Health = r.Results, r.Health
			}
		}
		b.StartTimer()
		l.commit(b, batches...)
	}
	l.report(b, done*size)
}
