package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// OpenManagement opens key ring and store for commands that change tenants and keys beside a server, or before one has run.
func OpenManagement(ctx context.Context, s *config.Storage, log *slog.Logger) (*management.Service, store.Store, error) {
	ring, err := OpenRing(s, log)
	if err != nil {
		return nil, nil, err
	}
	st, err := OpenStore(ctx, s, log)
	if err != nil {
		return nil, nil, err
	}
	if err := CheckRing(ctx, st, ring); err != nil {
		st.Close()
		return nil, nil, err
	}
	now, err := openClock(ctx, s, st, log)
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	m, err := management.New(management.Config{
		Store: st, Engine: elsewhere{}, URLs: elsewhere{}, Ring: ring, Log: log, Now: now.Now,
	})
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	return m, st, nil
}

// elsewhere stands in for the engine of another process. That engine does not need to know about tenants and keys.
type elsewhere struct{}

func (elsewhere) Changed(context.Context, godwit.EndpointID) error { return nil }
func (elsewhere) CheckURL(string) error                            { return nil }

func (elsewhere) KeysChanged(context.Context, godwit.EnvironmentID) error { return nil }

func (elsewhere) Announce(context.Context, profile.Announcement) error { return nil }

// AllTenants lists the tenants of all environments.
func AllTenants(ctx context.Context, m *management.Service) ([]godwit.Tenant, error) {
	return tenantsOf(ctx, m, godwit.EnvironmentID{})
}

// tenantsOf lists the tenants of an environment, or of all if it is zero.
func tenantsOf(ctx context.Context, m *management.Service, environment godwit.EnvironmentID) ([]godwit.Tenant, error) {
	var all []godwit.Tenant
	page := store.Page{Limit: 200}
	for {
		part, err := m.Tenants.List(ctx, environment, page)
		if err != nil {
			return nil, fmt.Errorf("list tenants: %w", err)
		}
		all = append(all, part...)
		if len(part) < page.Limit {
			return all, nil
		}
		page.After = part[len(part)-1].ID
	}
}

// TenantByName finds a tenant of the first environment, or creates it.
func TenantByName(ctx context.Context, m *management.Service, name string) (*godwit.Tenant, error) {
	return TenantIn(ctx, m, godwit.DefaultEnvironment, name)
}

// TenantIn finds a tenant of an environment by its name, or creates it.
func TenantIn(ctx context.Context, m *management.Service, environment godwit.EnvironmentID, name string) (*godwit.Tenant, error) {
	tenants, err := tenantsOf(ctx, m, environment)
	if err != nil {
		return nil, err
	}
	var found *godwit.Tenant
	for i := range tenants {
		if tenants[i].Name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("several tenants are called %q: name one by its id", name)
		}
		found = &tenants[i]
	}
	if found != nil {
		return found, nil
	}
	return m.Tenants.Create(ctx, environment, management.TenantSpec{Name: name, Inherits: godwit.LentSettings})
}
