package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
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

// While too many fan-outs of a tenant are open, further ones are refused in the shape of each API. Small submissions and
// other tenants are not affected.
func TestOpenFanoutsAreBounded(t *testing.T) {
	const endpoints = 30
	gate := make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		for i := range b.Accepts {
			if b.Accepts[i].Part != nil {
				<-gate
			}
		}
		return commit()
	}}
	srv := boot(t, s, nil, func(c *engine.Config) { c.MaxFanouts = 1 })
	f := newFan(t, srv, endpoints)
	large := engine.Submission{TenantID: srv.Tenant, Events: publications(100)}
	first, err := srv.App.Engine().Submit(context.Background(), large)
	must(t, err)
	if _, err := srv.App.Engine().Submit(context.Background(), large); !errors.Is(err, engine.ErrFanouts) {
		t.Errorf("a second large submission: %v", err)
	}
	if open := srv.App.Engine().Stats().Fanouts; open != 1 {
		t.Errorf("%d fan-outs are open", open)
	}
	var list, jobs []string
	for i := range 100 {
		list = append(list, `{"type":"order.paid","data":{}}`)
		jobs = append(jobs, fmt.Sprintf(`{"specversion":"1.0","id":"e%d","type":"order.paid","source":"ojs://shop/orders","time":"2026-01-01T00:00:00Z","data":{}}`, i))
	}
	for path, c := range map[string]struct{ events, code string }{
		"/v1/events/batch":     {strings.Join(list, ","), `"code":"too-many-requests"`},
		"/ojs/v1/events/batch": {strings.Join(jobs, ","), `"code":"rate_limited"`},
	} {
		r := srv.Call(apptest.Call{Path: path, Body: `{"events":[` + c.events + `]}`})
		if r.Status != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" || !strings.Contains(string(r.Body), c.code) {
			t.Errorf("%s: %d %v %s", path, r.Status, r.Header, r.Body)
		}
	}
	other, _ := srv.NewTenant("other", godwit.ScopeIngest)
	taken := make(chan error, 2)
	for _, tenant := range []godwit.TenantID{srv.Tenant, other} {
		go func() {
			_, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: tenant, Events: publications(1)})
			taken <- err
		}()
	}
	close(gate)
	must(t, errors.Join(<-taken, <-taken))
	f.sink.Wait(101 * endpoints)
	for i := range first[0].Events {
		srv.WaitDelivery(first[0].Events[i].ID, f.endpoints[0], godwit.DeliveryAccepted)
	}
}

// The limit of a wait for outcomes counts the wait for the fan-out, too.
func TestAwaitCountsTheFanout(t *testing.T) {
	const limit = 20 * time.Second
	hands := clock.NewManual(start)
	gate := make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		for i := range b.Accepts {
			if b.Accepts[i].Part != nil {
				<-gate
			}
		}
		return commit()
	}}
	srv := boot(t, s, hands, longLease)
	sink := apptest.NewSink(t)
	hang := make(chan struct{})
	defer close(hang)
	sink.Script("/", apptest.Status(200).Until(hang))
	for range 12 {
		srv.Endpoint(sink.URL("/"))
	}
	receipts, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: publications(100)})
	must(t, err)
	awaited := make(chan *engine.Awaited, 1)
	go func() {
		a, err := srv.App.Engine().Await(context.Background(), srv.Tenant, receipts[0].Events[0].ID, nil, limit)
		if err != nil {
			t.Error(err)
		}
		awaited <- a
	}()
	if !hands.Await(start.Add(limit), time.Minute) {
		t.Fatal("it does not wait for the fan-out")
	}
	hands.Advance(limit - time.Second)
	close(gate)
	sink.Wait(12)
	hands.Advance(time.Second)
	if a := <-awaited; a != nil && a.Open == 0 {
		t.Errorf("the endpoints answered: %+v", a)
	}
}

// An event that is sent again to many endpoints that did not have it before gets its deliveries in transactions of bounded size.
func TestReplayToManyEndpointsIsParted(t *testing.T) {
	const endpoints = fanout.PartRows + 10
	var mu sync.Mutex
	var largest, total int
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		mu.Lock()
		defer mu.Unlock()
		largest, total = max(largest, rowsOf(b)), total+rowsOf(b)
		return commit()
	}}
	srv := boot(t, s, nil, nil)
	receipts, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: publications(1)})
	must(t, err)
	f := newFan(t, srv, endpoints)
	made, err := srv.App.Engine().ReplayEvent(context.Background(), srv.Tenant, receipts[0].Events[0].ID, nil, "operator")
	must(t, err)
	f.sink.Wait(endpoints)
	mu.Lock()
	defer mu.Unlock()
	if len(made) != endpoints || total != endpoints || largest > fanout.PartRows {
		t.Errorf("%d deliveries, %d stored, %d in one transaction", len(made), total, largest)
	}
}

// A command whose events have many deliveries stores the events with the list of their receivers. The deliveries are stored
// afterwards, in parts.
func TestLargeOutboxIsParted(t *testing.T) {
	const events, endpoints = 50, 25
	var mu sync.Mutex
	var parts, largest int
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		mu.Lock()
		largest = max(largest, rowsOf(b))
		for i := range b.Accepts {
			if b.Accepts[i].Part != nil {
				parts++
			}
		}
		mu.Unlock()
		return commit()
	}}
	srv := boot(t, s, nil, func(c *engine.Config) { c.MaxFanouts = events })
	f := newFan(t, srv, endpoints)
	box, err := srv.App.Engine().Plan(t.Context(), srv.Tenant, godwit.KeyID{}, "cmd_1", publications(events)...)
	must(t, err)
	for i := range box.Events {
		if n := &box.Events[i]; len(n.Deliveries) > 0 || n.Receivers() != endpoints {
			t.Fatalf("event %d has %d deliveries of %d", i, len(n.Deliveries), n.Receivers())
		}
	}
	results, err := srv.App.Store().Advance(context.Background(), time.Now(), []*command.Step{{
		Tenant: srv.Tenant.String(), Effects: []command.Effect{store.Publish{Events: box.Events}},
		Settle: func(a command.Applied) (command.Change, error) {
			return command.Change{Evidence: []evidence.Entry{{Type: evidence.Observation, At: time.Now()}}}, a.Err
		},
	}})
	must(t, errors.Join(err, results[0].Err))
	box.Close(true)
	f.sink.Wait(events * endpoints)
	for i := range f.endpoints {
		if n := len(f.sink.Requests(fmt.Sprintf("/%d", i))); n != events {
			t.Errorf("endpoint %d got %d events", i, n)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if parts < events || largest > commit.MaxRows+commit.MaxPart {
		t.Errorf("%d parts, %d deliveries in one transaction", parts, largest)
	}
}

// A command whose events have many deliveries waits while too many fan-outs of its tenant are open.
func TestOutboxesAreBounded(t *testing.T) {
	srv := boot(t, &tampered{}, nil, func(c *engine.Config) { c.MaxFanouts = -1 })
	newFan(t, srv, 25)
	if box, err := srv.App.Engine().Plan(t.Context(), srv.Tenant, godwit.KeyID{}, "cmd_1", publications(50)...); !errors.Is(err, engine.ErrFanouts) {
		t.Errorf("%+v, %v", box, err)
	}
	box, err := srv.App.Engine().Plan(t.Context(), srv.Tenant, godwit.KeyID{}, "cmd_1", publications(1)...)
	must(t, err)
	box.Close(false)
}
