package native

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Delivery is the delivery of one event to one endpoint.
type Delivery struct {
	ID         string     `json:"id" example:"del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	EventID    string     `json:"event_id"`
	EventType  string     `json:"event_type,omitempty" doc:"Absent when the event was removed at the end of its retention"`
	EndpointID string     `json:"endpoint_id"`
	Status     string     `json:"status" enum:"pending,accepted,terminal,exhausted,cancelled" doc:"accepted: the receiver acknowledged the request, and nothing more"`
	Reason     string     `json:"reason,omitempty" doc:"Why it is where it is"`
	Attempts   int        `json:"attempt_count" doc:"Attempts made so far"`
	LastStatus int        `json:"last_status,omitempty" doc:"HTTP status of the last attempt"`
	DueAt      *time.Time `json:"due_at,omitempty" doc:"When the next attempt is due"`
	Run        Run        `json:"run"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
}

// Run is the current bounded series of attempts.
type Run struct {
	Trigger  string     `json:"trigger" doc:"What started it: accept, manual, replay or test"`
	Actor    string     `json:"actor,omitempty" doc:"Who asked for it"`
	Attempts int        `json:"attempt_count"`
	FirstAt  *time.Time `json:"first_at,omitempty"`
}

// DeliveryDetail is a delivery with its attempts.
type DeliveryDetail struct {
	Delivery
	AttemptList []Attempt `json:"attempts" doc:"First to last"`
}

func deliveryView(d *godwit.Delivery) Delivery {
	v := Delivery{
		ID: d.ID.String(), EventID: d.EventID.String(), EventType: d.EventType, EndpointID: d.EndpointID.String(), Status: string(d.Status),
		Reason: string(d.Reason), Attempts: d.Attempts, LastStatus: d.LastStatus,
		Run:       Run{Trigger: string(d.Run.Trigger), Actor: d.Run.Actor, Attempts: d.Run.Attempts, FirstAt: timestamp(d.Run.FirstAt)},
		CreatedAt: d.CreatedAt.UTC(), UpdatedAt: d.UpdatedAt.UTC(),
	}
	if d.Status == godwit.DeliveryPending {
		v.DueAt = timestamp(d.DueAt)
	}
	return v
}

func deliveryViews(list []godwit.Delivery) []Delivery {
	views := make([]Delivery, len(list))
	for i := range list {
		views[i] = deliveryView(&list[i])
	}
	return views
}

// DeliveryPath names a delivery.
type DeliveryPath struct {
	ID string `path:"id" doc:"Id of the delivery"`
}

func (p DeliveryPath) parse() (godwit.DeliveryID, error) {
	id, err := godwit.ParseDeliveryID(p.ID)
	if err != nil {
		return id, badID("id", "del_…")
	}
	return id, nil
}

type (
	listDeliveriesInput struct {
		PageParams
		RangeParams
		Endpoint string `query:"endpoint" doc:"Only to this endpoint"`
		Event    string `query:"event" doc:"Only of this event"`
		Type     string `query:"type" maxLength:"128" doc:"Only events of this type"`
		Status   string `query:"status" enum:"pending,accepted,terminal,exhausted,cancelled"`
	}
	deliveryOutput       struct{ Body Delivery }
	deliveryDetailOutput struct{ Body DeliveryDetail }
)

func (s *server) deliveryRoutes() {
	tags := []string{"Deliveries"}
	typed(s, mayRead, huma.Operation{
		OperationID: "list-deliveries", Method: http.MethodGet, Path: "/v1/deliveries", Tags: tags, Summary: "List deliveries",
	}, s.listDeliveries)
	typed(s, mayRead, huma.Operation{
		OperationID: "get-delivery", Method: http.MethodGet, Path: "/v1/deliveries/{id}", Tags: tags, Summary: "Get a delivery and its attempts",
	}, s.getDelivery)
	typed(s, mayManage, huma.Operation{
		OperationID: "retry-delivery", Method: http.MethodPost, Path: "/v1/deliveries/{id}/retry", Tags: tags, Summary: "Try a delivery now",
		DefaultStatus: http.StatusAccepted,
		Description:   "A waiting one is made due at once; a finished one starts a new run under the same idempotency key.",
	}, func(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryOutput, error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		return deliveryShown(s.cfg.Engine.Retry(ctx, c.Tenant.ID, id, c.Actor()))
	})
	typed(s, mayManage, huma.Operation{
		OperationID: "cancel-delivery", Method: http.MethodPost, Path: "/v1/deliveries/{id}/cancel", Tags: tags, Summary: "Cancel a delivery",
		Description: "Ends one that waits. Conflict when it is finished, or under way at this moment.",
	}, func(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryOutput, error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		return deliveryShown(s.cfg.Engine.Cancel(ctx, c.Tenant.ID, id))
	})
}

func deliveryShown(d *godwit.Delivery, err error) (*deliveryOutput, error) {
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{Body: deliveryView(d)}, nil
}

func (s *server) listDeliveries(ctx context.Context, c *management.Caller, in *listDeliveriesInput) (*listOutput[Delivery], error) {
	f := store.DeliveryFilter{
		TenantID: c.Tenant.ID, EventType: in.Type, Status: godwit.DeliveryStatus(in.Status), Since: in.Since, Until: in.Until,
	}
	if why := godwit.ValidEventType(in.Type); in.Type != "" && why != "" {
		return nil, problem.Invalid.In("type", "%s", why)
	}
	var err error
	if f.EndpointID, err = s.endpointParam(ctx, c, in.Endpoint); err != nil {
		return nil, err
	}
	if in.Event != "" {
		if f.EventID, err = parseEvent("event", in.Event); err != nil {
			return nil, err
		}
	}
	return deliveries.page(in.PageParams, func(p store.Page) ([]godwit.Delivery, error) { return s.cfg.Store.ListDeliveries(ctx, f, p) })
}

// endpointParam returns the endpoint that a filter names; zero if it names none.
func (s *server) endpointParam(ctx context.Context, c *management.Caller, text string) (godwit.EndpointID, error) {
	if text == "" {
		return godwit.EndpointID{}, nil
	}
	id, err := s.endpointID(ctx, c, "endpoint", text)
	return id, missing("endpoint", "endpoint", err)
}

// missing returns an error that names the member whose object does not exist.
func missing(field, noun string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.Invalid.In(field, "names no %s of this tenant", noun)
	}
	return err
}

func (s *server) getDelivery(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryDetailOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	d, err := s.cfg.Store.Delivery(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	attempts, err := s.cfg.Store.Attempts(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	out := &deliveryDetailOutput{Body: DeliveryDetail{Delivery: deliveryView(d), AttemptList: make([]Attempt, len(attempts))}}
	for i := range attempts {
		out.Body.AttemptList[i] = attemptView(&attempts[i])
	}
	return out, nil
}
