package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store declares the storage methods that the engine uses.
type Store interface {
	store.Pipeline
	store.Leases
	store.Signals
	store.Upkeep
	store.Allowances
	EnvironmentKeys(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)
	ListEnvironments(ctx context.Context, p store.Page) ([]godwit.Environment, error)
	Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
	ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error)
	Requeue(ctx context.Context, r store.Requeue) ([]godwit.Delivery, error)
	Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, now time.Time) (*godwit.Delivery, error)
	CancelMany(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, now time.Time) ([]godwit.Delivery, error)
	Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error)
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error)
	LoadEndpoints(ctx context.Context, fn func(*store.LoadedEndpoint) error) error
	LoadShards(ctx context.Context, shards []int, fn func(*store.LoadedEndpoint) error) error
	LoadChosen(ctx context.Context, ids []godwit.EndpointID) ([]*store.LoadedEndpoint, error)
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	CreateBroadcast(ctx context.Context, n *store.NewBroadcast) (*godwit.IdempotencyRecord, error)
	OpenBroadcasts(ctx context.Context, after godwit.BroadcastID, limit int) ([]store.OpenBroadcast, error)
	BroadcastWork(ctx context.Context, id godwit.BroadcastID) (*store.BroadcastWork, error)
	BeginStats(ctx context.Context, now time.Time) error
	FoldStats(ctx context.Context, f store.StatsFold) (*store.StatsFolded, error)
	SweepStats(ctx context.Context, s store.StatsSweep) (removed int64, more bool, err error)
}

// Changes tells the engine which configuration it has applied; see package changes.
type Changes interface {
	// Version returns the applied config version. The engine's memory that is read afterwards includes all changes up to it.
	Version() int64
	// Confirmed says that the store had this version after the given steady time.
	Confirmed(version int64, at time.Duration)
	// CatchUp returns once all changes are applied that were committed before the call.
	CatchUp(ctx context.Context) error
	// Reach returns once a version is applied that a read of the store returned.
	Reach(ctx context.Context, version int64) error
}

// alone is a node that shares its store with no other: its own changes are applied before they are answered.
type alone struct{}

func (alone) Version() int64                     { return 0 }
func (alone) Confirmed(int64, time.Duration)     {}
func (alone) CatchUp(context.Context) error      { return nil }
func (alone) Reach(context.Context, int64) error { return nil }

// Config configures an engine.
type Config struct {
	Store    Store
	Sender   attempt.Sender
	Ring     *keyring.Ring
	Clock    clock.Clock
	Log      *slog.Logger
	Recorder Recorder // Defaults to Silent.
	// Pace is the clock for pauses between transactions and sweeps. Tests that move Clock by hand leave this one running.
	// Defaults to real time.
	Pace clock.Clock

	// Changes tells which changes of other nodes are applied. The caller subscribes the engine to them. Defaults to none, for a
	// store that no other node shares.
	Changes Changes

	// Node is this process among those that share a store. Its name is required.
	Node godwit.Node
	// Window is the largest number of deliveries of one endpoint in memory. Defaults to 1024.
	Window int
	// MaxInFlight is the largest number of concurrent requests to endpoints. Defaults to 2048.
	MaxInFlight int
	// MaxHeldBytes bounds the payloads in memory over all endpoints. Defaults to 64 MiB.
	MaxHeldBytes int64
	// MaxHeld bounds the deliveries in memory over all endpoints. Above it each endpoint holds only a few. Defaults to 16384.
	MaxHeld int64
	// MaxFanouts is how many large fan-outs of a tenant may be open. While that many are, Submit refuses further ones. Defaults
	// to 64.
	MaxFanouts int
	// Linger is how long a commit waits for further requests under load. Defaults to 1 ms.
	Linger time.Duration
	// Synced is called with the store's time after each beat, and the steady time before and after. Defaults to nothing.
	Synced func(at time.Time, before, after time.Duration)
	// LeaseTTL is how long a node keeps its shards without renewing their leases. Defaults to 5 s.
	LeaseTTL time.Duration
	// PollInterval is how often the engine looks in the store for work that other processes added; every 2 s at least while there
	// are other nodes. Defaults to 10 s.
	PollInterval time.Duration
	// Drain is how long a stop waits for requests in flight. Defaults to 20 s.
	Drain time.Duration
	// TimeScale runs delays, windows and retentions faster. Defaults to real time.
	TimeScale godwit.TimeScale
	// IdempotencyWindow is how long answers are replayed. Defaults to 24 h.
	IdempotencyWindow time.Duration
	// Draw is the source of jitter: uniform in [0,1). Defaults to math/rand/v2, seeded for each process.
	Draw func() float64
	// Retention says how long the engine keeps stored rows.
	Retention Retention
	// ExplicitMeta makes only patterns that name webhook.* events select them; the pattern "*" does not. Defaults to false.
	ExplicitMeta bool
	// OnNotice is called after a notice is stored, on the committing goroutine: it must not block. Defaults to nothing.
	OnNotice func(godwit.Notice)
}

func (c *Config) setDefaults() error {
	if c.Store == nil || c.Sender == nil || c.Ring == nil || c.Clock == nil || c.Log == nil || c.Node.Name == "" {
		return errors.New("engine: store, sender, ring, clock, log and node are required")
	}
	if c.Recorder == nil {
		c.Recorder = Silent{}
	}
	if c.Changes == nil {
		c.Changes = alone{}
	}
	if c.Pace == nil {
		c.Pace = clock.Real{}
	}
	if c.Draw == nil {
		c.Draw = rand.Float64 // seeded per process by the runtime, so that two nodes never share a sequence (EDS-BKO-2)
	}
	defaultTo(&c.Window, 1024)
	defaultTo(&c.MaxInFlight, 2048)
	defaultTo(&c.MaxHeldBytes, 64<<20)
	defaultTo(&c.MaxHeld, 16384)
	defaultTo(&c.MaxFanouts, 64)
	defaultTo(&c.Linger, time.Millisecond)
	defaultTo(&c.LeaseTTL, 5*time.Second)
	defaultTo(&c.PollInterval, 10*time.Second)
	defaultTo(&c.Drain, 20*time.Second)
	defaultTo(&c.IdempotencyWindow, 24*time.Hour)
	c.Retention.setDefaults()
	return nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
