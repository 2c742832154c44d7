package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/internal/store"
)

// SourcePath names a source.
type SourcePath struct {
	ID string `path:"id" doc:"Id of the source"`
}

func (p SourcePath) parse() (godwit.SourceID, error) {
	id, err := godwit.ParseSourceID(p.ID)
	if err != nil {
		return id, badID("id", "src_…")
	}
	return id, nil
}

// SourcePatch is a merge patch of a source. Its members give the types for the OpenAPI document. The patch itself is applied
// from the raw document.
type SourcePatch struct {
	Name        string          `json:"name,omitempty" maxLength:"64"`
	Description *string         `json:"description,omitempty" nullable:"true"`
	Scheme      string          `json:"scheme,omitempty" doc:"Cannot change"`
	Settings    map[string]any  `json:"settings,omitempty" nullable:"true"`
	Adopt       *bool           `json:"adopt,omitempty" nullable:"true"`
	Mode        *string         `json:"mode,omitempty" nullable:"true" enum:"store-and-forward,pass-through"`
	EventType   map[string]any  `json:"event_type,omitempty" nullable:"true"`
	KeepHeaders nullableStrings `json:"keep_headers,omitempty"`

	document []byte
}

// UnmarshalJSON keeps the raw document; huma has checked it against the members above.
func (p *SourcePatch) UnmarshalJSON(b []byte) error {
	p.document = bytes.Clone(b)
	return nil
}

type (
	createSourceInput  struct{ Body NewSource }
	issuedSourceOutput struct {
		Location string `header:"Location"`
		Body     IssuedSource
	}
	sourceOutput     struct{ Body Source }
	patchSourceInput struct {
		SourcePath
		Body SourcePatch
	}
	rotateSourceInput struct {
		SourcePath
		Body *struct {
			Credential     *NewCredential `json:"credential,omitempty" doc:"The new one. Absent: one is made, where the scheme lets us choose it."`
			OverlapSeconds *float64       `json:"overlap_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long the old ones are good beside the new one. Defaults to 86400."`
		} `nameHint:"SourceRotation"`
	}
	acknowledgeInput struct {
		SourcePath
		Body struct {
			Version string `json:"version" maxLength:"64" doc:"Of the service description that was read, at /.well-known/webhook-service"`
			By      string `json:"by" maxLength:"200" doc:"Who agreed to it, on the upstream's side"`
		} `nameHint:"NewAcknowledgment"`
	}
	acknowledgmentOutput struct{ Body Acknowledgment }
	sourceListInput      struct {
		SourcePath
		PageParams
	}
)

func (s *server) sourceRoutes() {
	tags := []string{"Sources"}
	typed(s, mayManage, huma.Operation{
		OperationID: "create-source", Method: http.MethodPost, Path: "/v1/sources", Tags: tags, Summary: "Register an upstream",
		DefaultStatus: http.StatusCreated,
		Description:   "Its deliveries to path go on to the endpoints. A secret that is made here is in this answer and in no other, but for a repeat with the same Idempotency-Key.",
	}, s.createSource)
	typed(s, mayRead, huma.Operation{
		OperationID: "list-sources", Method: http.MethodGet, Path: "/v1/sources", Tags: tags, Summary: "List sources",
	}, func(ctx context.Context, c *management.Caller, in *PageParams) (*listOutput[Source], error) {
		return sources.page(*in, func(p store.Page) ([]godwit.Source, error) { return s.cfg.Sources.List(ctx, c.Tenant.ID, p) })
	})
	typed(s, mayRead, huma.Operation{
		OperationID: "get-source", Method: http.MethodGet, Path: "/v1/sources/{id}", Tags: tags, Summary: "Get a source, with the mode in force",
	}, func(ctx context.Context, c *management.Caller, in *SourcePath) (*sourceOutput, error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		src, err := s.cfg.Sources.Get(ctx, c.Tenant.ID, id)
		return s.shownSource(ctx, c, src, err)
	})
	typed(s, mayManage, huma.Operation{
		OperationID: "update-source", Method: http.MethodPatch, Path: "/v1/sources/{id}", Tags: tags, Summary: "Change a source",
		Description: "A JSON merge patch (RFC 7396). The scheme cannot change; credentials change by rotate.",
	}, s.updateSource)
	typed(s, mayManage, huma.Operation{
		OperationID: "delete-source", Method: http.MethodDelete, Path: "/v1/sources/{id}", Tags: tags, Summary: "Delete a source",
		DefaultStatus: http.StatusNoContent, Description: "Upstreams find nothing there from now on. What was taken in is delivered.",
	}, func(ctx context.Context, c *management.Caller, in *SourcePath) (*struct{}, error) {
		_, err := s.setSourceStatus(ctx, c, in, godwit.SourceDeleted)
		return nil, err
	})
	typed(s, mayManage, huma.Operation{
		OperationID: "pause-source", Method: http.MethodPost, Path: "/v1/sources/{id}/pause", Tags: tags, Summary: "Pause a source",
		Description: "Upstreams are told to come again later (503).",
	}, func(ctx context.Context, c *management.Caller, in *SourcePath) (*sourceOutput, error) {
		return s.setSourceStatus(ctx, c, in, godwit.SourcePaused)
	})
	typed(s, mayManage, huma.Operation{
		OperationID: "resume-source", Method: http.MethodPost, Path: "/v1/sources/{id}/resume", Tags: tags, Summary: "Resume a source",
	}, func(ctx context.Context, c *management.Caller, in *SourcePath) (*sourceOutput, error) {
		return s.setSourceStatus(ctx, c, in, godwit.SourceActive)
	})
	typed(s, mayManage, huma.Operation{
		OperationID: "rotate-source-credential", Method: http.MethodPost, Path: "/v1/sources/{id}/rotate", Tags: tags, Summary: "Add a credential and let the others run out",
		Description: "The new one is good at once. A secret that is made here is in this answer and in no other, but for a repeat with the same Idempotency-Key.",
	}, s.rotateSource)
	typed(s, mayManage, huma.Operation{
		OperationID: "acknowledge-description", Method: http.MethodPost, Path: "/v1/sources/{id}/acknowledgments", Tags: tags,
		Summary: "Record that the upstream acknowledged the service description", DefaultStatus: http.StatusCreated,
		Description: "This is what lets deliveries be answered before they are delivered on (store-and-forward). It holds until a description promises less.",
	}, s.acknowledge)
	typed(s, mayRead, huma.Operation{
		OperationID: "list-acknowledgments", Method: http.MethodGet, Path: "/v1/sources/{id}/acknowledgments", Tags: tags, Summary: "List acknowledgments of the service description",
	}, func(ctx context.Context, c *management.Caller, in *sourceListInput) (*listOutput[Acknowledgment], error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		return acknowledgments.page(in.PageParams, func(p store.Page) ([]godwit.Acknowledgment, error) {
			return s.cfg.Sources.Acknowledgments(ctx, c.Tenant.ID, id, p)
		})
	})
	typed(s, mayRead, huma.Operation{
		OperationID: "list-rejections", Method: http.MethodGet, Path: "/v1/sources/{id}/rejections", Tags: tags, Summary: "List what a source did not take in",
		Description: fmt.Sprintf("The newest %d, for some days. Without payloads, credentials and header values.", godwit.MaxRejections),
	}, func(ctx context.Context, c *management.Caller, in *sourceListInput) (*listOutput[Rejection], error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		return rejections.page(in.PageParams, func(p store.Page) ([]godwit.Rejection, error) {
			return s.cfg.Sources.Rejections(ctx, c.Tenant.ID, id, p)
		})
	})
}

// shownSource renders a source with the mode that is in force.
func (s *server) shownSource(ctx context.Context, c *management.Caller, src *godwit.Source, err error) (*sourceOutput, error) {
	if err != nil {
		return nil, err
	}
	v := sourceView(src)
	if c.Tenant.Code != "" {
		v.PublicPath = "/in/" + profile.FormatCode(profile.CodeTenant, c.Tenant.Code) + "/" + src.Name
	}
	mode, held, err := s.cfg.Sources.ModeOf(ctx, src)
	if err != nil {
		return nil, err
	}
	v.ModeInForce = string(mode)
	if held != nil {
		a := acknowledgmentView(held)
		v.Acknowledged = &a
	}
	return &sourceOutput{Body: v}, nil
}

func (s *server) createSource(ctx context.Context, c *management.Caller, in *createSourceInput) (*issuedSourceOutput, error) {
	src, issued, err := s.cfg.Sources.Create(ctx, c.Tenant.ID, in.Body.spec(), s.permit(ctx, c))
	shown, err := s.shownSource(ctx, c, src, err)
	if err != nil {
		return nil, err
	}
	return &issuedSourceOutput{Location: "/v1/sources/" + src.ID.String(), Body: IssuedSource{Source: shown.Body, Issued: issuedCredential(issued)}}, nil
}

func (s *server) updateSource(ctx context.Context, c *management.Caller, in *patchSourceInput) (*sourceOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	src, err := s.cfg.Sources.Update(ctx, c.Tenant.ID, id, func(spec *source.Spec) error { return patchSource(spec, in.Body.document) }, s.permit(ctx, c))
	return s.shownSource(ctx, c, src, err)
}

// permit returns a check whether the caller may let a source submit commands for an API key.
func (s *server) permit(ctx context.Context, c *management.Caller) source.Permit {
	return func(before, after *godwit.Source) error { return s.cfg.Commands.PermitCommands(ctx, c, before, after) }
}

// patchSource applies a merge patch to the source's specification.
func patchSource(spec *source.Spec, patch []byte) error {
	current, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode source: %w", err)
	}
	document, err := decodeObject(current)
	if err != nil {
		return fmt.Errorf("decode source: %w", err)
	}
	changes, err := decodeObject(patch)
	if err != nil {
		return problem.MalformedJSON.In("body", "must be a JSON object")
	}
	merged, err := json.Marshal(mergePatch(document, changes))
	if err != nil {
		return fmt.Errorf("encode source: %w", err)
	}
	var next source.Spec
	dec := json.NewDecoder(bytes.NewReader(merged))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&next); err != nil {
		var typeErr *json.UnmarshalTypeError
		if errors.As(err, &typeErr) {
			return problem.InvalidRequest.In(typeErr.Field, "has the wrong type")
		}
		return problem.InvalidRequest.In("body", "does not describe a source")
	}
	if next.Mode == "" {
		next.Mode = godwit.StoreAndForward
	}
	*spec = next
	return nil
}

func (s *server) setSourceStatus(ctx context.Context, c *management.Caller, in *SourcePath, status godwit.SourceStatus) (*sourceOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	src, err := s.cfg.Sources.SetStatus(ctx, c.Tenant.ID, id, status)
	return s.shownSource(ctx, c, src, err)
}

func (s *server) rotateSource(ctx context.Context, c *management.Caller, in *rotateSourceInput) (*issuedSourceOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	overlap := source.DefaultOverlap
	var given *godwit.Credential
	if in.Body != nil {
		if in.Body.OverlapSeconds != nil {
			overlap = time.Duration(*in.Body.OverlapSeconds * float64(time.Second))
		}
		if in.Body.Credential != nil {
			credential := in.Body.Credential.credential()
			given = &credential
		}
	}
	src, issued, err := s.cfg.Sources.Rotate(ctx, c.Tenant.ID, id, given, overlap, s.permit(ctx, c))
	shown, err := s.shownSource(ctx, c, src, err)
	if err != nil {
		return nil, err
	}
	return &issuedSourceOutput{Location: "/v1/sources/" + src.ID.String(), Body: IssuedSource{Source: shown.Body, Issued: issuedCredential(issued)}}, nil
}

func (s *server) acknowledge(ctx context.Context, c *management.Caller, in *acknowledgeInput) (*acknowledgmentOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	a, err := s.cfg.Sources.Acknowledge(ctx, c.Tenant.ID, id, in.Body.Version, in.Body.By, c.Actor())
	if err != nil {
		return nil, err
	}
	return &acknowledgmentOutput{Body: acknowledgmentView(a)}, nil
}
