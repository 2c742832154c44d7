package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A fan subscribes many endpoints of one receiver to one event type, and counts the requests.
type fan struct {
	srv       *apptest.Server
	sink      *apptest.Sink
	endpoints []apptest.Endpoint
}

func newFan(t *testing.T, srv *apptest.Server, endpoints int) *fan {
	f := &fan{srv: srv, sink: apptest.NewSink(t)}
	for i := range endpoints {
		f.endpoints = append(f.endpoints, srv.Endpoint(f.sink.URL(fmt.Sprintf("/%d", i))))
	}
	return f
}

func publications(n int) []engine.Publication {
	list := make([]engine.Publication, n)
	for i := range list {
		list[i] = engine.Publication{Type: "order.paid", ContentType: "application/json", Body: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	return list
}

// rowsOf counts the deliveries that a batch stores.
func rowsOf(b *store.Batch) (rows int) {
	for i := range b.Accepts {
		for k := range b.Accepts[i].Events {
			rows += len(b.Accepts[i].Events[k].Deliveries)
		}
	}
	return rows
}

// A submission with many deliveries is acknowledged once its events and the list of its receivers are stored. Its deliveries
// are stored in transactions of bounded size, each event goes to each endpoint once, and another tenant's event is stored
// between two parts.
func TestLargeFanoutIsParted(t *testing.T) {
	const events, endpoints = 100, 25
	var mu sync.Mutex
	var parts, largest int
	between := make(chan struct{})
	first := make(chan struct{}, 1)
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		mu.Lock()
		largest = max(largest, rowsOf(b))
		part := 0
		for i := range b.Accepts {
			if b.Accepts[i].Part != nil {
				part++
			}
		}
		parts += part
		mu.Unlock()
		if part > 0 {
			select {
			case first <- struct{}{}:
			default:
			}
			<-between // wait until the other tenant's event was posted
		}
		return commit()
	}}
	srv := boot(t, s, nil, func(c *engine.Config) { c.PollInterval = 1 << 40 })
	f := newFan(t, srv, endpoints)
	other, _ := srv.NewTenant("other", godwit.ScopeIngest)
	receipts, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: publications(events)})
	must(t, err)
	if len(receipts[0].Events) != events || receipts[0].Fanout[0] != endpoints {
		t.Fatalf("receipt of %d events, the first to %v", len(receipts[0].Events), receipts[0].Fanout)
	}
	await(t, "the first part", first)
	posted := make(chan error, 1)
	go func() {
		_, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: other, Events: publications(1)})
		posted <- err
	}()
	close(between)
	must(t, <-posted)

	f.sink.Wait(events * endpoints)
	for i := range f.endpoints {
		seen := map[string]bool{}
		for _, r := range f.sink.Requests(fmt.Sprintf("/%d", i)) {
			seen[string(r.Body)] = true
		}
		if n := len(f.sink.Requests(fmt.Sprintf("/%d", i))); n != events || len(seen) != events {
			t.Fatalf("endpoint %d got %d requests of %d events", i, n, len(seen))
		}
	}
	for i := range receipts[0].Events {
		for _, ep := range f.endpoints {
			srv.WaitDelivery(receipts[0].Events[i].ID, ep, godwit.DeliveryAccepted)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := (events*endpoints + fanout.PartRows - 1) / fanout.PartRows; parts < want {
		t.Errorf("%d parts, want at least %d", parts, want)
	}
	if largest > commit.MaxRows+commit.MaxPart {
		t.Errorf("one transaction stored %d deliveries", largest)
	}
}

// A part whose commit fails is stored later, once. A list of an event's deliveries is complete.
func TestFanoutOutlivesAFailingStore(t *testing.T) {
	var mu sync.Mutex
	seen := 0
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		part := false
		for i := range b.Accepts {
			part = part || b.Accepts[i].Part != nil
		}
		mu.Lock()
		if part {
			seen++
		}
		nth := seen
		mu.Unlock()
		switch {
		case part && nth == 1: // the commit fails
			return nil, fmt.Errorf("commit: %w", store.ErrUnavailable)
		case part && nth == 2: // the answer is lost
			if _, err := commit(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("commit: %w", store.ErrUnavailable)
		}
		return commit()
	}}
	srv := boot(t, s, nil, nil)
	f := newFan(t, srv, 30)
	receipts, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: publications(40)})
	must(t, err)
	last := receipts[0].Events[39].ID
	again, err := srv.App.Engine().ReplayEvent(context.Background(), srv.Tenant, last, nil, "test")
	must(t, err)
	if len(again) > 30 {
		t.Errorf("an event for 30 endpoints was replayed to %d", len(again))
	}
	for i := range receipts[0].Events {
		for _, ep := range f.endpoints {
			srv.WaitDelivery(receipts[0].Events[i].ID, ep, godwit.DeliveryAccepted)
		}
		deliveries, err := srv.App.Store().ListDeliveries(context.Background(), store.DeliveryFilter{TenantID: srv.Tenant, EventID: receipts[0].Events[i].ID}, store.Page{Limit: 100})
		must(t, err)
		if len(deliveries) != 30 {
			t.Fatalf("event %d has %d deliveries", i, len(deliveries))
		}
	}
}
