package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// findKeyOwner returns the tenant, or the home tenant of the environment that is named.
func findKeyOwner(ctx context.Context, m *management.Service, named, tenant, tenantName string) (*godwit.Tenant, error) {
	environment := godwit.DefaultEnvironment
	if named != "" {
		e, err := m.Environments.Get(ctx, named)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("--environment: there is no environment %s", named)
		}
		if err != nil {
			return nil, err
		}
		environment = e.ID
	}
	switch {
	case tenantName != "":
		return app.TenantIn(ctx, m, environment, tenantName)
	case tenant != "":
		t, err := m.Tenants.Find(ctx, environment, tenant)
		if errors.Is(err, store.ErrNotFound) || err == nil && named != "" && t.EnvironmentID != environment {
			return nil, fmt.Errorf("--tenant: there is no tenant %s; name it by its id, ten_…, or by its uid in the environment", tenant)
		}
		return t, err
	case named != "":
		return m.Tenants.Get(ctx, godwit.HomeOf(environment))
	}
	return nil, errors.New("name the owner of the key: --tenant, --tenant-name or --environment")
}

// allKeyOwners lists all tenants and the homes of all environments.
func allKeyOwners(ctx context.Context, m *management.Service) ([]godwit.Tenant, error) {
	owners, err := app.AllTenants(ctx, m)
	if err != nil {
		return nil, err
	}
	page := store.Page{Limit: 200}
	for {
		part, err := m.Environments.List(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("list environments: %w", err)
		}
		for _, e := range part {
			owners = append(owners, godwit.Tenant{ID: godwit.HomeOf(e.ID), EnvironmentID: e.ID, Name: e.Name, Home: true})
		}
		if len(part) < page.Limit {
			return owners, nil
		}
		page.After = part[len(part)-1].ID
	}
}

// ownerFields names the owner of a key in JSON.
func ownerFields(t *godwit.Tenant) map[string]any {
	if t.Home {
		return map[string]any{"environment": t.EnvironmentID.String(), "environment_name": t.Name}
	}
	return map[string]any{"tenant": t.ID.String(), "tenant_name": t.Name}
}

// ownerText names the owner of a key in a line.
func ownerText(t *godwit.Tenant) string {
	if t.Home {
		return fmt.Sprintf("environment  %s (%s)", t.EnvironmentID, t.Name)
	}
	return fmt.Sprintf("tenant  %s (%s)", t.ID, t.Name)
}
