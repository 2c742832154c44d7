package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/changes"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/identity"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// services are the parts of the server below HTTP.
type services struct {
	cfg        config.Config
	clock      clock.Clock
	log        *slog.Logger
	ring       *keyring.Ring
	store      store.Store
	sender     *sender.Sender
	changes    *changes.Follower // nil if no other node shares the store
	engine     *engine.Engine
	management *management.Service
	commands   *commands
	types      *catalogue.Catalogue
	intake     *intake.Intake
	metrics    *telemetry.Metrics
	alerts     alerts
	identity   *identity.Provider // nil if the server has none
}

// connect creates the services and connects them. The store is open already.
func (s *services) connect(ctx context.Context, d Dependencies, node godwit.Node, url string) (err error) {
	if s.metrics, err = telemetry.New(telemetry.Config{Series: s.cfg.MetricsSeries}); err != nil {
		return err
	}
	if s.sender, err = newSender(&s.cfg, d); err != nil {
		return err
	}
	if s.alerts, err = newAlerts(s, url); err != nil {
		return err
	}
	if s.identity, err = newIdentity(s, url); err != nil {
		return err
	}
	if s.changes, err = changes.Follow(ctx, changes.Config{Store: s.store, Log: s.log}); err != nil {
		return err
	}
	if s.engine, err = engine.New(ctx, s.engineConfig(d, node)); err != nil {
		return err
	}
	if err := s.metrics.Watch(s.engine.Stats); err != nil {
		return err
	}
	if synced, ok := s.clock.(*clock.Synced); ok {
		if err := s.metrics.WatchClock(synced.MachineAhead); err != nil {
			return err
		}
	}
	limits := management.Limits{Endpoints: s.cfg.Limits.Endpoints, CreationsPerMinute: s.cfg.Limits.EndpointCreations}
	if d.NoLimits {
		limits = management.NoLimits
	}
	s.management, err = management.New(management.Config{
		Store: s.store, Engine: s.engine, URLs: s.sender, Ring: s.ring, Log: s.log, Now: s.clock.Now,
		TimeScale: d.TimeScale, Limits: limits, Fresh: s.fresh(),
		SessionIdle: s.cfg.Sessions.Idle.Real(), SessionLifetime: s.cfg.Sessions.Lifetime.Real(),
		KeepEvents: s.cfg.Retention.Events.Real(), KeepDeadLetters: s.cfg.Retention.DeadLetters.Real(),
	})
	if err != nil {
		return err
	}
	if s.types, err = catalogue.New(catalogue.Config{
		Store: s.store, Now: s.clock.Now, Fresh: s.fresh(), Changed: s.management.Callers.Forget,
	}); err != nil {
		return err
	}
	if err := s.subscribe(); err != nil {
		return err
	}
	s.intake, err = intake.New(intake.Config{
		Engine: s.engine, Store: s.store, Tenants: s.management.Tenants, Catalogue: s.types, Now: s.clock.Now,
		Keys:        idempotency.Format{MinLength: idempotency.DefaultMinLength, MaxLength: idempotency.DefaultMaxLength},
		Fingerprint: idempotency.WholePayload, Retention: s.cfg.Retention.Events.Real(), MaxPayload: int64(s.cfg.MaxBody),
		Limits: godwit.TenantLimits{EventsPerSecond: s.cfg.Limits.EventsPerSecond, Burst: s.cfg.Limits.Burst, WaitingDeliveries: s.cfg.Limits.WaitingDeliveries},
	})
	if err != nil {
		return err
	}
	s.commands, err = newCommands(ctx, s, d)
	return err
}

// subscribe makes all parts that hold rows of the configuration follow the changes of other nodes.
func (s *services) subscribe() error {
	if s.changes == nil {
		return nil
	}
	s.changes.Subscribe(s.engine.Subscriber())
	s.changes.Subscribe(s.management.Subscriber())
	s.changes.Subscribe(s.types.Subscriber())
	return s.metrics.WatchChanges(s.changes.Staleness)
}

// fresh returns the function that bounds the age of cached rows, or nil.
func (s *services) fresh() func(context.Context) error {
	if s.changes == nil {
		return nil
	}
	return s.changes.Fresh
}

func newSender(c *config.Config, d Dependencies) (*sender.Sender, error) {
	sc := sender.Config{
		Clock:              d.Clock.Now,
		AllowHTTP:          c.AllowHTTP,
		AllowAddresses:     config.Prefixes(c.AllowAddress),
		DenyAddresses:      config.Prefixes(c.DenyAddress),
		AllowRedirectHosts: c.AllowRedirectHost,
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil {
			return nil, errors.New("proxy: not a URL") // url.Parse's error would quote a password
		}
		sc.Proxy = u
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %w", err)
		}
		sc.ExtraCAs = pem
	}
	return sender.New(sc)
}

// longestSchedule is roughly the longest time between the first attempt of a delivery and its death. A dead letter is
// shown with its attempts for as long as it is kept (CCW-DLQ-6).
const longestSchedule = 48 * time.Hour

func (s *services) engineConfig(d Dependencies, node godwit.Node) engine.Config {
	c := engine.Config{
		Store: s.store, Sender: s.sender, Ring: s.ring, Clock: s.clock, Log: s.log, Recorder: &s.metrics.Recorder,
		Node:              node,
		LeaseTTL:          s.cfg.Lease.Real(),
		Window:            s.cfg.Limits.Window,
		MaxInFlight:       s.cfg.Limits.InFlight,
		MaxHeldBytes:      int64(s.cfg.Limits.Held),
		Drain:             s.cfg.DrainTimeout.Real(),
		TimeScale:         d.TimeScale,
		IdempotencyWindow: s.cfg.IdempotencyWindow.Real(),
		ExplicitMeta:      s.cfg.MetaEvents == config.MetaExplicit,
		OnNotice:          s.alerts.post,
		Retention: engine.Retention{
			Events:      s.cfg.Retention.Events.Real(),
			Attempts:    max(s.cfg.Retention.Attempts.Real(), s.cfg.Retention.DeadLetters.Real()+longestSchedule),
			DeadLetters: s.cfg.Retention.DeadLetters.Real(),
			Stats:       statsRetention(&s.cfg),
		},
	}
	if s.changes != nil {
		c.Changes = s.changes
	}
	if synced, ok := s.clock.(*clock.Synced); ok {
		c.Synced = synced.Observe
	}
	if d.Tune != nil {
		d.Tune(&c)
	}
	return c
}

// close closes the services that were opened.
func (s *services) close() {
	if s.sender != nil {
		s.sender.Close()
	}
	if s.identity != nil {
		s.identity.Close()
	}
	if s.changes != nil {
		s.changes.Close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Error("close store", "error", err)
		}
	}
	if s.metrics != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.metrics.Close(ctx) // nothing is exported at the end; a scrape that is missed is not worth an error
	}
}

// statsRetention says how long the history for charts is kept.
func statsRetention(cfg *config.Config) stats.Retention {
	r := &cfg.Retention
	return stats.Retention{Minutes: r.StatsMinutes.Real(), Hours: r.StatsHours.Real(), Days: r.StatsDays.Real()}
}
