package native

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// maxListedTenants is the number of tenants up to which the answer to a broadcast waits for their events, and lists them.
	maxListedTenants = 100
	// broadcastWait is how long the answer waits for them at most.
	broadcastWait = 5 * time.Second
)

// Broadcast is an event that was posted for several tenants.
type Broadcast struct {
	ID          string            `json:"id" example:"bct_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Type        string            `json:"type" example:"order.created"`
	ContentType string            `json:"content_type"`
	Principal   string            `json:"principal" doc:"Who posted it"`
	AllTenants  bool              `json:"all_tenants" doc:"For all tenants that had an endpoint for it when it was accepted; otherwise the request named them"`
	State       string            `json:"state" enum:"running,ended"`
	Tenants     int               `json:"tenants" doc:"How many tenants it is for, fixed when it was accepted"`
	Accepted    int               `json:"accepted" doc:"How many of them have their event"`
	Skipped     int               `json:"skipped" doc:"How many of them get none"`
	Deliveries  int               `json:"deliveries" doc:"Of the events so far"`
	CreatedAt   time.Time         `json:"created_at"`
	EndedAt     *time.Time        `json:"ended_at,omitempty"`
	Items       []BroadcastTenant `json:"items,omitempty" doc:"Only in the answer to the post: the result of each tenant, if they are at most 100 and all have one"`
}

// BroadcastTenant is the result of a broadcast for one tenant.
type BroadcastTenant struct {
	TenantID string `json:"tenant_id"`
	UID      string `json:"uid,omitempty" doc:"The tenant's own id"`
	Status   string `json:"status" enum:"accepted,skipped"`
	EventID  string `json:"event_id,omitempty"`
	Reason   string `json:"reason,omitempty" enum:"invalid,limit,tenant-deleted" doc:"Why the tenant gets no event: the schema of its own type, or a limit, refuses it; or the tenant was deleted meanwhile"`
	Detail   string `json:"detail,omitempty"`
}

func broadcastView(b *godwit.Broadcast) Broadcast {
	v := Broadcast{
		ID: b.ID.String(), Type: b.Type, ContentType: b.ContentType, Principal: b.Principal.String(), AllTenants: b.All, State: "ended",
		Tenants: b.Tenants, Accepted: b.Accepted, Skipped: b.Skipped, Deliveries: b.Deliveries, CreatedAt: b.CreatedAt.UTC(), EndedAt: timestamp(b.CompletedAt),
	}
	if b.Open() {
		v.State = "running"
	}
	return v
}

func broadcastTenantView(i *godwit.BroadcastItem) BroadcastTenant {
	v := BroadcastTenant{TenantID: i.TenantID.String(), UID: i.TenantUID, Status: "accepted", Reason: string(i.Reason), Detail: i.Detail}
	if i.EventID.IsZero() {
		v.Status = "skipped"
		return v
	}
	v.EventID = i.EventID.String()
	return v
}

// broadcastHandlers post and show events for several tenants.
type broadcastHandlers struct {
	*eventIngest
	store  broadcastStore
	engine broadcastEngine
}

// broadcastStore is the part of the store that broadcasts are read from.
type broadcastStore interface {
	Broadcast(ctx context.Context, environment godwit.EnvironmentID, id godwit.BroadcastID) (*godwit.Broadcast, error)
	ListBroadcasts(ctx context.Context, environment godwit.EnvironmentID, p store.Page) ([]godwit.Broadcast, error)
	ListBroadcastItems(ctx context.Context, f store.BroadcastFilter, p store.Page) ([]godwit.BroadcastItem, error)
}

// broadcastEngine is the part of the engine that works broadcasts off.
type broadcastEngine interface {
	AwaitBroadcast(ctx context.Context, id godwit.BroadcastID, limit time.Duration)
}

// post accepts an event for several tenants, or for all if there are no names. The forms of the body are those of a single event.
func (h *broadcastHandlers) post(w http.ResponseWriter, r *http.Request, c *management.Caller, names []string) error {
	key := ""
	if idempotency.Present(r.Header) {
		var err error
		if key, err = h.intake.KeyFormat().Parse(r.Header); err != nil {
			return err
		}
	}
	taken, err := h.bodies.AcquireBody(r, c.Tenant.ID, h.maxEnvelope())
	if err != nil {
		return err
	}
	defer h.bodies.Release(c.Tenant.ID, taken)
	event, at, err := h.readEvent(w, r)
	if err != nil {
		return err
	}
	environment := c.Tenant.EnvironmentID
	id, repeated, err := h.intake.Broadcast(r.Context(), &intake.Broadcast{
		Environment: environment, Principal: c.Key.Principal, Names: names, Event: event, Key: key,
	})
	if err != nil {
		return at.name(err)
	}
	answer, err := h.answer(r.Context(), environment, id, key)
	if err != nil {
		return err
	}
	if repeated {
		w.Header().Set(idempotency.ReplayedHeader, "true")
	}
	w.Header().Set("Location", "/v1/broadcasts/"+id.String())
	writeJSON(w, http.StatusAccepted, append(answer, '\n'))
	return nil
}

// answer renders the answer to a post. It waits for the events of a few tenants.
func (h *broadcastHandlers) answer(ctx context.Context, environment godwit.EnvironmentID, id godwit.BroadcastID, key string) ([]byte, error) {
	b, err := h.store.Broadcast(ctx, environment, id)
	if err == nil && b.Open() && b.Tenants <= maxListedTenants {
		h.engine.AwaitBroadcast(ctx, id, broadcastWait)
		b, err = h.store.Broadcast(ctx, environment, id)
	}
	if err != nil {
		return nil, err
	}
	view := broadcastView(b)
	if !b.Open() && b.Tenants <= maxListedTenants {
		items, err := h.store.ListBroadcastItems(ctx, store.BroadcastFilter{ID: id}, store.Page{Limit: maxListedTenants})
		if err != nil {
			return nil, err
		}
		for i := range items {
			view.Items = append(view.Items, broadcastTenantView(&items[i]))
		}
	}
	return json.Marshal(Accepted{ID: view.ID, IdempotencyKey: key, Deliveries: b.Deliveries, CreatedAt: view.CreatedAt, Broadcast: &view})
}

// BroadcastPath names a broadcast.
type BroadcastPath struct {
	ID string `path:"id" doc:"Id of the broadcast"`
}

type (
	listBroadcastTenantsInput struct {
		BroadcastPath
		PageParams
		Status string `query:"status" enum:"skipped" doc:"Only tenants that were skipped"`
	}
	broadcastOutput struct{ Body Broadcast }
)

// Descriptions of the operations on broadcasts.
var (
	listBroadcastsDoc = huma.Operation{
		OperationID: "list-broadcasts", Summary: "List broadcasts",
		Description: "Events that were posted for several tenants of the environment. They are kept as long as the server keeps events.",
	}
	getBroadcastDoc = huma.Operation{
		OperationID: "get-broadcast", Summary: "Get the progress of a broadcast",
	}
	listBroadcastTenantsDoc = huma.Operation{
		OperationID: "list-broadcast-tenants", Summary: "List the results of a broadcast",
		Description: "The tenants that have a result, newest first: the id of their event, or why they get none. While the broadcast runs the list grows.",
	}
)

func (h *broadcastHandlers) list(ctx context.Context, c *management.Caller, in *PageParams) (*listOutput[Broadcast], error) {
	return broadcasts.page(*in, func(p store.Page) ([]godwit.Broadcast, error) {
		return h.store.ListBroadcasts(ctx, c.Tenant.EnvironmentID, p)
	})
}

func (h *broadcastHandlers) get(ctx context.Context, c *management.Caller, in *BroadcastPath) (*broadcastOutput, error) {
	b, err := h.find(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	return &broadcastOutput{Body: broadcastView(b)}, nil
}

func (h *broadcastHandlers) tenants(ctx context.Context, c *management.Caller, in *listBroadcastTenantsInput) (*listOutput[BroadcastTenant], error) {
	b, err := h.find(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	filter := store.BroadcastFilter{ID: b.ID, Skipped: in.Status != ""}
	return results.page(in.PageParams, func(p store.Page) ([]godwit.BroadcastItem, error) { return h.store.ListBroadcastItems(ctx, filter, p) })
}

func (h *broadcastHandlers) find(ctx context.Context, c *management.Caller, text string) (*godwit.Broadcast, error) {
	id, err := godwit.ParseBroadcastID(text)
	if err != nil {
		return nil, badID("id", "bct_…")
	}
	return h.store.Broadcast(ctx, c.Tenant.EnvironmentID, id)
}
