package management

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Subscriber drops keys, tenants and environments from memory that any node changes; see package changes.
type Subscriber struct {
	cache   *callerCache
	portals *portalCache
}

// Subscriber returns the subscriber of the service.
func (s *Service) Subscriber() *Subscriber {
	return &Subscriber{s.Callers.cache, s.Environments.portals}
}

// Changed drops the changed keys and tenants.
func (s *Subscriber) Changed(_ context.Context, changes []store.ConfigChange) error {
	for i := range changes {
		switch c := &changes[i]; c.Kind {
		case store.ConfigKey:
			s.cache.dropKeyID(godwit.KeyID(c.ID))
		case store.ConfigSession:
			s.cache.dropSession(godwit.SessionID(c.ID))
		case store.ConfigTenant:
			s.cache.dropTenant(c.TenantID)
		case store.ConfigEnvironment:
			s.cache.dropAll() // its settings are part of all its tenants
			s.portals.drop()
		}
	}
	return nil
}

// Lost drops everything.
func (s *Subscriber) Lost(context.Context) error {
	s.cache.dropAll()
	s.portals.drop()
	return nil
}
