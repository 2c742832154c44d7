package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
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

// Descriptions of the operations on deliveries.
var (
	listDeliveriesDoc = huma.Operation{
		OperationID: "list-deliveries", Summary: "List deliveries",
		Description: "With type, a request examines up to 5,000 deliveries: a page may have fewer items than limit, even none, and still have a next_cursor.",
	}
	getDeliveryDoc = huma.Operation{
		OperationID: "get-delivery", Summary: "Get a delivery and its attempts",
	}
	retryDeliveryDoc = huma.Operation{
		OperationID: "retry-delivery", Summary: "Try a delivery now",
		DefaultStatus: http.StatusAccepted,
		Description:   "A waiting one is made due at once; a finished one starts a new run under the same idempotency key.",
	}
	cancelDeliveryDoc = huma.Operation{
		OperationID: "cancel-delivery", Summary: "Cancel a delivery",
		Description: "Ends one that waits. Conflict when it is finished, or under way at this moment.",
	}
)

// deliveryHandlers serve the operations on deliveries.
type deliveryHandlers struct {
	store  deliveryStore
	engine deliveryEngine
	finder endpointFinder
}

// deliveryStore is the part of the store that deliveries are read from.
type deliveryStore interface {
	Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
	ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error)
	CountDeliveries(ctx context.Context, f store.DeliveryFilter, upTo int) (int, error)
	Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error)
}

// deliveryEngine is the part of the engine that changes the course of a delivery.
type deliveryEngine interface {
	Retry(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, actor string) (*godwit.Delivery, error)
	Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
}

func (h *deliveryHandlers) retry(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	return deliveryShown(h.engine.Retry(ctx, c.Tenant.ID, id, c.Actor()))
}

func (h *deliveryHandlers) cancel(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	if idempotency.Again(ctx) { // the interrupted request may have cancelled it
		if d, err := h.store.Delivery(ctx, c.Tenant.ID, id); err != nil || d.Status == godwit.DeliveryCancelled {
			return deliveryShown(d, err)
		}
	}
	return deliveryShown(h.engine.Cancel(ctx, c.Tenant.ID, id))
}

func deliveryShown(d *godwit.Delivery, err error) (*deliveryOutput, error) {
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{Body: deliveryView(d)}, nil
}

func (h *deliveryHandlers) list(ctx context.Context, c *management.Caller, in *listDeliveriesInput) (*listOutput[Delivery], error) {
	f := store.DeliveryFilter{
		TenantID: c.Tenant.ID, EventType: in.Type, Status: godwit.DeliveryStatus(in.Status), Since: in.Since, Until: in.Until,
	}
	if why := godwit.ValidEventType(in.Type); in.Type != "" && why != "" {
		return nil, problem.Invalid.In("type", "%s", why)
	}
	var err error
	if f.EndpointID, err = h.finder.filter(ctx, c, in.Endpoint); err != nil {
		return nil, err
	}
	if in.Event != "" {
		if f.EventID, err = parseEvent("event", in.Event); err != nil {
			return nil, err
		}
	}
	read := func(p store.Page) ([]godwit.Delivery, error) { return h.store.ListDeliveries(ctx, f, p) }
	if in.Type != "" {
		f.EventType = ""
		return deliveries.sift(in.PageParams, read, func(d *godwit.Delivery) bool { return d.EventType == in.Type })
	}
	return deliveries.page(in.PageParams, read)
}

func (h *deliveryHandlers) get(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryDetailOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	d, err := h.store.Delivery(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	attempts, err := h.store.Attempts(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	out := &deliveryDetailOutput{Body: DeliveryDetail{Delivery: deliveryView(d), AttemptList: make([]Attempt, len(attempts))}}
	for i := range attempts {
		out.Body.AttemptList[i] = attemptView(&attempts[i])
	}
	return out, nil
}
