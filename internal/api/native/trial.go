package native

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
)

const testEventType = "godwit.test"

// testPublication returns the event that a test sends to an endpoint.
func testPublication(id godwit.EndpointID) engine.Publication {
	body := append([]byte(`{"test":true,"endpoint_id":"`), id.String()...)
	return engine.Publication{
		Type: testEventType, ContentType: jsonType, Body: append(body, `"}`...),
		Endpoints: []godwit.EndpointID{id}, Trigger: godwit.TriggerTest,
	}
}

// Probe is the result of a test event.
type Probe struct {
	Outcome      string  `json:"outcome" enum:"accepted,transient,terminal"`
	Reason       string  `json:"reason"`
	FailureClass string  `json:"failure_class,omitempty" enum:"transport,application"`
	Detail       string  `json:"detail,omitempty" doc:"What went wrong on the way"`
	URL          string  `json:"url" doc:"Where the last hop went"`
	Status       int     `json:"status,omitempty" doc:"HTTP status; absent when none arrived"`
	DurationMS   float64 `json:"duration_ms"`
	Body         string  `json:"body,omitempty" doc:"The beginning of the answer's body"`
}

type probeOutput struct{ Body Probe }

type testOutput struct {
	Location string `header:"Location"`
	Body     Accepted
}

// Descriptions of the operations on tests of endpoints.
var (
	testEndpointDoc = huma.Operation{
		OperationID: "test-endpoint", Summary: "Send a test event",
		DefaultStatus: http.StatusAccepted,
		Description:   "An event of the type " + testEventType + " goes to this endpoint alone, whatever its patterns. It is stored, tried again and recorded as any other.",
	}
	probeEndpointDoc = huma.Operation{
		OperationID: "probe-endpoint",
		Summary:     "Send a test event and wait for the answer",
		Description: "One attempt, whatever the endpoint's status and patterns. Nothing is stored or counted, and nothing is tried again. That the endpoint refuses is a result, not an error.",
	}
)

// trialHandlers send test events to endpoints.
type trialHandlers struct {
	engine trialEngine
	finder endpointFinder
}

// trialEngine is the part of the engine that sends test events.
type trialEngine interface {
	Submit(ctx context.Context, subs ...engine.Submission) ([]engine.Receipt, error)
	SendTest(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p engine.Publication) (*engine.Trial, error)
}

func (h *trialHandlers) test(ctx context.Context, c *management.Caller, in *EndpointPath) (*testOutput, error) {
	e, err := h.finder.endpoint(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	if e.Status != godwit.EndpointActive {
		return nil, problem.Conflict.With("the endpoint is %s, so a test would wait; resume it first", e.Status)
	}
	receipts, err := h.engine.Submit(ctx, engine.Submission{
		TenantID: c.Tenant.ID, Principal: c.Key.Principal, Events: []engine.Publication{testPublication(e.ID)}, Idempotency: testRecord(ctx),
	})
	if err != nil {
		return nil, err
	}
	r := &receipts[0]
	if r.Err != nil {
		return nil, r.Err
	}
	if r.Replayed != nil {
		out := &testOutput{Location: eventLocation(r.ReplayedEvent)}
		if err := json.Unmarshal(r.Replayed.Body, &out.Body); err != nil {
			return nil, fmt.Errorf("read stored test: %w", err)
		}
		return out, nil
	}
	return &testOutput{Location: eventLocation(r.Events[0].ID), Body: acceptedView(&r.Events[0], r.Fanout[0])}, nil
}

// testRecord keeps the repeat of an interrupted request from sending a second test event; nil if the request has no key.
func testRecord(ctx context.Context) *engine.Idempotency {
	id, held := idempotency.RecordID(ctx)
	if !held {
		return nil
	}
	return &engine.Idempotency{ID: id, Respond: func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
		body, err := json.Marshal(acceptedView(&events[0], fanout[0]))
		if err != nil {
			panic(err) // texts and numbers are always encodable
		}
		return &godwit.StoredResponse{Status: http.StatusAccepted, Body: body}
	}}
}

func (h *trialHandlers) probe(ctx context.Context, c *management.Caller, in *EndpointPath) (*probeOutput, error) {
	id, err := h.finder.id(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	p, err := h.engine.SendTest(ctx, c.Tenant.ID, id, testPublication(id))
	if err != nil {
		return nil, err
	}
	x := &p.Exchange
	out := &probeOutput{Body: Probe{
		Outcome: string(p.Verdict.Outcome), Reason: string(p.Verdict.Reason), FailureClass: string(p.Verdict.Class),
		URL: x.URL, Status: x.Status, DurationMS: milliseconds(x.Duration),
		Body: profile.Excerpt(strings.ToValidUTF8(string(x.Body), "\uFFFD"), godwit.MaxBodyExcerpt),
	}}
	if x.Failure != nil {
		out.Body.Detail = profile.Excerpt(x.Failure.Detail, 200)
	}
	return out, nil
}
