//go:build unix

package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
)

// The server crashes several times under load. Every batch is repeated until it is acknowledged; then each batch is stored
// exactly once.
func TestServerCrash(t *testing.T) {
	c := postgrestest.NewCluster(t)
	s, err := Open(t.Context(), c.URL(), Options{HotConnections: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := newLoad(t, s)

	const writers, rounds, size = 4, 3, 20
	acks := make(chan int) // number of rows of each acknowledged batch
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() { writeUntil(ctx, t, l, size, acks) })
	}
	events, seen := 0, 0
	for range rounds {
		for range 40 {
			events += <-acks
			seen++
		}
		crashed := make(chan struct{})
		go func() {
			defer close(crashed)
			c.Crash()
			c.Start()
		}()
		for done := false; !done; {
			select {
			case n := <-acks:
				events += n
				seen++
			case <-crashed:
				done = true
			}
		}
	}
	stop()
	go func() {
		wg.Wait()
		close(acks)
	}()
	for n := range acks {
		events += n
		seen++
	}
	if seen < 40*rounds {
		t.Errorf("only %d batches were acknowledged", seen)
	}
	for table, want := range map[string]int{"events": events, "attempts": events, "deliveries": events, "pending_deliveries": 0} {
		if n := count(t, s, `SELECT count(*) FROM `+table); n != want {
			t.Errorf("%s has %d rows after the crashes, %d were acknowledged", table, n, want)
		}
	}
}

// writeUntil accepts and finishes events until the context ends. It completes what it has begun.
func writeUntil(ctx context.Context, t *testing.T, l *load, size int, acks chan<- int) {
	for ctx.Err() == nil {
		accepted := l.accepts(size, false)
		for _, b := range []*store.Batch{accepted, l.results(accepted)} {
			for {
				// A commit may wait for ever for a standby that was promoted meanwhile; the engine bounds it too.
				limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, err := l.s.Commit(limited, b)
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("commit while the server crashes: %v", err)
					return
				}
			}
		}
		acks <- size
	}
}
