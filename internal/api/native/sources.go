package native

import (
	"context"
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
	ID string `path:"id" doc:"Id of the source, or its name"`
}

// A sourceFinder reads the ids and names of sources in requests.
type sourceFinder struct {
	sources interface {
		Find(ctx context.Context, t *godwit.Tenant, named string) (*godwit.Source, error)
	}
}

// id returns the id that a path names. Only a name needs a lookup; id does not check that any other source exists.
func (f sourceFinder) id(ctx context.Context, c *management.Caller, p SourcePath) (godwit.SourceID, error) {
	if id, err := godwit.ParseSourceID(p.ID); err == nil {
		return id, nil
	}
	src, err := f.sources.Find(ctx, c.Tenant, p.ID)
	if err != nil {
		return godwit.SourceID{}, err
	}
	return src.ID, nil
}

type (
	createSourceInput  struct{ Body NewSource }
	issuedSourceOutput struct {
		Location string `header:"Location"`
		ETag     string `header:"ETag"`
		Body     IssuedSource
	}
	sourceOutput struct {
		ETag string `header:"ETag"`
		Body Source
	}
	putSourceInput struct {
		SourcePath
		MatchParams
		Body SourceDraft
	}
	patchSourceInput struct {
		SourcePath
		VersionParams
		Body SourcePatch
	}
	rotateSourceInput struct {
		SourcePath
		Body *struct {
			Credential     *NewCredential `json:"credential,omitempty" doc:"The new one. Absent: one is made, where the scheme lets us choose it."`
			OverlapSeconds *float64       `json:"overlap_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long the old ones are good beside the new one. Defaults to 86400."`
		} `nameHint:"SourceRotation"`
	}
)

// Descriptions of the operations on sources.
var (
	createSourceDoc = huma.Operation{
		OperationID: "create-source", Summary: "Register an upstream",
		DefaultStatus: http.StatusCreated,
		Description:   "Its deliveries to path go on to the endpoints. A secret that is made here is in this answer and in no other, but for a repeat with the same Idempotency-Key.",
	}
	listSourcesDoc = huma.Operation{
		OperationID: "list-sources", Summary: "List sources",
		Description: "A request for an environment lists those of all its tenants.",
	}
	getSourceDoc = huma.Operation{
		OperationID: "get-source", Summary: "Get a source, with the mode in force",
	}
	updateSourceDoc = huma.Operation{
		OperationID: "update-source", Summary: "Change a source",
		Description: "A JSON merge patch (RFC 7396). The scheme cannot change; credentials change by rotate.",
	}
	putSourceDoc = huma.Operation{
		OperationID: "put-source", Summary: "Create or replace a source",
		Description: "With the name of the source in the path. All settings are replaced; those that are absent get their defaults. credentials have an effect only when the source is created; a secret that is made then is in that answer and in no other. A source that is as the request says stays as it is, with its version.",
	}
	deleteSourceDoc = huma.Operation{
		OperationID: "delete-source", Summary: "Delete a source",
		DefaultStatus: http.StatusNoContent, Description: "Upstreams find nothing there from now on. What was taken in is delivered.",
	}
	pauseSourceDoc = huma.Operation{
		OperationID: "pause-source", Summary: "Pause a source",
		Description: "Upstreams are told to come again later (503).",
	}
	resumeSourceDoc = huma.Operation{
		OperationID: "resume-source", Summary: "Resume a source",
	}
	rotateSourceCredentialDoc = huma.Operation{
		OperationID: "rotate-source-credential", Summary: "Add a credential and let the others run out",
		Description: "The new one is good at once. A secret that is made here is in this answer and in no other, but for a repeat with the same Idempotency-Key.",
	}
)

// sourceHandlers serve the operations on sources and their credentials.
type sourceHandlers struct {
	sources interface {
		Create(ctx context.Context, tenant godwit.TenantID, spec source.Spec, permit source.Permit) (*godwit.Source, *source.Issued, error)
		Get(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error)
		List(ctx context.Context, f store.SourceFilter, p store.Page) ([]godwit.Source, error)
		Put(ctx context.Context, t *godwit.Tenant, named string, spec source.Spec, m godwit.Match, permit source.Permit) (*godwit.Source, *source.Issued, bool, error)
		Update(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, m godwit.Match, edit func(*source.Spec) error, permit source.Permit) (*godwit.Source, error)
		Delete(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, m godwit.Match) (*godwit.Source, error)
		SetStatus(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, status godwit.SourceStatus) (*godwit.Source, error)
		Rotate(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, given *godwit.Credential, overlap time.Duration, permit source.Permit) (*godwit.Source, *source.Issued, error)
		ModeOf(ctx context.Context, t *godwit.Tenant, s *godwit.Source) (godwit.RelayMode, *godwit.Acknowledgment, error)
	}
	finder   sourceFinder
	commands interface {
		PermitCommands(ctx context.Context, c *management.Caller, before, after *godwit.Source) error
	}
}

func (h *sourceHandlers) list(ctx context.Context, c *management.Caller, in *PageParams) (*listOutput[Source], error) {
	f := store.SourceFilter{TenantID: c.Tenant.ID}
	if c.ForEnvironment() {
		f.Environment = c.Tenant.EnvironmentID
	}
	return sources.page(*in, func(p store.Page) ([]godwit.Source, error) { return h.sources.List(ctx, f, p) })
}

func (h *sourceHandlers) get(ctx context.Context, c *management.Caller, in *SourcePath) (*sourceOutput, error) {
	id, err := h.finder.id(ctx, c, *in)
	if err != nil {
		return nil, err
	}
	src, err := h.sources.Get(ctx, c.Tenant.ID, id)
	return h.shown(ctx, c, src, err)
}

type deleteSourceInput struct {
	SourcePath
	VersionParams
}

func (h *sourceHandlers) delete(ctx context.Context, c *management.Caller, in *deleteSourceInput) (*struct{}, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	id, err := h.finder.id(ctx, c, in.SourcePath)
	if err != nil {
		return nil, err
	}
	_, err = h.sources.Delete(ctx, c.Tenant.ID, id, m)
	return nil, err
}

func (h *sourceHandlers) pause(ctx context.Context, c *management.Caller, in *SourcePath) (*sourceOutput, error) {
	return h.setStatus(ctx, c, in, godwit.SourcePaused)
}

func (h *sourceHandlers) resume(ctx context.Context, c *management.Caller, in *SourcePath) (*sourceOutput, error) {
	return h.setStatus(ctx, c, in, godwit.SourceActive)
}

// shown renders a source with the mode that is in force.
func (h *sourceHandlers) shown(ctx context.Context, c *management.Caller, src *godwit.Source, err error) (*sourceOutput, error) {
	if err != nil {
		return nil, err
	}
	v := sourceView(src)
	if c.Tenant.Code != "" {
		v.PublicPath = "/in/" + profile.FormatCode(profile.CodeTenant, c.Tenant.Code) + "/" + src.Name
	}
	mode, held, err := h.sources.ModeOf(ctx, c.Tenant, src)
	if err != nil {
		return nil, err
	}
	v.ModeInForce = string(mode)
	if held != nil {
		a := acknowledgmentView(held)
		v.Acknowledged = &a
	}
	return &sourceOutput{ETag: etag(src.Version), Body: v}, nil
}

func (h *sourceHandlers) create(ctx context.Context, c *management.Caller, in *createSourceInput) (*issuedSourceOutput, error) {
	src, issued, err := h.sources.Create(ctx, c.Tenant.ID, in.Body.spec(), h.permit(ctx, c))
	shown, err := h.shown(ctx, c, src, err)
	if err != nil {
		return nil, err
	}
	return &issuedSourceOutput{Location: "/v1/sources/" + src.ID.String(), ETag: shown.ETag, Body: IssuedSource{Source: shown.Body, Issued: issuedCredential(issued)}}, nil
}

func (h *sourceHandlers) update(ctx context.Context, c *management.Caller, in *patchSourceInput) (*sourceOutput, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	id, err := h.finder.id(ctx, c, in.SourcePath)
	if err != nil {
		return nil, err
	}
	src, err := h.sources.Update(ctx, c.Tenant.ID, id, m, func(spec *source.Spec) error { return patchSource(spec, in.Body.document) }, h.permit(ctx, c))
	return h.shown(ctx, c, src, err)
}

func (h *sourceHandlers) put(ctx context.Context, c *management.Caller, in *putSourceInput) (*putOutput[IssuedSource], error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	if _, isName := godwit.ParseSourceID(in.ID); in.Body.Name != "" && in.Body.Name != in.ID && isName != nil {
		return nil, problem.InvalidRequest.In("name", "must be the one in the path, or absent")
	}
	draft := NewSource(in.Body)
	src, issued, made, err := h.sources.Put(ctx, c.Tenant, in.ID, draft.spec(), m, h.permit(ctx, c))
	shown, err := h.shown(ctx, c, src, err)
	if err != nil {
		return nil, err
	}
	return written(made, src.Version, "/v1/sources/"+src.ID.String(), IssuedSource{Source: shown.Body, Issued: issuedCredential(issued)}), nil
}

// permit returns a check whether the caller may let a source submit commands for an API key.
func (h *sourceHandlers) permit(ctx context.Context, c *management.Caller) source.Permit {
	return func(before, after *godwit.Source) error { return h.commands.PermitCommands(ctx, c, before, after) }
}

func (h *sourceHandlers) setStatus(ctx context.Context, c *management.Caller, in *SourcePath, status godwit.SourceStatus) (*sourceOutput, error) {
	id, err := h.finder.id(ctx, c, *in)
	if err != nil {
		return nil, err
	}
	src, err := h.sources.SetStatus(ctx, c.Tenant.ID, id, status)
	return h.shown(ctx, c, src, err)
}

func (h *sourceHandlers) rotate(ctx context.Context, c *management.Caller, in *rotateSourceInput) (*issuedSourceOutput, error) {
	id, err := h.finder.id(ctx, c, in.SourcePath)
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
	src, issued, err := h.sources.Rotate(ctx, c.Tenant.ID, id, given, overlap, h.permit(ctx, c))
	shown, err := h.shown(ctx, c, src, err)
	if err != nil {
		return nil, err
	}
	return &issuedSourceOutput{Location: "/v1/sources/" + src.ID.String(), ETag: shown.ETag, Body: IssuedSource{Source: shown.Body, Issued: issuedCredential(issued)}}, nil
}
