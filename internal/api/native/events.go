package native

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Event is an event without its payload.
type Event struct {
	ID             string            `json:"id" example:"evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Type           string            `json:"type" example:"order.created"`
	IdempotencyKey string            `json:"idempotency_key"`
	ContentType    string            `json:"content_type"`
	Attributes     map[string]string `json:"attributes,omitempty"`
	Principal      string            `json:"principal" doc:"Who posted it"`
	SourceID       string            `json:"source_id,omitempty" doc:"The source it came by, when it was relayed"`
	Headers        []EventHeader     `json:"headers,omitempty" doc:"Header fields that go with every attempt as they came"`
	CreatedAt      time.Time         `json:"created_at"`
}

// EventHeader is a header field that is forwarded with an event.
type EventHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EventDetail is an event with its deliveries.
type EventDetail struct {
	Event
	Size       int        `json:"size" doc:"Length of the payload in bytes"`
	Deliveries []Delivery `json:"deliveries" doc:"The newest 200"`
}

func eventView(e *godwit.Event) Event {
	v := Event{
		ID: e.ID.String(), Type: e.Type, IdempotencyKey: e.Key, ContentType: e.ContentType, Attributes: e.Attributes,
		Principal: godwit.PrincipalText(e.Principal), CreatedAt: e.CreatedAt.UTC(),
	}
	if !e.Origin.IsZero() {
		v.SourceID = e.Origin.Source.String()
		v.Principal = e.Origin.Tag()
	}
	for _, h := range e.KeptHeaders {
		v.Headers = append(v.Headers, EventHeader(h))
	}
	return v
}

// EventPath names an event.
type EventPath struct {
	ID string `path:"id" doc:"Id of the event"`
}

func (p EventPath) parse() (godwit.EventID, error) { return parseEvent("id", p.ID) }

// parseEvent reads an event's id in the form of any API: evt_ with a UUID, or with 26 characters (decision 6).
func parseEvent(field, text string) (godwit.EventID, error) {
	if id, err := godwit.ParseEventID(text); err == nil {
		return id, nil
	}
	if short, ok := strings.CutPrefix(text, "evt_"); ok {
		if id, err := godwit.ParseEventBase32(short); err == nil {
			return id, nil
		}
	}
	return godwit.EventID{}, badID(field, "evt_…")
}

type (
	listEventsInput struct {
		PageParams
		RangeParams
		Type string `query:"type" maxLength:"130" doc:"Only this type, or those under prefix.*"`
		Key  string `query:"key" maxLength:"1024" doc:"Only the event with this idempotency key"`
	}
	eventOutput      struct{ Body EventDetail }
	replayEventInput struct {
		EventPath
		Body *struct {
			Endpoints []string `json:"endpoints,omitempty" minItems:"1" maxItems:"1000" doc:"Only to these; absent: to all that it went to"`
		} `nameHint:"EventReplay"`
	}
	deliveriesOutput struct {
		Body struct {
			Items []Delivery `json:"items"`
		} `nameHint:"DeliveryItems"`
	}
)

// Descriptions of the operations on stored events.
var (
	listEventsDoc = huma.Operation{
		OperationID: "list-events", Summary: "List events",
		Description: "With type, a request examines up to 5,000 events: a page may have fewer items than limit, even none, and still have a next_cursor.",
	}
	getEventDoc = huma.Operation{
		OperationID: "get-event", Summary: "Get an event and its deliveries",
	}
	replayEventDoc = huma.Operation{
		OperationID: "replay-event", Summary: "Deliver an event again",
		DefaultStatus: http.StatusAccepted,
		Description:   "Every delivery starts a new run under the same idempotency key. An endpoint that the event has not gone to yet gets it now.",
	}
)

// eventHandlers serve the operations on stored events.
type eventHandlers struct {
	store  eventStore
	engine eventEngine
	finder endpointFinder
}

// eventStore is the part of the store that events are read from.
type eventStore interface {
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	ListEvents(ctx context.Context, f store.EventFilter, p store.Page) ([]godwit.Event, error)
	ScanEvents(ctx context.Context, scan store.EventScan, fn func(*store.ScannedEvent) bool) error
	ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error)
}

// eventEngine is the part of the engine that sends events again.
type eventEngine interface {
	ReplayEvent(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, endpoints []godwit.EndpointID, actor string) ([]godwit.Delivery, error)
}

func (h *eventHandlers) list(ctx context.Context, c *management.Caller, in *listEventsInput) (*listOutput[Event], error) {
	if why := godwit.ValidPattern(in.Type); in.Type != "" && why != "" {
		return nil, problem.Invalid.In("type", "%s", why)
	}
	f := store.EventFilter{TenantID: c.Tenant.ID, Type: in.Type, Key: in.Key, Since: in.Since, Until: in.Until}
	read := func(p store.Page) ([]godwit.Event, error) { return h.store.ListEvents(ctx, f, p) }
	if in.Type != "" && in.Key == "" {
		f.Type = ""
		return events.sift(in.PageParams, read, func(e *godwit.Event) bool { return godwit.MatchPattern(in.Type, e.Type) })
	}
	return events.page(in.PageParams, read)
}

func (h *eventHandlers) get(ctx context.Context, c *management.Caller, in *EventPath) (*eventOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	e, err := h.store.Event(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	deliveries, err := h.store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: c.Tenant.ID, EventID: id}, store.Page{Limit: 200})
	if err != nil {
		return nil, err
	}
	return &eventOutput{Body: EventDetail{Event: eventView(e), Size: len(e.Body), Deliveries: deliveryViews(deliveries)}}, nil
}

func (h *eventHandlers) replay(ctx context.Context, c *management.Caller, in *replayEventInput) (*deliveriesOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	var endpoints []godwit.EndpointID
	if in.Body != nil {
		for i, text := range in.Body.Endpoints {
			field := "endpoints[" + strconv.Itoa(i) + "]"
			endpoint, err := h.finder.endpoint(ctx, c, field, text)
			if err != nil {
				return nil, missing(field, "endpoint", err)
			}
			if slices.Contains(endpoints, endpoint.ID) {
				return nil, problem.Invalid.In(field, "is named twice") // the event would be sent twice
			}
			endpoints = append(endpoints, endpoint.ID)
		}
	}
	deliveries, err := h.engine.ReplayEvent(ctx, c.Tenant.ID, id, endpoints, c.Actor())
	if err != nil {
		return nil, err
	}
	out := &deliveriesOutput{}
	out.Body.Items = deliveryViews(deliveries)
	return out, nil
}

// body returns a payload byte for byte. A producer chose its content, so a browser must neither guess its type nor run
// it.
func (h *eventHandlers) body(w http.ResponseWriter, r *http.Request, c *management.Caller) error {
	if _, err := httpapi.ReadQuery(r.URL, httpapi.NoParameters); err != nil {
		return err
	}
	id, err := EventPath{ID: r.PathValue("id")}.parse()
	if err != nil {
		return err
	}
	e, err := h.store.Event(r.Context(), c.Tenant.ID, id)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", e.ContentType)
	header.Set("Content-Length", strconv.Itoa(len(e.Body)))
	header.Set("Content-Disposition", `attachment; filename="`+e.ID.String()+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	w.Write(e.Body)
	return nil
}
