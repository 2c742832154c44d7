package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// A populace is many tenants with an endpoint each, all at one receiver.
type populace struct {
	srv     *apptest.Server
	sink    *apptest.Sink
	tenants []godwit.TenantID
}

func newPopulace(t *testing.T, srv *apptest.Server, tenants int) *populace {
	p := &populace{srv: srv, sink: apptest.NewSink(t)}
	for i := range tenants {
		tenant, err := srv.App.Management().Tenants.Create(context.Background(), godwit.DefaultEnvironment, management.TenantSpec{Name: fmt.Sprint("tenant ", i)})
		must(t, err)
		p.tenants = append(p.tenants, tenant.ID)
		p.subscribe(t, tenant)
	}
	return p
}

func (p *populace) subscribe(t *testing.T, tenant *godwit.Tenant) {
	t.Helper()
	_, _, err := p.srv.App.Management().Endpoints.Create(context.Background(), tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
		URL: p.sink.URL("/" + tenant.ID.String()),
	}})
	must(t, err)
}

// broadcast posts a body of so many bytes for all tenants, and returns the id of the broadcast.
func (p *populace) broadcast(t *testing.T, size int) godwit.BroadcastID {
	t.Helper()
	r := p.post(size)
	var answer struct{ ID string }
	if r.Status != http.StatusAccepted {
		t.Fatalf("post: %d %s", r.Status, r.Body)
	}
	r.JSON(t, &answer)
	id, err := godwit.ParseBroadcastID(answer.ID)
	must(t, err)
	return id
}

func (p *populace) post(size int) *apptest.Response {
	return p.srv.Call(apptest.Call{
		Path: "/v1/events?type=order.paid", Body: make([]byte, size), Header: map[string]string{"Godwit-Tenant": "*", "Content-Type": "text/plain"},
	})
}

// store gives the engine a broadcast for all tenants.
func (p *populace) store(t *testing.T, id godwit.BroadcastID) godwit.BroadcastID {
	t.Helper()
	n := &store.NewBroadcast{
		Broadcast: godwit.Broadcast{
			ID: id, EnvironmentID: godwit.DefaultEnvironment, Type: "order.paid", Tenants: len(p.tenants), CreatedAt: time.Now(),
		},
		Event: &godwit.Event{Type: "order.paid", ContentType: "text/plain", Body: make([]byte, 1<<20)}, Work: p.tenants,
	}
	_, err := p.srv.App.Engine().Broadcast(context.Background(), n)
	must(t, err)
	return n.ID
}

// complete waits until a broadcast is complete.
func (p *populace) complete(t *testing.T, id godwit.BroadcastID) *godwit.Broadcast {
	t.Helper()
	for {
		b, err := p.srv.App.Store().Broadcast(t.Context(), godwit.DefaultEnvironment, id)
		must(t, err)
		if !b.Open() {
			return b
		}
		runtime.Gosched()
	}
}

// each checks the number of events of each tenant.
func (p *populace) each(t *testing.T, want int) {
	t.Helper()
	for i, tenant := range p.tenants {
		events, err := p.srv.App.Store().ListEvents(context.Background(), store.EventFilter{TenantID: tenant}, store.Page{Limit: 100})
		must(t, err)
		if len(events) != want {
			t.Errorf("tenant %d has %d events, want %d", i, len(events), want)
		}
	}
}

// partsOf counts the parts of broadcasts in a batch.
func partsOf(b *store.Batch) (parts int) {
	for i := range b.Accepts {
		if b.Accepts[i].Broadcast != nil {
			parts++
		}
	}
	return parts
}

// A part whose commit fails is stored later, once; so is one whose answer is lost. No transaction carries more than a part may.
func TestBroadcastOutlivesAFailingStore(t *testing.T) {
	const tenants, size = 40, 100 << 10
	var mu sync.Mutex
	parts, largest := 0, 0
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		mu.Lock()
		n := partsOf(b)
		parts += n
		nth, part := parts, n > 0
		for i := range b.Accepts {
			if b.Accepts[i].Broadcast != nil {
				largest = max(largest, len(b.Accepts[i].Events))
			}
		}
		mu.Unlock()
		switch {
		case part && nth == 2: // the commit fails
			return nil, fmt.Errorf("commit: %w", store.ErrUnavailable)
		case part && nth == 3: // the answer is lost
			if _, err := commit(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("commit: %w", store.ErrUnavailable)
		}
		return commit()
	}}
	p := newPopulace(t, boot(t, s, nil, nil), tenants)
	id := p.broadcast(t, size)
	if b := p.complete(t, id); b.Accepted != tenants || b.Deliveries != tenants || b.Skipped != 0 {
		t.Errorf("at the end %+v", b)
	}
	p.each(t, 1)
	p.sink.Wait(tenants)
	if most := fanout.PartRows * 4096 / size; largest > most || parts < tenants/most {
		t.Errorf("%d parts with up to %d events, want up to %d", parts, largest, most)
	}
}

// A tenant that was deleted after the broadcast was accepted gets no event. One whose endpoint was deleted gets its event.
func TestBroadcastMeetsChanges(t *testing.T) {
	srv := boot(t, &tampered{}, nil, nil)
	p := newPopulace(t, srv, 3)
	ctx := context.Background()
	endpoints, err := srv.App.Store().ListEndpoints(ctx, store.EndpointFilter{TenantID: p.tenants[0]}, store.Page{Limit: 10})
	must(t, err)
	must(t, deleteEndpoint(srv.App.Management(), srv.App.Store(), p.tenants[0], endpoints[0].ID))
	p.tenants[1] = godwit.NewTenantID(time.Now()) // there is none, as after it was deleted
	id := p.store(t, godwit.NewBroadcastID(time.Now()))
	if b := p.complete(t, id); b.Tenants != 3 || b.Accepted != 2 || b.Skipped != 1 || b.Deliveries != 1 {
		t.Errorf("at the end %+v", b)
	}
	items, err := srv.App.Store().ListBroadcastItems(ctx, store.BroadcastFilter{ID: id, Skipped: true}, store.Page{Limit: 10})
	must(t, err)
	if len(items) != 1 || items[0].TenantID != p.tenants[1] || items[0].Reason != godwit.SkipDeleted {
		t.Errorf("skipped %+v", items)
	}
}

// A tenant with more endpoints than a part carries gets its deliveries by a fan-out.
func TestBroadcastToATenantWithManyEndpoints(t *testing.T) {
	const endpoints = fanout.PartRows + 10
	srv := boot(t, &tampered{}, nil, nil)
	p := newPopulace(t, srv, 2)
	tenant, err := srv.App.Management().Tenants.Get(t.Context(), p.tenants[0])
	must(t, err)
	for range endpoints - 1 {
		p.subscribe(t, tenant)
	}
	id := p.broadcast(t, 10)
	p.sink.Wait(endpoints + 1)
	if b := p.complete(t, id); b.Deliveries != endpoints+1 || b.Accepted != 2 {
		t.Errorf("at the end %+v", b)
	}
	p.each(t, 1)
}

// While too many broadcasts of an environment are open, further ones are refused; single events are not.
func TestOpenBroadcastsAreBounded(t *testing.T) {
	gate := make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if partsOf(b) > 0 {
			<-gate
		}
		return commit()
	}}
	srv := boot(t, s, nil, nil)
	p := newPopulace(t, srv, 1)
	var wg sync.WaitGroup
	for range godwit.MaxOpenBroadcasts {
		p.store(t, godwit.NewBroadcastID(time.Now()))
	}
	if n := srv.App.Engine().Stats().Broadcasts; n != godwit.MaxOpenBroadcasts {
		t.Errorf("%d broadcasts are open", n)
	}
	if r := p.post(1); r.Status != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", r.Status, r.Body)
	}
	wg.Go(func() {
		if _, err := srv.App.Engine().Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: publications(1)}); err != nil {
			t.Error(err)
		}
	})
	close(gate)
	wg.Wait()
	p.sink.Wait(godwit.MaxOpenBroadcasts)
	p.each(t, godwit.MaxOpenBroadcasts)
}

// A broadcast that its node cannot go on with is completed by another one, and no tenant gets a second event when the first node goes on.
func TestBroadcastIsTakenOver(t *testing.T) {
	url := apptest.PostgresURL(t)
	gate, parts := make(chan struct{}), make(chan struct{}, 100)
	release := sync.OnceFunc(func() { close(gate) })
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if partsOf(b) > 0 {
			parts <- struct{}{}
			if len(parts) > 1 {
				<-gate
			}
		}
		return commit()
	}}
	defer release()
	first := apptest.Start(t, apptest.Options{Store: url, Tune: func(c *engine.Config) { s.Store, c.Store = c.Store, s }})
	p := newPopulace(t, first, 5)
	second := apptest.Start(t, apptest.Options{Store: url, Configure: func(c *config.Config) { c.Node = "second" }})
	for second.App.Engine().Stats().Shards != godwit.Shards/2 {
		runtime.Gosched()
	}
	id := godwit.NewBroadcastID(time.Now())
	for !second.App.Engine().Owns(godwit.EndpointID(id)) {
		id = godwit.NewBroadcastID(time.Now())
	}
	p.store(t, id)
	p.srv = second
	b := p.complete(t, id)
	if b.Accepted != 5 || b.Deliveries != 5 {
		t.Errorf("at the end %+v", b)
	}
	release()
	p.each(t, 1)
	p.sink.Wait(5)
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	p.each(t, 1)
}

// A server that stops leaves the rest of a broadcast, and goes on with it when it starts again.
func TestBroadcastSurvivesAStop(t *testing.T) {
	data := t.TempDir()
	stopped := errors.New("stopped")
	var fail sync.Once
	reached := make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if partsOf(b) == 0 {
			return commit()
		}
		fail.Do(func() { close(reached) })
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, stopped)
	}}
	srv := apptest.Start(t, apptest.Options{Data: data, Tune: func(c *engine.Config) { s.Store, c.Store = c.Store, s }})
	p := newPopulace(t, srv, 4)
	id := make(chan godwit.BroadcastID, 1)
	go func() { id <- p.broadcast(t, 1<<20) }()
	await(t, "the first part", reached)
	made := <-id
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	p.srv = apptest.Start(t, apptest.Options{Data: data})
	if b := p.complete(t, made); b.Accepted != 4 {
		t.Errorf("at the end %+v", b)
	}
	p.each(t, 1)
	p.sink.Wait(4)
}
