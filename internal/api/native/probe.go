package native

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
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

func (s *server) probeRoutes() {
	typed(s, mayManage, huma.Operation{
		OperationID: "probe-endpoint", Method: http.MethodPost, Path: "/v1/endpoints/{id}/probe", Tags: []string{"Endpoints"},
		Summary:     "Send a test event and wait for the answer",
		Description: "One attempt, whatever the endpoint's status and patterns. Nothing is stored or counted, and nothing is tried again. That the endpoint refuses is a result, not an error.",
	}, s.probeEndpoint)
}

func (s *server) probeEndpoint(ctx context.Context, c *management.Caller, in *EndpointPath) (*probeOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	p, err := s.cfg.Engine.SendTest(ctx, c.Tenant.ID, id, testPublication(id))
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
