package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Changed reads an endpoint that was created, changed or deleted. The change is already stored, so Changed continues when the
// caller's context ends. If the endpoint cannot be read now, the dispatcher reads it later.
func (d *Dispatcher) Changed(ctx context.Context, id godwit.EndpointID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	// Of two concurrent reads of an endpoint, the result of the later one must win.
	reading := &d.reading[id.Shard()]
	reading.Lock()
	defer reading.Unlock()
	loaded, err := d.cfg.Store.LoadEndpoint(ctx, id)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			d.stale.Store(id, struct{}{})
		}
		return fmt.Errorf("reload endpoint: %w", err)
	}
	d.stale.Delete(id)
	l := d.index.lane(id)
	switch {
	case l != nil:
		l.reload(loaded)
	case loaded.Endpoint.Status == godwit.EndpointDeleted:
		return nil
	default:
		l = d.newLane(loaded)
	}
	d.index.put(l)
	return nil
}

// readStale reads endpoints that could not be read when they changed.
func (d *Dispatcher) readStale(ctx context.Context) {
	d.stale.Range(func(id, _ any) bool {
		if err := d.Changed(ctx, id.(godwit.EndpointID)); err != nil {
			d.cfg.Log.Error("read changed endpoint again", "endpoint", id.(godwit.EndpointID).String(), "error", err)
		}
		return ctx.Err() == nil
	})
}

// reload replaces the lane's target. The lane keeps its own health, except that an operator who enables an endpoint clears it,
// even if the endpoint was active behind an open circuit.
func (l *Lane) reload(loaded *store.LoadedEndpoint) {
	t := l.d.cfg.Maker.Target(loaded)
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.Target()
	if t.Endpoint.Version < old.Endpoint.Version {
		return // read before a change that is already loaded
	}
	l.target.Store(t)
	if t.Endpoint.URL != old.Endpoint.URL {
		l.condition.SunsetAt = time.Time{} // it was announced for another URL
	}
	enabled := old.Endpoint.Status != godwit.EndpointActive || t.Endpoint.StatusAt.After(old.Endpoint.StatusAt)
	if enabled && t.Endpoint.Status == godwit.EndpointActive {
		l.condition.forgive()
		l.backlog.note(l.d.cfg.Clock.Now())
	}
	l.pace.follow(t.Policy, &l.d.times)
	l.account = l.d.accounts.of(t)
	if t.Endpoint.Status != godwit.EndpointActive {
		l.backlog.shed()
		l.backlog.reportOrphans()
	}
	l.pump()
}

// inherit takes over the health that another node recorded.
func (l *Lane) inherit(h *godwit.Health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.condition.Health = *h
	l.condition.EndpointID = l.id
}

// changed applies an attempt's change of the endpoint to memory; a disabling is already applied. Then it reads the endpoint
// again: an operator may have changed it meanwhile, or the store may have refused the change.
func (l *Lane) changed(c *store.EndpointChange, stored bool) {
	if c == nil {
		return
	}
	if stored && c.MoveTo != "" {
		l.move(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.d.Running() {
		return
	}
	l.d.Go(func() {
		if err := l.d.Changed(context.Background(), l.id); err != nil {
			l.d.cfg.Log.Error("read changed endpoint", "endpoint", l.id.String(), "error", err)
		}
	})
}

// move sets an endpoint's new URL after a permanent redirect.
func (l *Lane) move(c *store.EndpointChange) {
	moved := l.edit(func(t *attempt.Target) bool {
		if t.Endpoint.URL != c.MoveFrom {
			return false
		}
		t.Endpoint.URL = c.MoveTo
		t.Endpoint.Version++
		return true
	})
	if !moved {
		return
	}
	// The notice contains the new URL. The log does not: URLs often contain a secret.
	l.d.cfg.Log.Info("endpoint moved", "endpoint", l.id.String())
	l.mu.Lock()
	l.condition.SunsetAt = time.Time{}
	l.mu.Unlock()
}

// disable changes the status in memory before the commit, so that the lane sends nothing meanwhile. Called with the lane
// locked.
func (l *Lane) disable(c *store.EndpointChange) {
	l.edit(func(t *attempt.Target) bool {
		t.Endpoint.Status, t.Endpoint.StatusReason, t.Endpoint.ReenableAt = godwit.EndpointDisabled, c.Disable, c.ReenableAt
		return true
	})
	l.backlog.shed()
}
