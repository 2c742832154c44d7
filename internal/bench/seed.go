package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/profile"
)

// withSeeded runs f beside a fresh server whose store already has the endpoints, all of one tenant. other is the key of another
// tenant, which has none.
func (b *bench) withSeeded(ctx context.Context, endpoints []management.EndpointSpec, f func(srv *server, other string) error) error {
	data, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	if err := app.EnsureEvidenceKey(data, benchRing); err != nil {
		return err
	}
	b.o.Progress("making %d endpoints", len(endpoints))
	made, err := b.seed(ctx, data, benchRing, endpoints)
	if err != nil {
		return err
	}
	srv, err := b.restart(ctx, data, made.key)
	if err != nil {
		return err
	}
	if err := f(srv, made.other); err != nil {
		srv.kill()
		return err
	}
	return srv.stop()
}

// seeded is what seed has made.
type seeded struct {
	key       string // of the tenant with the endpoints
	endpoints []godwit.EndpointID
	other     string // key of a tenant without
}

// seed makes two tenants with a key each, and endpoints of the first, in the store itself: the server bounds how fast a tenant
// registers endpoints.
func (b *bench) seed(ctx context.Context, data, ring string, endpoints []management.EndpointSpec) (made seeded, err error) {
	log := slog.New(slog.DiscardHandler)
	keys, err := keyring.Parse(ring)
	if err != nil {
		return made, err
	}
	st, err := app.OpenStore(ctx, &config.Storage{Data: data, Store: b.o.Store}, log)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	service, err := management.New(management.Config{
		Store: st, Engine: noEngine{}, URLs: anyURL{}, Ring: keys, Log: log, Now: time.Now, Limits: management.NoLimits,
	})
	if err != nil {
		return made, err
	}
	tenant, key, err := seedTenant(ctx, service, "crowd")
	if err != nil {
		return made, err
	}
	made.key = key
	for _, spec := range endpoints {
		spec.Policy = unlimited
		e, _, err := service.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: spec})
		if err != nil {
			return made, err
		}
		made.endpoints = append(made.endpoints, e.ID)
	}
	_, made.other, err = seedTenant(ctx, service, "other")
	return made, err
}

// seedTenant makes a tenant and a key by which it can post events.
func seedTenant(ctx context.Context, service *management.Service, name string) (tenant *godwit.Tenant, token string, err error) {
	tenant, err = service.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "bench " + name})
	if err != nil {
		return nil, "", err
	}
	_, token, err = service.Keys.Create(ctx, nil, tenant.ID, management.KeySpec{Name: name, Scopes: []godwit.Scope{godwit.ScopeIngest}})
	return tenant, token, err
}

// unlimited lifts the rate limits that a profile sets.
var unlimited = godwit.PolicyOverrides{PerSecond: new(0), PerMinute: new(0), AccountPerMinute: new(0)}

// noEngine stands for the engine of a server that is not running yet.
type noEngine struct{}

func (noEngine) Changed(context.Context, godwit.EndpointID) error { return nil }

func (noEngine) KeysChanged(context.Context, godwit.EnvironmentID) error { return nil }

func (noEngine) Announce(context.Context, profile.Announcement) error { return nil }

// anyURL lets the bench's own sink be a target.
type anyURL struct{}

func (anyURL) CheckURL(string) error { return nil }
