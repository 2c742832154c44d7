package native

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

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
		Principal: e.Principal.String(), CreatedAt: e.CreatedAt.UTC(),
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
			Endpoints []string `json:"endpoints,omitempty" maxItems:"1000" doc:"Only to these; absent: to all that it went to"`
		} `nameHint:"EventReplay"`
	}
	deliveriesOutput struct {
		Body struct {
			Items []Delivery `json:"items"`
		} `nameHint:"DeliveryItems"`
	}
)

func (s *server) eventRoutes() {
	s.raw(mayIngest, postEventOperation(s), s.postEvent)
	s.raw(mayIngest, postBatchOperation(s), s.postBatch)
	s.raw(mayRead, eventBodyOperation(s), s.eventBody)
	tags := []string{"Events"}
	typed(s, mayRead, huma.Operation{
		OperationID: "list-events", Method: http.MethodGet, Path: "/v1/events", Tags: tags, Summary: "List events",
	}, s.listEvents)
	typed(s, mayRead, huma.Operation{
		OperationID: "get-event", Method: http.MethodGet, Path: "/v1/events/{id}", Tags: tags, Summary: "Get an event and its deliveries",
	}, s.getEvent)
	typed(s, mayManage, huma.Operation{
		OperationID: "replay-event", Method: http.MethodPost, Path: "/v1/events/{id}/replay", Tags: tags, Summary: "Deliver an event again",
		DefaultStatus: http.StatusAccepted,
		Description:   "Every delivery starts a new run under the same idempotency key. An endpoint that the event has not gone to yet gets it now.",
	}, s.replayEvent)
}

func (s *server) listEvents(ctx context.Context, c *management.Caller, in *listEventsInput) (*listOutput[Event], error) {
	if why := godwit.ValidPattern(in.Type); in.Type != "" && why != "" {
		return nil, problem.Invalid.In("type", "%s", why)
	}
	f := store.EventFilter{TenantID: c.Tenant.ID, Type: in.Type, Key: in.Key, Since: in.Since, Until: in.Until}
	return events.page(in.PageParams, func(p store.Page) ([]godwit.Event, error) { return s.cfg.Store.ListEvents(ctx, f, p) })
}

func (s *server) getEvent(ctx context.Context, c *management.Caller, in *EventPath) (*eventOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	e, err := s.cfg.Store.Event(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	deliveries, err := s.cfg.Store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: c.Tenant.ID, EventID: id}, store.Page{Limit: 200})
	if err != nil {
		return nil, err
	}
	return &eventOutput{Body: EventDetail{Event: eventView(e), Size: len(e.Body), Deliveries: deliveryViews(deliveries)}}, nil
}

func (s *server) replayEvent(ctx context.Context, c *management.Caller, in *replayEventInput) (*deliveriesOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	var endpoints []godwit.EndpointID
	if in.Body != nil {
		for i, text := range in.Body.Endpoints {
			field := "endpoints[" + strconv.Itoa(i) + "]"
			if !plausibleEndpoint(text) {
				return nil, badID(field, "sub_…")
			}
			endpoint, err := s.cfg.Management.Endpoints.Resolve(ctx, c.Tenant.ID, text)
			if err != nil {
				return nil, missing(field, "endpoint", err)
			}
			if slices.Contains(endpoints, endpoint.ID) {
				return nil, problem.Invalid.In(field, "is named twice") // the event would be sent twice
			}
			endpoints = append(endpoints, endpoint.ID)
		}
	}
	deliveries, err := s.cfg.Engine.ReplayEvent(ctx, c.Tenant.ID, id, endpoints, c.Actor())
	if err != nil {
		return nil, err
	}
	out := &deliveriesOutput{}
	out.Body.Items = deliveryViews(deliveries)
	return out, nil
}

// eventBody returns a payload byte for byte. A producer chose its content, so a browser must neither guess its type nor run
// it.
func (s *server) eventBody(w http.ResponseWriter, r *http.Request, c *management.Caller) {
	id, err := EventPath{ID: r.PathValue("id")}.parse()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	e, err := s.cfg.Store.Event(r.Context(), c.Tenant.ID, id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", e.ContentType)
	h.Set("Content-Length", strconv.Itoa(len(e.Body)))
	h.Set("Content-Disposition", `attachment; filename="`+e.ID.String()+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	w.Write(e.Body)
}
