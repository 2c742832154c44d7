package management

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store is the part of the store that management uses.
type Store interface {
	store.Environments
	store.Tenants
	store.Keys
	store.Sessions
	store.Endpoints
	store.Allowances
}

// Engine is the part of the delivery engine that management notifies.
type Engine interface {
	// Changed makes the engine reload the endpoint.
	Changed(ctx context.Context, id godwit.EndpointID) error
	// KeysChanged makes the engine reload the signing keys of an environment.
	KeysChanged(ctx context.Context, id godwit.EnvironmentID) error
	// Announce puts an event about a subscription on its tenant's bus.
	Announce(ctx context.Context, a profile.Announcement) error
}

// URLs decides which URLs deliveries may go to.
type URLs interface {
	// CheckURL returns why a URL cannot be a target. It does not query DNS.
	CheckURL(raw string) error
}

// Config is the configuration of a Service.
type Config struct {
	Store  Store
	Engine Engine
	URLs   URLs
	Ring   *keyring.Ring
	Log    *slog.Logger
	Now    func() time.Time
	// TimeScale shortens overlaps and validity times. Defaults to real time.
	TimeScale godwit.TimeScale
	// Limits limits what a tenant may register.
	Limits Limits
	// KeepEvents and KeepDeadLetters are how long the server keeps them. An environment may keep its own for a shorter time. Default to 30 days.
	KeepEvents, KeepDeadLetters time.Duration
	// Fresh returns once this node has dropped the API keys and tenants from its cache that another node changed more than half a
	// second ago; see package changes. Defaults to nothing.
	Fresh func(ctx context.Context) error
	// SessionIdle is how long a session lives without a request. Defaults to 12 hours.
	SessionIdle time.Duration
	// SessionLifetime is how long a session lives at most. Defaults to 7 days.
	SessionLifetime time.Duration
	// CacheTTL is how long an API key is accepted without a read of the store. Without Fresh, a key that another process
	// revoked may work for that long. Defaults to 3 s.
	CacheTTL time.Duration
	// TenantTTL is how long a tenant that a caller acts for is used without a read of the store. Changes through this process drop it
	// at once, and those through other nodes as Fresh says; no one else changes tenants. Defaults to 10 minutes.
	TenantTTL time.Duration
	// CacheSize is how many callers are cached: API keys, and tenants that they act for. Defaults to 16384.
	CacheSize int
}

// Limits limits what a tenant may register. A negative member removes its limit.
type Limits struct {
	// Endpoints a tenant may have. Defaults to 1000.
	Endpoints int
	// CreationsPerMinute is how many endpoints a tenant may create in a minute. Defaults to 60.
	CreationsPerMinute int
}

// NoLimits removes all limits, for development.
var NoLimits = Limits{Endpoints: -1, CreationsPerMinute: -1}

func (c *Config) setDefaults() error {
	if c.Store == nil || c.Engine == nil || c.URLs == nil || c.Ring == nil || c.Log == nil || c.Now == nil {
		return errors.New("management: store, engine, urls, ring, log and now are required")
	}
	if c.Fresh == nil {
		c.Fresh = func(context.Context) error { return nil }
	}
	defaultTo(&c.Limits.Endpoints, 1000)
	defaultTo(&c.Limits.CreationsPerMinute, 60)
	defaultTo(&c.SessionIdle, 12*time.Hour)
	defaultTo(&c.SessionLifetime, 7*24*time.Hour)
	defaultTo(&c.CacheTTL, 3*time.Second)
	defaultTo(&c.TenantTTL, 10*time.Minute)
	defaultTo(&c.CacheSize, 16384)
	defaultTo(&c.KeepEvents, 30*24*time.Hour)
	defaultTo(&c.KeepDeadLetters, 30*24*time.Hour)
	return nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Service groups the parts of management, one for each noun. Handlers take the parts that they use. All parts are safe for
// concurrent use.
type Service struct {
	Callers      *Callers      // who sends a request
	Environments *Environments // environments
	Tenants      *Tenants      // tenants
	Keys         *Keys         // API keys
	Sessions     *Sessions     // browsers that have signed in, and links that sign in
	Endpoints    *Endpoints    // endpoints: settings and status
	Secrets      *Secrets      // signing secrets of endpoints
	SigningKeys  *SigningKeys  // signing keys of environments

	now func() time.Time
}

// New makes the parts and connects them.
func New(cfg Config) (*Service, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	// Stores keep microseconds; an answer must show the time that later reads return.
	now := func() time.Time { return cfg.Now().Truncate(time.Microsecond) }
	cache := newCallerCache(cfg.CacheSize, cfg.CacheTTL, cfg.TenantTTL)
	portals := &portalCache{entries: map[godwit.EnvironmentID]*godwit.Environment{}}
	news := &notifier{engine: cfg.Engine, log: cfg.Log, now: now}
	secrets := &Secrets{store: cfg.Store, ring: cfg.Ring, now: now, scale: cfg.TimeScale}
	keys := &SigningKeys{store: cfg.Store, secrets: secrets, engine: cfg.Engine, log: cfg.Log, now: now}
	tenants := &Tenants{store: cfg.Store, cache: cache, endpoints: news, now: now}
	callers := &Callers{store: cfg.Store, cache: cache, now: now, fresh: cfg.Fresh, create: tenants.Create, idle: cfg.SessionIdle, log: cfg.Log}
	environments := &Environments{store: cfg.Store, cache: cache, portals: portals, now: now, fresh: cfg.Fresh, events: cfg.KeepEvents, deadLetters: cfg.KeepDeadLetters}
	return &Service{
		Callers:      callers,
		Sessions:     &Sessions{store: cfg.Store, callers: callers, environments: environments, now: now, idle: cfg.SessionIdle, lifetime: cfg.SessionLifetime},
		Environments: environments,
		Tenants:      tenants,
		Keys:         &Keys{store: cfg.Store, cache: cache, now: now},
		Endpoints: &Endpoints{
			store: cfg.Store, tenants: cfg.Store, rules: rules{urls: cfg.URLs}, sealer: sealer{ring: cfg.Ring}, secrets: secrets, keys: keys, notifier: news, log: cfg.Log, now: now,
			limit: cfg.Limits.Endpoints, rate: creationRate{store: cfg.Store, perMinute: cfg.Limits.CreationsPerMinute},
		},
		Secrets:     secrets,
		SigningKeys: keys,
		now:         now,
	}, nil
}

// Now returns the time in the precision of the stores.
func (s *Service) Now() time.Time { return s.now() }
