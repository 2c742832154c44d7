package intake

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Engine stores admitted events and delivers them.
type Engine interface {
	Submit(ctx context.Context, submissions ...engine.Submission) ([]engine.Receipt, error)
	Broadcast(ctx context.Context, n *store.NewBroadcast) (*godwit.IdempotencyRecord, error)
	Receives(tenant godwit.TenantID, event *godwit.Event) int
	CatchUp(ctx context.Context) error
	Plan(ctx context.Context, tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...engine.Publication) (*engine.Outbox, error)
	// Alone reports whether no other node is alive.
	Alone() bool
}

// Store reads idempotency records, and counts what tenants with limits use.
type Store interface {
	Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error)
	CountWaiting(ctx context.Context, tenant godwit.TenantID, upTo int) (int, error)
	TakeAllowance(ctx context.Context, a store.Allowance) (store.Allowed, error)
	ReturnAllowance(ctx context.Context, tenant godwit.TenantID, name string, at time.Time, n int) error
}

// Config holds an Intake's dependencies and settings.
type Config struct {
	Engine    Engine
	Store     Store
	Tenants   Tenants
	Catalogue *catalogue.Catalogue
	Now       func() time.Time
	// Keys is the required form of idempotency keys. Required.
	Keys idempotency.Format
	// Fingerprint distinguishes requests with the same key. Required.
	Fingerprint idempotency.Fingerprint
	// Retention is how long events are kept, and so how long producers' ids and upstreams' keys are known. Required.
	Retention time.Duration
	// MaxPayload bounds the payload of an event, in bytes. Defaults to 1 MiB.
	MaxPayload int64
	// Limits bound the events of tenants that have no limits of their own. Defaults to no limits.
	Limits godwit.TenantLimits
}

// An Intake accepts events. It is safe for concurrent use.
type Intake struct {
	cfg    Config
	meters *meters
}

// New makes an Intake.
func New(cfg Config) (*Intake, error) {
	if cfg.Engine == nil || cfg.Store == nil || cfg.Tenants == nil || cfg.Catalogue == nil || cfg.Now == nil || cfg.Keys.MaxLength == 0 ||
		cfg.Fingerprint.Sum == nil || cfg.Retention <= 0 {
		return nil, errors.New("intake: engine, store, tenants, catalogue, now, keys, fingerprint and retention are required")
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = godwit.DefaultMaxBody
	}
	meters := &meters{now: cfg.Now, store: cfg.Store, alone: cfg.Engine.Alone, server: cfg.Limits, tenants: map[godwit.TenantID]*meter{}}
	return &Intake{cfg: cfg, meters: meters}, nil
}

// MaxPayload is the largest payload of an event, in bytes.
func (in *Intake) MaxPayload() int64 { return in.cfg.MaxPayload }

// A Producer is the sender of an event, with the tenant that owns the event.
type Producer struct {
	Tenant *godwit.Tenant
	// Key is the principal of an API key; zero for an upstream.
	Key godwit.KeyID
	// Source is the source to which an upstream delivers; zero for a caller with an API key.
	Source godwit.SourceID
}

// Caller returns the producer of an API call.
func Caller(c *management.Caller) Producer { return Producer{Tenant: c.Tenant, Key: c.Key.Principal} }

// Upstream returns the producer of a delivery to a source.
func Upstream(t *godwit.Tenant, s godwit.SourceID) Producer { return Producer{Tenant: t, Source: s} }

// Key reads the Idempotency-Key of a request with events. It is "" if the request has none and its tenant does not require
// one.
func (in *Intake) Key(h http.Header, t *godwit.Tenant) (string, error) {
	if !idempotency.Present(h) && !t.RequireIdempotencyKey {
		return "", nil
	}
	return in.cfg.Keys.Parse(h)
}

// ItemKey validates the key of an event of a batch, which is a member of the event. given is false if the event has none.
func (in *Intake) ItemKey(t *godwit.Tenant, key string, given bool) error {
	switch {
	case given:
		return in.cfg.Keys.Check(key)
	case t.RequireIdempotencyKey:
		return problem.KeyMissing.With("is required by this tenant, or an Idempotency-Key for the whole batch")
	}
	return nil
}

// KeyFormat is the required form of idempotency keys.
func (in *Intake) KeyFormat() idempotency.Format { return in.cfg.Keys }

// A Submission holds the events of one request. It is stored entirely or not at all.
type Submission struct {
	Producer Producer
	Events   []Admission
	// Repeat recognises a repeated request; nil if the request has nothing to recognise it by.
	Repeat *Repeat
	// Respond builds the response that is stored for repeats. Required with a Repeat.
	Respond func(events []godwit.Event, fanout []int) *godwit.StoredResponse
}

// Submit stores admitted events. If it returns no error, every submission whose receipt has no Err is either stored durably
// and queued for delivery, or is a repeat whose stored response is in the receipt.
func (in *Intake) Submit(ctx context.Context, submissions ...Submission) ([]engine.Receipt, error) {
	if err := in.enter(ctx, submissions); err != nil {
		return nil, err
	}
	list := make([]engine.Submission, len(submissions))
	for i := range submissions {
		s := &submissions[i]
		list[i] = engine.Submission{TenantID: s.Producer.Tenant.ID, Principal: s.Producer.Key, Events: publications(s.Events)}
		if s.Repeat != nil {
			list[i].Idempotency = &engine.Idempotency{
				ID: s.Repeat.record, Fingerprint: s.Repeat.fingerprint, Window: s.Repeat.window, Respond: s.Respond,
			}
		}
	}
	receipts, err := in.cfg.Engine.Submit(ctx, list...)
	for i := range receipts {
		in.meters.accepted(submissions[i].Producer.Tenant, &receipts[i])
	}
	return receipts, err
}

// enter takes a request's events from the limits of their tenant.
func (in *Intake) enter(ctx context.Context, submissions []Submission) error {
	for len(submissions) > 0 {
		tenant, n, events := submissions[0].Producer.Tenant, 0, 0
		for ; n < len(submissions) && submissions[n].Producer.Tenant.ID == tenant.ID; n++ {
			events += len(submissions[n].Events)
		}
		err := in.meters.enter(ctx, tenant, events)
		if errors.Is(err, problem.TooManyRequests) {
			// The stored answer of a repeat is the tenant's, whatever its rate. Repeats are looked for only here, since that is a read.
			if fresh := in.unknown(ctx, submissions[:n]); fresh == 0 {
				err = nil
			} else if fresh < events {
				err = in.meters.enter(ctx, tenant, fresh)
			}
		}
		if err != nil {
			return err
		}
		submissions = submissions[n:]
	}
	return nil
}

// unknown counts the events of submissions that are no repeats of requests with a stored answer.
func (in *Intake) unknown(ctx context.Context, submissions []Submission) (events int) {
	for i := range submissions {
		if !in.known(ctx, submissions[i].Repeat) {
			events += len(submissions[i].Events)
		}
	}
	return events
}

// Plan makes an outbox of admitted events, which the caller stores together with the outcome of a command. The outbox must
// be closed once that transaction has committed or failed.
func (in *Intake) Plan(ctx context.Context, p Producer, commandID string, events ...Admission) (*engine.Outbox, error) {
	if err := in.meters.enter(ctx, p.Tenant, len(events)); err != nil {
		return nil, err
	}
	return in.cfg.Engine.Plan(ctx, p.Tenant.ID, p.Key, commandID, publications(events)...)
}

func publications(events []Admission) []engine.Publication {
	list := make([]engine.Publication, len(events))
	for i := range events {
		if !events[i].admitted {
			panic("intake: an event was not admitted")
		}
		list[i] = events[i].publication
	}
	return list
}
