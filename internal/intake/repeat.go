package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/store"
)

// EventScope is the scope of a key that travels with an event: the same key on another door is the same key.
const EventScope = "events"

// batchScope is the scope of a key that stands for a whole batch. It does not travel with the events: one key on many
// events would make receivers drop all but the first (EDS-DUP-6).
const batchScope = "POST /v1/events/batch"

// A Repeat recognises a request that came before: by the id of its idempotency record, and by its fingerprint.
type Repeat struct {
	record      [32]byte
	fingerprint [32]byte
	window      time.Duration // 0: the engine's

	looked, answered bool // whether the store was asked for the record, and what it said
}

// ByKey recognises an event by its idempotency key; nil when it has none.
func (in *Intake) ByKey(p Producer, e *Event) *Repeat {
	if e.Key == "" {
		return nil
	}
	return &Repeat{record: scope(p, EventScope).ID(e.Key), fingerprint: in.fingerprint(e)}
}

// ByBatchKey recognises a batch by the key that stands for all of it, and by its body.
func (in *Intake) ByBatchKey(p Producer, key, contentType string, body []byte) *Repeat {
	return &Repeat{
		record:      scope(p, batchScope).ID(key),
		fingerprint: in.cfg.Fingerprint.Sum(idempotency.Payload{ContentType: contentType, Body: body}),
	}
}

// ByProducerID recognises an event by the id that its producer gave it: for as long as events are kept, the same id of the
// same origin is the same event. The origin is the source that an envelope names, or the name of a dialect.
func (in *Intake) ByProducerID(p Producer, origin, id string, e *Event) *Repeat {
	return &Repeat{record: producerRecord(p.Tenant.ID, origin, id), fingerprint: in.fingerprint(e), window: in.cfg.Retention}
}

// ByUpstreamKey recognises an event by the key that its upstream sent, or that was adopted for it. The producer for whom an
// upstream relays is part of the scope: two of them may use one key (EDS T-14). Without compare the key alone decides.
func (in *Intake) ByUpstreamKey(p Producer, e *Event, compare bool) *Repeat {
	r := &Repeat{record: godwit.IdempotencyID(p.Source, "in\x00"+e.Origin.Principal, e.Key), window: in.cfg.Retention}
	if compare {
		r.fingerprint = in.fingerprint(e)
	}
	return r
}

func scope(p Producer, operation string) idempotency.Scope {
	return idempotency.Scope{Principal: p.Key, Tenant: p.Tenant.ID, Operation: operation}
}

func producerRecord(tenant godwit.TenantID, origin, id string) [32]byte {
	return godwit.IdempotencyID(godwit.KeyID{}, "source "+tenant.String()+" "+origin, id)
}

func (in *Intake) fingerprint(e *Event) [32]byte {
	if e.Received != nil {
		return in.cfg.Fingerprint.Sum(idempotency.Payload{ContentType: e.ReceivedType, Body: e.Received})
	}
	return in.cfg.Fingerprint.Sum(idempotency.Payload{ContentType: e.ContentType, Query: selection(e), Body: e.Body})
}

// selection is what decides which endpoints get an event, in one form however it was given.
func selection(e *Event) string {
	if len(e.Attributes) == 0 {
		return e.Type
	}
	names := make([]string, 0, len(e.Attributes))
	for name := range e.Attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(e.Type)
	for _, name := range names {
		b.WriteString("\n" + name + "=" + e.Attributes[name]) // neither part can hold a line feed
	}
	return b.String()
}

// known reports whether the request was answered before. It asks the store once: a batch has many events and one record.
// When the store cannot be read the event is judged as a new one.
func (in *Intake) known(ctx context.Context, r *Repeat) bool {
	if r == nil {
		return false
	}
	if !r.looked {
		record, err := in.cfg.Store.Recorded(ctx, r.record, in.cfg.Now())
		r.looked, r.answered = true, err == nil && !record.InProgress() && record.Fingerprint == r.fingerprint
	}
	return r.answered
}

// Find returns the id of the event that came under a producer's own id; store.ErrNotFound when there is none. See
// ByProducerID.
func (in *Intake) Find(ctx context.Context, tenant godwit.TenantID, origin, id string) (godwit.EventID, error) {
	record, err := in.cfg.Store.Recorded(ctx, producerRecord(tenant, origin, id), in.cfg.Now())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return godwit.EventID{}, err
	case err != nil:
		return godwit.EventID{}, fmt.Errorf("find event by its producer's id: %w", err)
	case record.EventID.IsZero():
		return godwit.EventID{}, store.ErrNotFound
	}
	return record.EventID, nil
}
