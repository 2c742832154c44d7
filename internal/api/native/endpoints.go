package native

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// EndpointPath names an endpoint. Huma fills embedded structs only where their type is exported.
type EndpointPath struct {
	ID string `path:"id" doc:"Id of the endpoint, or its public_id"`
}

// endpointID reads an endpoint's id in the form of any API (decision 6). Only a public id needs a lookup.
func (s *server) endpointID(ctx context.Context, c *management.Caller, field, text string) (godwit.EndpointID, error) {
	if id, err := godwit.ParseEndpointID(text); err == nil {
		return id, nil
	}
	if !plausibleEndpoint(text) {
		return godwit.EndpointID{}, badID(field, "sub_…")
	}
	e, err := s.cfg.Management.Endpoints.Resolve(ctx, c.Tenant.ID, text)
	if err != nil {
		return godwit.EndpointID{}, err
	}
	return e.ID, nil
}

// plausibleEndpoint reports whether text could be an id; other text is a mistake in the caller's program. A mistyped public
// id is plausible, and gets 404.
func plausibleEndpoint(text string) bool {
	if _, err := godwit.ParseEndpointID(text); err == nil {
		return true
	}
	text = strings.TrimSpace(text)
	return len(text) == len("WEB-XXXXXX-X") && strings.EqualFold(text[:4], profile.CodeEndpoint+"-")
}

type (
	endpointOutput       struct{ Body Endpoint }
	issuedEndpointOutput struct {
		Location string `header:"Location"`
		Body     IssuedEndpoint
	}
	createEndpointInput struct{ Body NewEndpoint }
	listEndpointsInput  struct {
		PageParams
		Status string `query:"status" enum:"active,paused,disabled" doc:"Only those with this status"`
	}
	pauseInput struct {
		EndpointPath
		Body *struct {
			Reason string `json:"reason,omitempty" doc:"Shown as status_reason"`
		} `nameHint:"Pause"`
	}
	rotateInput struct {
		EndpointPath
		Body *struct {
			Algorithm      string   `json:"algorithm,omitempty" enum:"hmac-sha256,ed25519" doc:"Defaults to that of the newest secret"`
			OverlapSeconds *float64 `json:"overlap_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long the old secrets go on signing beside the new one. Defaults to 86400."`
			Secret         string   `json:"secret,omitempty" maxLength:"1024" doc:"Your own signing key, in the form in which the profile shows keys. Defaults to a new one."`
		} `nameHint:"Rotation"`
	}
	issuedSecretOutput struct{ Body IssuedSecret }
	testOutput         struct {
		Location string `header:"Location"`
		Body     Accepted
	}
)

func (s *server) endpointRoutes() {
	tags := []string{"Endpoints"}
	typed(s, mayManage, huma.Operation{
		OperationID: "create-endpoint", Method: http.MethodPost, Path: "/v1/endpoints", Tags: tags,
		Summary: "Register an endpoint", DefaultStatus: http.StatusCreated,
		Description: "The signing secret is in this answer and in no other, but for a repeat with the same Idempotency-Key. Creating an endpoint resolves no name and sends nothing.",
	}, s.createEndpoint)
	typed(s, mayRead, huma.Operation{
		OperationID: "list-endpoints", Method: http.MethodGet, Path: "/v1/endpoints", Tags: tags, Summary: "List endpoints",
	}, s.listEndpoints)
	typed(s, mayRead, huma.Operation{
		OperationID: "get-endpoint", Method: http.MethodGet, Path: "/v1/endpoints/{id}", Tags: tags, Summary: "Get an endpoint",
	}, s.getEndpoint)
	typed(s, mayManage, huma.Operation{
		OperationID: "update-endpoint", Method: http.MethodPatch, Path: "/v1/endpoints/{id}", Tags: tags, Summary: "Change an endpoint",
		Description: "A JSON merge patch (RFC 7396): absent members stay, null clears, objects merge member by member. auth is replaced as a whole. The profile cannot change.",
	}, s.updateEndpoint)
	typed(s, mayManage, huma.Operation{
		OperationID: "delete-endpoint", Method: http.MethodDelete, Path: "/v1/endpoints/{id}", Tags: tags,
		Summary: "Delete an endpoint", DefaultStatus: http.StatusNoContent, Description: "What was waiting for it is cancelled. It runs as the command endpoint.delete; the request is its own confirmation.",
	}, s.deleteEndpoint)
	typed(s, mayManage, huma.Operation{
		OperationID: "pause-endpoint", Method: http.MethodPost, Path: "/v1/endpoints/{id}/pause", Tags: tags, Summary: "Pause an endpoint",
		Description: "Its deliveries are held, none is dropped.",
	}, s.pauseEndpoint)
	typed(s, mayManage, huma.Operation{
		OperationID: "resume-endpoint", Method: http.MethodPost, Path: "/v1/endpoints/{id}/resume", Tags: tags, Summary: "Resume an endpoint",
		Description: "Also enables an endpoint that was disabled, and clears its failure counts, hold and circuit.",
	}, s.resumeEndpoint)
	typed(s, mayManage, huma.Operation{
		OperationID: "rotate-secret", Method: http.MethodPost, Path: "/v1/endpoints/{id}/rotate-secret", Tags: tags, Summary: "Rotate the signing secret",
		Description: "The new secret signs at once, beside the old ones until the overlap ends. Its value is in this answer and in no other, but for a repeat with the same Idempotency-Key. It runs as the command endpoint.rotate_secret.",
	}, s.rotateSecret)
	typed(s, mayRead, huma.Operation{
		OperationID: "list-secrets", Method: http.MethodGet, Path: "/v1/endpoints/{id}/secrets", Tags: tags, Summary: "List signing secrets, without their values",
	}, s.listSecrets)
	typed(s, mayManage, s.asks(huma.Operation{
		OperationID: "revoke-secret", Method: http.MethodPost, Path: "/v1/endpoints/{id}/secrets/{secret}/revoke", Tags: tags, Summary: "Revoke a signing secret",
		Description: "It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate first. It runs as the command endpoint.revoke_secret.",
	}, RevokedSecret{}), s.revokeSecret)
	typed(s, mayManage, huma.Operation{
		OperationID: "test-endpoint", Method: http.MethodPost, Path: "/v1/endpoints/{id}/test", Tags: tags, Summary: "Send a test event",
		DefaultStatus: http.StatusAccepted,
		Description:   "An event of the type " + testEventType + " goes to this endpoint alone, whatever its patterns. It is stored, tried again and recorded as any other.",
	}, s.testEndpoint)
	s.probeRoutes()
	typed(s, mayRead, huma.Operation{
		OperationID: "get-endpoint-stats", Method: http.MethodGet, Path: "/v1/endpoints/{id}/stats", Tags: tags, Summary: "Health, backlog and policy of an endpoint",
	}, s.endpointStats)
}

func (s *server) createEndpoint(ctx context.Context, c *management.Caller, in *createEndpointInput) (*issuedEndpointOutput, error) {
	e, secret, err := s.cfg.Management.Endpoints.Create(ctx, c.Tenant.ID, in.Body.spec())
	if err != nil {
		return nil, err
	}
	return &issuedEndpointOutput{
		Location: "/v1/endpoints/" + e.ID.String(),
		Body:     IssuedEndpoint{Endpoint: endpointView(e), Secret: issuedView(secret, s.cfg.Clock.Now())},
	}, nil
}

func (s *server) listEndpoints(ctx context.Context, c *management.Caller, in *listEndpointsInput) (*listOutput[Endpoint], error) {
	f := store.EndpointFilter{TenantID: c.Tenant.ID, Status: godwit.EndpointStatus(in.Status)}
	return endpoints.page(in.PageParams, func(p store.Page) ([]godwit.Endpoint, error) { return s.cfg.Management.Endpoints.List(ctx, f, p) })
}

func (s *server) getEndpoint(ctx context.Context, c *management.Caller, in *EndpointPath) (*endpointOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return shown(s.cfg.Management.Endpoints.Get(ctx, c.Tenant.ID, id))
}

func shown(e *godwit.Endpoint, err error) (*endpointOutput, error) {
	if err != nil {
		return nil, err
	}
	return &endpointOutput{Body: endpointView(e)}, nil
}

func (s *server) deleteEndpoint(ctx context.Context, c *management.Caller, in *EndpointPath) (*struct{}, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return nil, s.cfg.Commands.DeleteEndpoint(ctx, s.order(ctx, c), id)
}

func (s *server) pauseEndpoint(ctx context.Context, c *management.Caller, in *pauseInput) (*endpointOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return shown(s.cfg.Management.Endpoints.Pause(ctx, c.Tenant.ID, id, reason))
}

func (s *server) resumeEndpoint(ctx context.Context, c *management.Caller, in *EndpointPath) (*endpointOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	return shown(s.cfg.Management.Endpoints.Resume(ctx, c.Tenant.ID, id))
}

func (s *server) rotateSecret(ctx context.Context, c *management.Caller, in *rotateInput) (*issuedSecretOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	var rot management.Rotation
	if in.Body != nil {
		rot.Algorithm, rot.Secret = in.Body.Algorithm, in.Body.Secret
		if in.Body.OverlapSeconds != nil {
			overlap := time.Duration(*in.Body.OverlapSeconds * float64(time.Second))
			rot.Overlap = &overlap
		}
	}
	issued, redacted, err := s.cfg.Commands.RotateSecret(ctx, s.order(ctx, c), id, rot)
	if err != nil {
		return nil, err
	}
	out := &issuedSecretOutput{Body: issuedView(issued, s.cfg.Clock.Now())}
	out.Body.SecretRedacted = redacted
	return out, nil
}

type secretsOutput struct {
	Body struct {
		Items []Secret `json:"items"`
	} `nameHint:"SecretList"`
}

func (s *server) listSecrets(ctx context.Context, c *management.Caller, in *EndpointPath) (*secretsOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	secrets, err := s.cfg.Management.Secrets.List(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	out := &secretsOutput{}
	out.Body.Items = make([]Secret, 0, len(secrets))
	now := s.cfg.Clock.Now()
	for i := range secrets {
		out.Body.Items = append(out.Body.Items, secretView(&secrets[i], now))
	}
	return out, nil
}

func (s *server) testEndpoint(ctx context.Context, c *management.Caller, in *EndpointPath) (*testOutput, error) {
	id, err := s.endpointID(ctx, c, "id", in.ID)
	if err != nil {
		return nil, err
	}
	e, err := s.cfg.Management.Endpoints.Get(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	if e.Status != godwit.EndpointActive {
		return nil, problem.Conflict.With("the endpoint is %s, so a test would wait; resume it first", e.Status)
	}
	receipts, err := s.cfg.Engine.Submit(ctx, engine.Submission{
		TenantID: c.Tenant.ID, Principal: c.Key.Principal, Events: []engine.Publication{testPublication(id)},
	})
	if err != nil {
		return nil, err
	}
	if err := receipts[0].Err; err != nil {
		return nil, err
	}
	ev := &receipts[0].Events[0]
	return &testOutput{Location: eventLocation(ev.ID), Body: acceptedView(ev, receipts[0].Fanout[0])}, nil
}
