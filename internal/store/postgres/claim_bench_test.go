package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
)

// BenchmarkClaim measures the cost of a claimed delivery if one transaction claims for several endpoints with one delivery each.
func BenchmarkClaim(b *testing.B) {
	for _, endpoints := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			l, epochs := newSpread(b, openAt(b, Options{HotConnections: 1}))
			for b.Loop() {
				batch := l.accepts(endpoints, false)
				claims := make([]store.Claim, endpoints)
				for i := range batch.Accepts {
					d := &batch.Accepts[i].Events[0].Deliveries[0]
					d.EndpointID, d.ClaimEpoch = mintEndpoint(batch.Now), 0
					claims[i] = store.Claim{EndpointID: d.EndpointID, Epoch: epochs[d.EndpointID.Shard()], Now: batch.Now, Limit: 100, MaxBytes: 1 << 20}
				}
				b.StopTimer()
				if _, err := l.s.Commit(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				l.measure(b, func() {
					claimed, err := l.s.ClaimDue(b.Context(), claims)
					if err != nil {
						b.Fatal(err)
					}
					for i := range claimed {
						if len(claimed[i].Work) != 1 {
							b.Fatalf("claimed %d deliveries of an endpoint: %v", len(claimed[i].Work), claimed[i].Err)
						}
					}
				})
			}
			l.report(b, b.N*endpoints)
		})
	}
}

// newSpread makes a load, and returns the epochs of all shards.
func newSpread(tb testing.TB, s *Store) (*load, map[int]int64) {
	tb.Helper()
	l := newLoad(tb, s)
	c, err := s.Cluster(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	epochs := map[int]int64{}
	for _, lease := range c.Leases {
		epochs[lease.Shard] = lease.Epoch
	}
	return l, epochs
}

// BenchmarkSignal measures the commits of three nodes that each tell the others of what they stored: with NOTIFY in the transaction
// of the commit, and with NOTIFY in one of its own after it, of which one at a time is under way for a node.
func BenchmarkSignal(b *testing.B) {
	const nodes = 3
	for _, inside := range []bool{false, true} {
		b.Run(fmt.Sprintf("inside=%v", inside), func(b *testing.B) {
			first := openAt(b, Options{HotConnections: 1})
			l := newLoad(b, first)
			l.body = l.body[:100]
			stores := []*Store{first}
			for range nodes - 1 {
				s, err := Open(b.Context(), first.pool.Config().ConnString(), Options{HotConnections: 1})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				stores = append(stores, s)
			}
			ctx, stop := context.WithCancel(b.Context())
			var listeners, committers, tellers sync.WaitGroup
			for _, s := range stores {
				listeners.Go(func() { s.Listen(ctx, func(string) {}, func() {}) })
			}
			began := time.Now()
			each := (b.N + nodes - 1) / nodes
			for _, s := range stores {
				news := make(chan struct{}, 1)
				tellers.Go(func() {
					for range news {
						if err := s.Signal(ctx, []string{signalText}); err != nil {
							b.Error(err)
						}
					}
				})
				committers.Go(func() {
					defer close(news)
					for range each {
						if err := commitOne(ctx, s, l.accepts(8, false), inside); err != nil {
							b.Error(err)
							return
						}
						if inside {
							continue
						}
						select {
						case news <- struct{}{}:
						default:
						}
					}
				})
			}
			committers.Wait()
			b.ReportMetric(float64(nodes*each)/time.Since(began).Seconds(), "commits/s")
			tellers.Wait()
			stop()
			listeners.Wait()
		})
	}
}

// signalText is a signal of about ten endpoints.
var signalText = fmt.Sprintf("%0250d", 1)

// commitOne stores a batch of accepts without claims.
func commitOne(ctx context.Context, s *Store, batch *store.Batch, notify bool) error {
	for i := range batch.Accepts {
		batch.Accepts[i].Events[0].Deliveries[0].ClaimEpoch = 0
	}
	if !notify {
		_, err := s.Commit(ctx, batch)
		return err
	}
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	p := newPipeline(ctx, conn.Conn().PgConn())
	s.batches.arrange(batch).addAccepts(p)
	p.command(`SELECT pg_notify('` + signalChannel + `', '` + signalText + `')`)
	return p.run()
}
