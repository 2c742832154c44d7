package httpapi

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/store"
)

// eventScope is the scope of a key that travels with an event: the same as on the native routes, so that one key is one
// key whichever way the event comes.
const eventScope = "events"

// EventKey is the Idempotency-Key of an event; "" when there is none and none is needed (decision 15).
func (s *Services) EventKey(c *Call) (string, error) {
	if !idempotency.Present(c.R.Header) && !c.Caller.Tenant.RequireIdempotencyKey {
		return "", nil
	}
	return s.Idempotency.Key(c.R.Header)
}

// ByKey makes a submission repeatable by the key it came under.
func (s *Services) ByKey(c *Call, key string, respond func([]godwit.Event, []int) *godwit.StoredResponse) *engine.Idempotency {
	scope := ScopeOf(c.Caller, eventScope)
	return &engine.Idempotency{ID: scope.ID(key), Fingerprint: s.fingerprint(c, c.Body), Respond: respond}
}

// BySource makes a submission repeatable by the id that the producer gave its event: for as long as the event is kept, the
// same id of the same source is the same event. Body is the part of the request that is this event.
func (s *Services) BySource(c *Call, source, id string, body []byte, respond func([]godwit.Event, []int) *godwit.StoredResponse) *engine.Idempotency {
	return &engine.Idempotency{
		ID: sourceRecord(c.Tenant(), source, id), Fingerprint: s.fingerprint(c, body), Window: s.Retention,
		Respond: func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
			resp := respond(events, fanout)
			resp.Location = "/v1/events/" + events[0].ID.String() // where Event finds it again
			return resp
		},
	}
}

func (s *Services) fingerprint(c *Call, body []byte) [32]byte {
	return s.Idempotency.Fingerprint(idempotency.Payload{ContentType: c.R.Header.Get("Content-Type"), Query: c.R.URL.RawQuery, Body: body})
}

func sourceRecord(tenant godwit.TenantID, source, id string) [32]byte {
	return godwit.IdempotencyID(godwit.KeyID{}, "source "+tenant.String()+" "+source, id)
}

// Guarded runs a submission that has an id of its own under the request's Idempotency-Key too: the key is reserved first,
// the id decides within. A crash between the two leaves a key that is free again, and an id that is known.
func (a *API) Guarded(c *Call, serve func(*Call) error) {
	a.guard(c, ScopeOf(c.Caller, eventScope), serve)
}

// Event finds an event by any rendering of its id: evt_ with a UUID, evt_ with 26 characters, or the id that its producer
// gave it, of one of the sources named.
func (s *Services) Event(ctx context.Context, tenant godwit.TenantID, text string, sources ...string) (*godwit.Event, error) {
	id, err := godwit.ParseEventID(text)
	if rest, ok := strings.CutPrefix(text, "evt_"); err != nil && ok {
		id, err = godwit.ParseEventBase32(rest)
	}
	if err == nil {
		event, err := s.Store.Event(ctx, tenant, id)
		if !errors.Is(err, store.ErrNotFound) {
			return event, err
		}
	}
	for _, source := range sources {
		record, err := s.Store.Recorded(ctx, sourceRecord(tenant, source, text), s.Clock.Now())
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find event by its producer's id: %w", err)
		}
		if record.InProgress() {
			continue
		}
		if id, err := godwit.ParseEventID(path.Base(record.Response.Location)); err == nil {
			return s.Store.Event(ctx, tenant, id)
		}
	}
	return nil, fmt.Errorf("find event: %w", store.ErrNotFound)
}

// HealthOf is the live health of an endpoint where this node delivers to it, else the stored one.
func HealthOf(ctx context.Context, e interface {
	Health(id godwit.EndpointID) (godwit.Health, bool)
}, s interface {
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
}, id godwit.EndpointID) (*godwit.Health, error) {
	if live, ok := e.Health(id); ok {
		return &live, nil
	}
	return s.Health(ctx, id)
}
