package postgres

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

// A batch may be larger than one message.
func TestBatchOfLargeBodies(t *testing.T) {
	s := openAt(t, Options{})
	l := newLoad(t, s)
	l.body = bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	b := l.accepts(40, false)
	b.Accepts = append(b.Accepts, l.accepts(3, true).Accepts...)
	l.commit(t, b)
	if n := count(t, s, `SELECT count(*) FROM events WHERE octet_length(body) = 1 << 20`); n != 43 {
		t.Errorf("%d events have their body, want 43", n)
	}
	claim, err := storetest.ClaimOne(t.Context(), s, store.Claim{EndpointID: l.endpoint, Epoch: l.epoch, Now: b.Now, Limit: 100})
	if err != nil || len(claim.Work) != 0 {
		t.Errorf("claimed %d, %v: all are claimed already", len(claim.Work), err)
	}
	leases, err := storetest.TakeAll(t.Context(), s, "bench")
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases {
		if lease.Shard == l.endpoint.Shard() {
			l.epoch = lease.Epoch
		}
	}
	claim, err = storetest.ClaimOne(t.Context(), s, store.Claim{EndpointID: l.endpoint, Epoch: l.epoch, Now: b.Now, Limit: 100, MaxBytes: 8 << 20})
	if err != nil || len(claim.Work) != 8 || !bytes.Equal(claim.Work[7].Event.Body, l.body) {
		t.Errorf("claimed %d, %v: want 8", len(claim.Work), err)
	}
}

// Partitions are created and dropped under load; no commit fails. How long a commit can wait for that is bounded by the lock
// timeout of the statements.
func TestPartitionsChangeUnderLoad(t *testing.T) {
	s := openAt(t, Options{PartitionWidth: time.Second})
	l := newLoad(t, s)
	var commits atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				accepted := l.accepts(20, false)
				for _, b := range []*store.Batch{accepted, l.results(accepted)} {
					c, err := s.Commit(t.Context(), b)
					if err != nil || len(c.Fenced) > 0 {
						t.Errorf("commit: %+v, %v", c, err)
						return
					}
					commits.Add(1)
				}
			}
		})
	}
	dropped := int64(0)
	for began := time.Now(); time.Since(began) < 6*time.Second || dropped == 0 && time.Since(began) < 5*time.Minute; {
		now := time.Now()
		swept, err := s.Sweep(t.Context(), store.Sweep{
			Now: now, EventsBefore: now.Add(-2 * time.Second), AttemptsBefore: now.Add(-2 * time.Second), Limit: 100,
		})
		if err != nil {
			t.Fatal(err)
		}
		dropped += swept.Events
	}
	close(stop)
	wg.Wait()
	if dropped == 0 || commits.Load() == 0 {
		t.Errorf("%d events were swept, %d commits made: the test shows nothing", dropped, commits.Load())
	}
}

// A change of partitions that another transaction keeps from its lock gives up. Commits would otherwise queue behind it.
func TestPartitionChangeGivesUp(t *testing.T) {
	s := openAt(t, Options{PartitionWidth: time.Second})
	l := newLoad(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	reader, err := s.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback(ctx)
	if _, err := reader.Exec(ctx, `LOCK TABLE events, deliveries, attempts IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	_, err = s.Sweep(ctx, store.Sweep{Now: later, EventsBefore: later, AttemptsBefore: later, Limit: 100})
	if ctx.Err() != nil {
		t.Fatalf("the sweep waited for the reader: %v", err)
	}
	l.commit(t, l.accepts(3, false))
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	url := postgrestest.URL(t)
	running := goleak.IgnoreCurrent()
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := newLoad(t, s)
	l.commit(t, l.accepts(3, false))
	s.vacuum.note(vacuumAfter)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, running)
}
