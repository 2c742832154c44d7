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

// EventScope is the scope of a key that is forwarded with an event. All doors share it: the same key at another door is the
// same key.
const EventScope = "events"

// batchScope is the scope of a key for a whole batch. Such a key is not forwarded with the events: receivers would drop all
// but the first event with the same key (EDS-DUP-6).
const batchScope = "POST /v1/events/batch"

// A Repeat recognises a repeated request by the id of its idempotency record and by its fingerprint.
type Repeat struct {
	record      [32]byte
	fingerprint [32]byte
	window      time.Duration // 0 means the engine's window

	looked, answered bool // whether the store was asked for the record, and whether it has one
}

// ByKey recognises an event by its idempotency key; nil if it has none.
func (in *Intake) ByKey(p Producer, e *Event) *Repeat {
	if e.Key == "" {
		return nil
	}
	return &Repeat{record: scope(p, EventScope).ID(e.Key), fingerprint: in.fingerprint(e)}
}

// ByBatchKey recognises a batch by its key and its body.
func (in *Intake) ByBatchKey(p Producer, key, contentType string, body []byte) *Repeat {
	return &Repeat{
		record:      scope(p, batchScope).ID(key),
		fingerprint: in.cfg.Fingerprint.Sum(idempotency.Payload{ContentType: contentType, Body: body}),
	}
}

// ByProducerID recognises an event by its producer's id: for as long as events are kept, the same id from the same origin is
// the same event. The origin is the source that an envelope names, or the name of a dialect.
func (in *Intake) ByProducerID(p Producer, origin, id string, e *Event) *Repeat {
	return &Repeat{record: producerRecord(p.Tenant.ID, origin, id), fingerprint: in.fingerprint(e), window: in.cfg.Retention}
}

// ByUpstreamKey recognises an event by its upstream's key, or by the key that was derived for it. The producer for which an
// upstream relays is part of the scope, because two producers may use the same key (EDS T-14). Without compare only the key
// is compared.
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

// selection returns the type and attributes, which select the endpoints of an event, in a canonical form.
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
		b.WriteString("\n" + name + "=" + e.Attributes[name]) // neither part can contain a line feed
	}
	return b.String()
}

// known reports whether the request was answered before. It asks the store only once, because a batch has many events and
// one record. If the store cannot be read, the event is checked like a new one.
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

// Find returns the id of the event with a producer's id, or store.ErrNotFound; see ByProducerID.
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
