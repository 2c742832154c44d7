package catalogue

import (
	"context"

	"github.com/godwit-hq/godwit/internal/store"
)

// A Subscriber drops event types from the cache that any node changes; see package changes.
type Subscriber struct{ cache *cache }

// Subscriber returns the subscriber of the catalogue.
func (c *Catalogue) Subscriber() *Subscriber { return &Subscriber{c.cache} }

// Changed drops the changed types.
func (s *Subscriber) Changed(_ context.Context, changes []store.ConfigChange) error {
	for i := range changes {
		if c := &changes[i]; c.Kind == store.ConfigEventType {
			s.cache.drop(cacheKey{c.TenantID, c.Name})
		}
	}
	return nil
}

// Lost drops everything.
func (s *Subscriber) Lost(context.Context) error {
	s.cache.clear()
	return nil
}
