package native

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

type pauseInput struct {
	EndpointPath
	Body *struct {
		Reason string `json:"reason,omitempty" doc:"Shown as status_reason"`
	} `nameHint:"Pause"`
}

type statsOutput struct{ Body EndpointStats }

// deadLetterCount bounds the count of dead letters; the list has the others.
const deadLetterCount = 1000

// Descriptions of the operations on an endpoint's status.
var (
	pauseEndpointDoc = huma.Operation{
		OperationID: "pause-endpoint", Summary: "Pause an endpoint",
		Description: "Its deliveries are held, none is dropped.",
	}
	resumeEndpointDoc = huma.Operation{
		OperationID: "resume-endpoint", Summary: "Resume an endpoint",
		Description: "Also enables an endpoint that was disabled, and clears its failure counts, hold and circuit.",
	}
	getEndpointStatsDoc = huma.Operation{
		OperationID: "get-endpoint-stats", Summary: "Health, backlog and policy of an endpoint",
	}
)

// endpointStatusHandlers serve the operations that hold and resume deliveries to an endpoint, and its health.
type endpointStatusHandlers struct {
	endpoints interface {
		Pause(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, reason string) (*godwit.Endpoint, error)
		Resume(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	}
	store  healthStore
	engine healthEngine
	finder endpointFinder
}

// healthStore is the part of the store that the health of endpoints is read from.
type healthStore interface {
	CountPending(ctx context.Context, id godwit.EndpointID) (int64, error)
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
	ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error)
}

// healthEngine knows the live health of the endpoints that this node delivers to.
type healthEngine interface {
	Health(id godwit.EndpointID) (godwit.Health, bool)
}

func (h *endpointStatusHandlers) pause(ctx context.Context, c *management.Caller, in *pauseInput) (*endpointOutput, error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return shown(h.endpoints.Pause(ctx, c.Tenant.ID, id, reason))
}

func (h *endpointStatusHandlers) resume(ctx context.Context, c *management.Caller, in *EndpointPath) (*endpointOutput, error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return shown(h.endpoints.Resume(ctx, c.Tenant.ID, id))
}

func (h *endpointStatusHandlers) stats(ctx context.Context, c *management.Caller, in *EndpointPath) (*statsOutput, error) {
	e, err := h.finder.endpoint(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	id := e.ID
	policy, err := management.EffectivePolicy(e)
	if err != nil {
		return nil, err
	}
	health, err := httpapi.HealthOf(ctx, h.engine, h.store, id)
	if err != nil {
		return nil, err
	}
	pending, err := h.store.CountPending(ctx, id)
	if err != nil {
		return nil, err
	}
	dead, err := h.store.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: c.Tenant.ID, EndpointID: id}, store.Page{Limit: deadLetterCount + 1})
	if err != nil {
		return nil, err
	}
	return &statsOutput{Body: EndpointStats{
		EndpointID: id.String(), Status: string(e.Status), StatusReason: e.StatusReason, ReenableAt: timestamp(e.ReenableAt),
		Pending: pending, DeadLetters: min(len(dead), deadLetterCount), DeadLettersCapped: len(dead) > deadLetterCount,
		Health: healthView(health), Policy: policyView(&policy), Overrides: overridden(&e.Policy), Agreements: agreements(e),
	}}, nil
}
