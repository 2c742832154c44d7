package dispatch

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Subscriber keeps the lanes up to date with the endpoints that any node changes; see package changes.
type Subscriber struct{ d *Dispatcher }

// Subscriber returns the dispatcher's subscriber.
func (d *Dispatcher) Subscriber() *Subscriber { return &Subscriber{d} }

// Changed reads the changed endpoints, and the signing keys of changed environments.
func (s *Subscriber) Changed(ctx context.Context, changes []store.ConfigChange) error {
	var ids []godwit.EndpointID
	listed := map[godwit.EndpointID]bool{}
	keys := map[godwit.EnvironmentID]bool{}
	for i := range changes {
		if of := godwit.EnvironmentID(changes[i].ID); changes[i].Kind == store.ConfigEnvironment && !keys[of] {
			keys[of] = true
			if err := s.d.cfg.Maker.KeysChanged(ctx, of); err != nil {
				return err
			}
		}
		id := godwit.EndpointID(changes[i].ID)
		if changes[i].Kind == store.ConfigEndpoint && !listed[id] {
			listed[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	defer s.d.lockReading(listed)()
	loaded, err := s.d.cfg.Store.LoadChosen(ctx, ids)
	if err != nil {
		return fmt.Errorf("read changed endpoints: %w", err)
	}
	s.d.take(loaded, false)
	return nil
}

// Lost reads all endpoints. Those that the store does not have are gone: it was restored from a backup.
func (s *Subscriber) Lost(ctx context.Context) error {
	if err := s.d.cfg.Maker.KeysChanged(ctx, godwit.EnvironmentID{}); err != nil {
		return err
	}
	defer s.d.lockReading(nil)()
	var all []*store.LoadedEndpoint
	known := map[godwit.EndpointID]bool{}
	err := s.d.cfg.Store.LoadEndpoints(ctx, func(l *store.LoadedEndpoint) error {
		all, known[l.Endpoint.ID] = append(all, l), true
		return nil
	})
	if err != nil {
		return fmt.Errorf("read all endpoints: %w", err)
	}
	s.d.take(all, true)
	var gone []*Lane
	s.d.index.each(func(l *Lane) {
		if !known[l.id] {
			l.vanish()
			gone = append(gone, l)
		}
	})
	s.d.index.put(gone...)
	return nil
}

// lockReading keeps others from reading the endpoints until the returned function is called; nil means all endpoints.
func (d *Dispatcher) lockReading(ids map[godwit.EndpointID]bool) (unlock func()) {
	var shards []int
	for id := range ids {
		shards = append(shards, id.Shard())
	}
	if ids == nil {
		for shard := range d.reading {
			shards = append(shards, shard)
		}
	}
	return d.lockReadingOf(shards)
}

// lockReadingOf keeps others from reading the endpoints of shards.
func (d *Dispatcher) lockReadingOf(shards []int) (unlock func()) {
	shards = slices.Compact(slices.Sorted(slices.Values(shards))) // in one order, so that two callers do not wait for each other
	for _, shard := range shards {
		d.reading[shard].Lock()
	}
	return func() {
		for _, shard := range shards {
			d.reading[shard].Unlock()
		}
	}
}

// take puts endpoints that were read into lanes. With restored, rows that are older than those in memory count too. The caller
// holds the locks of lockReading.
func (d *Dispatcher) take(loaded []*store.LoadedEndpoint, restored bool) {
	lanes := make([]*Lane, 0, len(loaded))
	for _, e := range loaded {
		d.stale.Delete(e.Endpoint.ID)
		l := d.index.lane(e.Endpoint.ID)
		switch {
		case l != nil:
			if restored && e.Endpoint.Version < l.Target().Endpoint.Version {
				l.edit(func(t *attempt.Target) bool { t.Endpoint.Version = e.Endpoint.Version; return true })
			}
			l.reload(e)
		case e.Endpoint.Status == godwit.EndpointDeleted:
			continue
		default:
			l = d.newLane(e)
		}
		lanes = append(lanes, l)
	}
	d.index.put(lanes...)
}

// vanish treats the endpoint as deleted.
func (l *Lane) vanish() {
	l.edit(func(t *attempt.Target) bool {
		t.Endpoint.Status = godwit.EndpointDeleted
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.shed()
	l.backlog.reportOrphans()
}
