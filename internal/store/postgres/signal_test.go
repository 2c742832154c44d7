package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Another process gets signals, also after its connection was lost; it learns that some may be lost then.
func TestSignals(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	other := beside(t, s).(*Store)
	ctx, cancel := context.WithCancel(t.Context())
	received, lost := make(chan string, 16), make(chan struct{}, 16)
	var listening sync.WaitGroup
	listening.Go(func() { other.Listen(ctx, func(m string) { received <- m }, func() { lost <- struct{}{} }) })
	defer listening.Wait()
	defer cancel()
	for range 2 {
		<-lost
		if err := s.Signal(ctx, []string{"a/1 work", "a/1 leases"}); err != nil {
			t.Fatal(err)
		}
		if first, second := <-received, <-received; first != "a/1 work" || second != "a/1 leases" {
			t.Errorf("received %q and %q", first, second)
		}
		_, err := s.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND query = 'LISTEN `+signalChannel+`'`)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// While the database is away, the connection for signals waits its turn like every other one.
func TestSignalsHeedTheConnector(t *testing.T) {
	s := openAt(t, Options{Now: suiteTime})
	s.connector.mu.Lock()
	s.connector.failures, s.connector.next = 1, time.Now().Add(time.Hour)
	s.connector.mu.Unlock()
	if err := s.signals.listen(t.Context(), nil, nil); !errors.Is(err, errWaiting) {
		t.Errorf("listening gave %v", err)
	}
}
