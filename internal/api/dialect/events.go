package dialect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
func (a *API) EventKey(c *Call) (string, error) {
	if !idempotency.Present(c.R.Header) && !c.Caller.Tenant.RequireIdempotencyKey {
		return "", nil
	}
	return a.cfg.Idempotency.Key(c.R.Header)
}

// ByKey makes a submission repeatable by the key it came under.
func (a *API) ByKey(c *Call, key string, respond func([]godwit.Event, []int) *godwit.StoredResponse) *engine.Idempotency {
	scope := idempotency.Scope{Principal: c.Caller.Key.Principal, Tenant: c.Tenant(), Operation: eventScope}
	return &engine.Idempotency{ID: scope.ID(key), Fingerprint: a.fingerprint(c, c.Body), Respond: respond}
}

// BySource makes a submission repeatable by the id that the producer gave its event: for as long as the event is kept, the
// same id of the same source is the same event. Body is the part of the request that is this event.
func (a *API) BySource(c *Call, source, id string, body []byte, respond func([]godwit.Event, []int) *godwit.StoredResponse) *engine.Idempotency {
	return &engine.Idempotency{
		ID: sourceRecord(c.Tenant(), source, id), Fingerprint: a.fingerprint(c, body), Window: a.cfg.Retention,
		Respond: func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
			resp := respond(events, fanout)
			resp.Location = "/v1/events/" + events[0].ID.String() // where Event finds it again
			return resp
		},
	}
}

func (a *API) fingerprint(c *Call, body []byte) [32]byte {
	return a.cfg.Idempotency.Fingerprint(idempotency.Payload{ContentType: c.R.Header.Get("Content-Type"), Query: c.R.URL.RawQuery, Body: body})
}

func sourceRecord(tenant godwit.TenantID, source, id string) [32]byte {
	return godwit.IdempotencyID(godwit.KeyID{}, "source "+tenant.String()+" "+source, id)
}

// Guarded runs a submission that has an id of its own under the request's Idempotency-Key too: the key is reserved first,
// the id decides within. A crash between the two leaves a key that is free again, and an id that is known.
func (a *API) Guarded(c *Call, serve func(*Call) error) {
	scope := idempotency.Scope{Principal: c.Caller.Key.Principal, Tenant: c.Tenant(), Operation: eventScope}
	a.cfg.Idempotency.Serve(c.W, c.R, scope, c.Body, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.finish(&Call{W: w, R: r, Caller: c.Caller, Body: c.Body}, serve)
	}))
}

// Event finds an event by any rendering of its id: evt_ with a UUID, evt_ with 26 characters, or the id that its producer
// gave it, of one of the sources named.
func (a *API) Event(ctx context.Context, tenant godwit.TenantID, text string, sources ...string) (*godwit.Event, error) {
	id, err := godwit.ParseEventID(text)
	if rest, ok := strings.CutPrefix(text, "evt_"); err != nil && ok {
		id, err = godwit.ParseEventBase32(rest)
	}
	if err == nil {
		event, err := a.cfg.Store.Event(ctx, tenant, id)
		if !errors.Is(err, store.ErrNotFound) {
			return event, err
		}
	}
	for _, source := range sources {
		record, err := a.cfg.Store.Recorded(ctx, sourceRecord(tenant, source, text), a.cfg.Clock.Now())
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
			return a.cfg.Store.Event(ctx, tenant, id)
		}
	}
	return nil, fmt.Errorf("find event: %w", store.ErrNotFound)
}

// HealthOf is the live health of an endpoint, or what is stored of it.
func (a *API) HealthOf(ctx context.Context, id godwit.EndpointID) (godwit.Health, error) {
	if h, live := a.cfg.Engine.Health(id); live {
		return h, nil
	}
	h, err := a.cfg.Store.Health(ctx, id)
	if err != nil {
		return godwit.Health{}, err
	}
	return *h, nil
}
