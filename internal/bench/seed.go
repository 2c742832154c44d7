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
	key, other, err := b.seed(ctx, data, benchRing, endpoints)
	if err != nil {
		return err
	}
	p, err := start(ctx, b.o.Executable, b.environment(data, benchRing), "serve")
	if err != nil {
		return err
	}
	srv := &server{process: p, key: key}
	if err = srv.awaitReady(ctx); err == nil {
		err = f(srv, other)
	}
	if err != nil {
		p.kill()
		return err
	}
	return p.stop()
}

// seed makes two tenants with a key each, and endpoints of the first, in the store itself: the server bounds how fast a
// tenant registers endpoints.
func (b *bench) seed(ctx context.Context, data, ring string, endpoints []management.EndpointSpec) (crowd, other string, err error) {
	log := slog.New(slog.DiscardHandler)
	keys, err := keyring.Parse(ring)
	if err != nil {
		return "", "", err
	}
	st, err := app.OpenStore(ctx, &config.Storage{Data: data, Store: b.o.Store}, log)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	service, err := management.New(management.Config{
		Store: st, Engine: noEngine{}, URLs: anyURL{}, Ring: keys, Log: log, Now: time.Now, Limits: management.NoLimits,
	})
	if err != nil {
		return "", "", err
	}
	tokens := make([]string, 2)
	for i, name := range []string{"crowd", "other"} {
		tenant, err := service.Tenants.Create(ctx, management.TenantSpec{Name: "bench " + name})
		if err != nil {
			return "", "", err
		}
		if _, tokens[i], err = service.Keys.Create(ctx, nil, tenant.ID, management.KeySpec{Name: name, Scopes: []godwit.Scope{godwit.ScopeIngest}}); err != nil {
			return "", "", err
		}
		if i > 0 {
			break
		}
		for _, spec := range endpoints {
			spec.Policy = unlimited
			if _, _, err := service.Endpoints.Create(ctx, tenant.ID, management.NewEndpoint{EndpointSpec: spec}); err != nil {
				return "", "", err
			}
		}
	}
	return tokens[0], tokens[1], nil
}

// unlimited lifts the rate limits that a profile sets.
var unlimited = godwit.PolicyOverrides{PerSecond: new(0), PerMinute: new(0), AccountPerMinute: new(0)}

// noEngine stands for the engine of a server that is not running yet.
type noEngine struct{}

func (noEngine) Changed(context.Context, godwit.EndpointID) error { return nil }

func (noEngine) Announce(context.Context, profile.Announcement) error { return nil }

// anyURL lets the bench's own sink be a target.
type anyURL struct{}

func (anyURL) CheckURL(string) error { return nil }
