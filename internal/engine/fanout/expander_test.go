package fanout

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// memory is a store of fan-outs. Every requested event exists.
type memory struct {
	mu         sync.Mutex
	open       map[godwit.EventID]store.Fanout
	deliveries int
	gate       chan struct{} // commits wait until it is closed
	listed     bool          // Fanouts lists what is open
}

func (m *memory) Commit(_ context.Context, b *store.Batch) (*store.Committed, error) {
	<-m.gate
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &store.Committed{Existing: make([]*godwit.IdempotencyRecord, len(b.Accepts))}
	for i := range b.Accepts {
		part := b.Accepts[i].Part
		f, ok := m.open[part.ID]
		if !ok || f.Done != part.From {
			out.Moved = append(out.Moved, i)
			continue
		}
		for _, e := range b.Accepts[i].Events {
			m.deliveries += len(e.Deliveries)
		}
		f.Done = part.To
		m.open[part.ID] = f
		if part.Last {
			delete(m.open, part.ID)
		}
	}
	return out, nil
}

func (m *memory) Fanouts(_ context.Context, after godwit.EventID, _ int) (list []store.Fanout, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.open {
		if m.listed && after.IsZero() {
			f.Endpoints = nil
			list = append(list, f)
		}
	}
	return list, nil
}

func (m *memory) Fanout(_ context.Context, id godwit.EventID) (*store.Fanout, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.open[id]
	if !ok {
		return nil, store.ErrNotFound
	}
	return &f, nil
}

func (m *memory) Event(_ context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error) {
	return &godwit.Event{TenantID: tenant, ID: id}, nil
}

// add stores a fan-out of one event and passes it to the expander.
func (m *memory) add(x *Expander, endpoints int) godwit.EventID {
	id := m.store(endpoints)
	f, _ := m.Fanout(context.Background(), id)
	x.Add(*f)
	return id
}

// store stores a fan-out of one event.
func (m *memory) store(endpoints int) godwit.EventID {
	now := clock.Real{}.Now()
	f := store.Fanout{TenantID: godwit.TenantID{1}, Events: []godwit.EventID{godwit.NewEventID(now)}, Trigger: godwit.TriggerAccept}
	for range endpoints {
		f.Endpoints = append(f.Endpoints, godwit.NewEndpointID(now))
	}
	m.mu.Lock()
	m.open[f.ID()] = f
	m.mu.Unlock()
	return f.ID()
}

// move moves the cursor of a fan-out, as another node does.
func (m *memory) move(id godwit.EventID, done int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.open[id]
	f.Done = done
	m.open[id] = f
}

// newExpander makes an expander of a node that is alone, unless configure says otherwise.
func newExpander(t *testing.T, configure ...func(*Config)) (*Expander, *memory) {
	m := &memory{open: map[godwit.EventID]store.Fanout{}, gate: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	commits := commit.New(commit.Config{Store: m, Log: log, Clock: clock.Real{}, Pace: clock.Real{}})
	lanes := dispatch.New(dispatch.Config{Clock: clock.Real{}, Log: log})
	var running sync.WaitGroup
	running.Go(commits.Run)
	t.Cleanup(func() {
		lanes.Stop(0)
		lanes.Wait()
		commits.Stop()
		running.Wait()
	})
	cfg := Config{
		Store: m, Commits: commits, Lanes: lanes, Clock: clock.Real{}, Log: log,
		Alone: func() bool { return true }, Owns: func(int) bool { return true },
	}
	for _, f := range configure {
		f(&cfg)
	}
	return NewExpander(cfg), m
}

// A fan-out that arrives just as the tenant's last one completes is worked on once, by one goroutine. Add starts a goroutine
// if the tenant's line is empty, so a running goroutine must not leave the line empty while it continues.
func TestOneWorkerForATenant(t *testing.T) {
	x, m := newExpander(t)
	close(m.gate)
	const fanouts, endpoints, watchers = 2000, 3, 4
	var watching sync.WaitGroup
	done := make(chan struct{})
	for range watchers {
		watching.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				x.mu.Lock()
				line, working := x.tenants[godwit.TenantID{1}]
				x.mu.Unlock()
				if working && len(line) == 0 {
					t.Error("a goroutine works for a tenant with nothing in line; the next fan-out would start another")
					return
				}
			}
		})
	}
	for range fanouts {
		if err := x.Wait(context.Background(), m.add(x, endpoints)); err != nil {
			t.Error(err)
		}
	}
	close(done)
	watching.Wait()
	if want := fanouts * endpoints; m.deliveries != want {
		t.Errorf("%d deliveries stored, want %d", m.deliveries, want)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tenants)+len(x.known)+len(x.events) > 0 {
		t.Errorf("after the last fan-out the expander knows %d tenants, %d fan-outs and %d events", len(x.tenants), len(x.known), len(x.events))
	}
}

// Fan-outs in line hold no lists of endpoints in memory. The expander reads the list when the turn comes.
func TestFanoutsInLineHoldNoLists(t *testing.T) {
	x, m := newExpander(t)
	const fanouts, endpoints = 20, 2*PartRows + 1
	var ids []godwit.EventID
	for range fanouts {
		ids = append(ids, m.add(x, endpoints))
	}
	x.mu.Lock()
	for _, w := range x.tenants[godwit.TenantID{1}][1:] {
		if w.Endpoints != nil {
			t.Errorf("a fan-out in line holds %d endpoints", len(w.Endpoints))
		}
	}
	x.mu.Unlock()
	close(m.gate)
	for _, id := range ids {
		if err := x.Wait(context.Background(), id); err != nil {
			t.Fatal(err)
		}
	}
	if m.deliveries != fanouts*endpoints {
		t.Errorf("%d deliveries stored, want %d", m.deliveries, fanouts*endpoints)
	}
}
