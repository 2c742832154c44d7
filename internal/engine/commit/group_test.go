package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// scripted is a store that passes every batch to a function of the test.
type scripted func(b *store.Batch) error

func (s scripted) Commit(_ context.Context, b *store.Batch) (*store.Committed, error) {
	if err := s(b); err != nil {
		return nil, err
	}
	return &store.Committed{Existing: make([]*godwit.IdempotencyRecord, len(b.Accepts))}, nil
}

func startGroup(t *testing.T, s scripted) *Group {
	g := New(Config{Store: s, Log: slog.New(slog.DiscardHandler), Clock: clock.Real{}, Pace: clock.Real{}, Linger: time.Millisecond})
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run() }()
	t.Cleanup(func() { g.Stop(); <-ended })
	return g
}

// requestOf makes a request with the given number of rows.
func requestOf(tenant byte, rows int) Request {
	event := store.NewEvent{Event: &godwit.Event{}, Deliveries: make([]store.NewDelivery, rows)}
	return Request{Tenant: godwit.TenantID{tenant}, Accepts: []store.Accept{{Events: []store.NewEvent{event}}}}
}

func deliveries(b *store.Batch) (rows int) {
	for i := range b.Accepts {
		rows += len(b.Accepts[i].Events[0].Deliveries)
	}
	return rows
}

// waitQueued waits until n requests are queued.
func waitQueued(g *Group, n int) {
	for {
		g.mu.Lock()
		queued := g.foreground.length + g.background.length
		g.mu.Unlock()
		if queued == n {
			return
		}
		runtime.Gosched()
	}
}

// While a transaction is written, many large requests and parts of fan-outs queue up, followed by a small request of another
// tenant. The small request is in the next transaction, and no transaction exceeds its bound.
func TestSmallRequestIsInTheNextTransaction(t *testing.T) {
	const small = 7 // rows
	gate, entered := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var transactions []int // rows
	smallIn := 0
	g := startGroup(t, func(b *store.Batch) error {
		mu.Lock()
		transactions = append(transactions, deliveries(b))
		n := len(transactions)
		for i := range b.Accepts {
			if len(b.Accepts[i].Events[0].Deliveries) == small {
				smallIn = n
			}
		}
		mu.Unlock()
		if n == 1 {
			close(entered)
			<-gate
		}
		return nil
	})
	var wg sync.WaitGroup
	do := func(f func(Request) Answer, r Request) {
		wg.Go(func() {
			if a := f(r); a.Err != nil {
				t.Error(a.Err)
			}
		})
	}
	do(g.Do, requestOf(1, 10))
	<-entered
	for range 20 {
		do(g.Do, requestOf(1, 900))
		do(g.DoInBackground, requestOf(3, 200))
	}
	waitQueued(g, 40)
	do(g.Do, requestOf(2, small))
	waitQueued(g, 41)
	close(gate)
	wg.Wait()
	if smallIn != 2 {
		t.Errorf("the small request was in transaction %d, want 2", smallIn)
	}
	for i, rows := range transactions {
		if rows > MaxRows+MaxPart {
			t.Errorf("transaction %d wrote %d rows", i+1, rows)
		}
	}
}

// holder is the claim of a record. It reports which of its methods was called.
type holder struct{ became chan string }

func (h *holder) Health() godwit.Health        { return godwit.Health{} }
func (h *holder) Stored(*Record)               { h.became <- "stored" }
func (h *holder) Refused(*Record)              { h.became <- "refused" }
func (h *holder) Dropped(_ *Record, err error) { h.became <- "dropped: " + err.Error() }

// A record outlives an unreachable store. If the store permanently refuses a record, the group first removes the receiver's
// text, then the news, and finally drops the record.
func TestRecordsThatFail(t *testing.T) {
	poison := errors.New("row is not acceptable")
	for name, c := range map[string]struct {
		fail   func(b *store.Batch, nth int) error
		became string
		news   string
	}{
		"the store is away": {func(_ *store.Batch, nth int) error {
			if nth < 3 {
				return fmt.Errorf("commit: %w", store.ErrUnavailable)
			}
			return nil
		}, "stored", "true"},
		"what the receiver wrote cannot be stored": {func(b *store.Batch, _ int) error {
			if b.Results[0].Attempt.Trace.Body != "" {
				return poison
			}
			return nil
		}, "stored", "true"},
		"its news cannot be stored": {func(b *store.Batch, _ int) error {
			if len(b.Accepts) > 0 {
				return poison
			}
			return nil
		}, "stored", "false"},
		"nothing of it can be stored": {func(*store.Batch, int) error { return poison }, "dropped: " + poison.Error(), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			nth := 0
			g := startGroup(t, func(b *store.Batch) error { nth++; return c.fail(b, nth) })
			h, news := &holder{became: make(chan string, 1)}, make(chan string, 1)
			g.Add(&Record{
				Claim: h, Event: &godwit.Event{},
				Result: store.Result{Attempt: &godwit.Attempt{Trace: godwit.Trace{Body: "poison"}}},
				News: &News{
					Accept: store.Accept{Events: []store.NewEvent{{Event: &godwit.Event{}}}},
					Ended:  func(stored bool) { news <- fmt.Sprint(stored) },
				},
			})
			if got := <-h.became; got != c.became {
				t.Errorf("the record was %s, want %s", got, c.became)
			}
			if got := <-news; got != c.news {
				t.Errorf("its news were stored: %s, want %s", got, c.news)
			}
		})
	}
}

// A return whose commit failed may be stored all the same, and its delivery claimed again: it is not repeated, unlike a result.
func TestReturnIsNotRepeated(t *testing.T) {
	away := fmt.Errorf("commit: %w", store.ErrUnavailable)
	g := New(Config{
		Store: scripted(func(*store.Batch) error { return away }), Log: slog.New(slog.DiscardHandler), Clock: clock.Real{}, Pace: clock.Real{},
	})
	returned := &holder{became: make(chan string, 1)}
	pending := godwit.Delivery{Status: godwit.DeliveryPending}
	result := &Record{Claim: &holder{}, Event: &godwit.Event{}, Result: store.Result{Delivery: pending, Attempt: &godwit.Attempt{}}}
	cancelled := &Record{
		Claim: &holder{}, Event: &godwit.Event{}, Result: store.Result{Delivery: godwit.Delivery{Status: godwit.DeliveryCancelled}},
	}
	g.write(batch{records: []*Record{{Claim: returned, Event: &godwit.Event{}, Result: store.Result{Delivery: pending}}, result, cancelled}})
	if len(returned.became) == 0 || <-returned.became != "dropped: "+away.Error() {
		t.Error("the return was not dropped")
	}
	if kept := g.records.take(9, 9); !slices.Equal(kept, []*Record{result, cancelled}) {
		t.Errorf("%d records are repeated, want the result and the end of the cancelled delivery", len(kept))
	}
}
