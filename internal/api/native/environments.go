package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// Environment is an environment as the API shows it.
type Environment struct {
	ID                    string                 `json:"id" example:"env_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	UID                   string                 `json:"uid" doc:"Chosen by the caller; names the environment wherever its id does" example:"staging"`
	Name                  string                 `json:"name"`
	Live                  bool                   `json:"live" doc:"Shown to receivers, as livemode of CYBERCUBE events. Fixed when the environment is created"`
	RequireIdempotencyKey bool                   `json:"require_idempotency_key" doc:"Of tenants that do not say"`
	EventValidation       string                 `json:"event_validation" enum:",known,strict" doc:"Of tenants that do not say"`
	AlertEmails           []string               `json:"alert_emails" doc:"Of tenants that do not say"`
	EndpointProfile       string                 `json:"endpoint_profile,omitempty" doc:"Profile of new endpoints that name none. Absent: eds"`
	EndpointPolicy        godwit.PolicyOverrides `json:"endpoint_policy,omitzero" doc:"Policy of new endpoints that give none"`
	EndpointSigning       string                 `json:"endpoint_signing" enum:"own,environment" doc:"Whose keys sign for new endpoints that say nothing and whose profile allows it"`
	Limits                Limits                 `json:"limits" doc:"Of tenants that do not say"`
	MakeTenants           bool                   `json:"make_tenants" doc:"A request that changes something and names a tenant by a uid that there is not creates the tenant"`
	RetentionEvents       int64                  `json:"retention_events_seconds" doc:"How long events, deliveries and attempts are kept once all deliveries of the event have ended. 0: as long as the server keeps them"`
	RetentionDeadLetters  int64                  `json:"retention_dead_letters_seconds" doc:"How long dead letters are kept. 0: as long as the server keeps them"`
	AllowedOrigins        []string               `json:"allowed_origins" doc:"Origins of pages that may show the portal in a frame"`
	Theme                 *godwit.Theme          `json:"theme,omitempty" doc:"Look of the portal"`
	CreatedAt             *time.Time             `json:"created_at,omitempty" doc:"Absent on the one that every server has"`
	UpdatedAt             *time.Time             `json:"updated_at,omitempty"`
	Version               int64                  `json:"version" doc:"Grows with every change"`
}

func environmentView(e *godwit.Environment) Environment {
	v := Environment{
		ID: e.ID.String(), UID: e.UID, Name: e.Name, Live: e.Live, RequireIdempotencyKey: e.RequireIdempotencyKey,
		EventValidation: string(e.Validation), AlertEmails: e.AlertEmails, EndpointProfile: e.Profile, EndpointPolicy: e.Policy, EndpointSigning: signingView(e.Signing),
		CreatedAt: timestamp(e.CreatedAt), UpdatedAt: timestamp(e.UpdatedAt), Version: e.Version, MakeTenants: e.MakeTenants,
		RetentionEvents: e.KeepEvents, RetentionDeadLetters: e.KeepDeadLetters, Limits: Limits(e.Limits),
		AllowedOrigins: e.Portal.AllowedOrigins, Theme: themeView(e),
	}
	if v.AlertEmails == nil {
		v.AlertEmails = []string{}
	}
	if v.AllowedOrigins == nil {
		v.AllowedOrigins = []string{}
	}
	return v
}

func signingView(s godwit.Signing) string {
	if s == godwit.SigningOwn {
		return "own"
	}
	return string(s)
}

// themeView returns nil for an environment without a theme.
func themeView(e *godwit.Environment) *godwit.Theme {
	if e.Portal.Theme == (godwit.Theme{}) {
		return nil
	}
	return &e.Portal.Theme
}

// EnvironmentPatch has the changes of an environment; absent members stay.
type EnvironmentPatch struct {
	UID                   *string                 `json:"uid,omitempty"`
	Name                  *string                 `json:"name,omitempty"`
	Live                  *bool                   `json:"live,omitempty" doc:"Cannot change"`
	RequireIdempotencyKey *bool                   `json:"require_idempotency_key,omitempty"`
	EventValidation       *string                 `json:"event_validation,omitempty" enum:",known,strict"`
	AlertEmails           *[]string               `json:"alert_emails,omitempty" maxItems:"10" doc:"Replaced as a whole"`
	EndpointProfile       *string                 `json:"endpoint_profile,omitempty" enum:",eds,ojs,cybercube,standard-webhooks"`
	EndpointPolicy        *godwit.PolicyOverrides `json:"endpoint_policy,omitempty" doc:"Replaced as a whole"`
	EndpointSigning       *string                 `json:"endpoint_signing,omitempty" enum:"own,environment"`
	MakeTenants           *bool                   `json:"make_tenants,omitempty"`
	RetentionEvents       *int64                  `json:"retention_events_seconds,omitempty" minimum:"0"`
	RetentionDeadLetters  *int64                  `json:"retention_dead_letters_seconds,omitempty" minimum:"0"`
	Limits                *Limits                 `json:"limits,omitempty" doc:"Replaced as a whole"`
	AllowedOrigins        *[]string               `json:"allowed_origins,omitempty" doc:"Replaced as a whole"`
	Theme                 *godwit.Theme           `json:"theme,omitempty" doc:"Replaced as a whole"`
}

func (b *EnvironmentPatch) apply(spec *management.EnvironmentSpec) {
	set(&spec.UID, b.UID)
	set(&spec.Name, b.Name)
	set(&spec.Live, b.Live)
	set(&spec.RequireIdempotencyKey, b.RequireIdempotencyKey)
	set((*string)(&spec.Validation), b.EventValidation)
	set(&spec.AlertEmails, b.AlertEmails)
	set(&spec.Profile, b.EndpointProfile)
	set(&spec.Policy, b.EndpointPolicy)
	set(&spec.MakeTenants, b.MakeTenants)
	if b.EndpointSigning != nil {
		spec.Signing = management.ParseSigning(*b.EndpointSigning)
	}
	set(&spec.KeepEvents, b.RetentionEvents)
	set(&spec.KeepDeadLetters, b.RetentionDeadLetters)
	set((*Limits)(&spec.Limits), b.Limits)
	set(&spec.Portal.AllowedOrigins, b.AllowedOrigins)
	set(&spec.Portal.Theme, b.Theme)
}

// EnvironmentDraft has the settings of an environment.
type EnvironmentDraft struct {
	Name                  string                  `json:"name"`
	Live                  bool                    `json:"live,omitempty"`
	RequireIdempotencyKey bool                    `json:"require_idempotency_key,omitempty"`
	EventValidation       string                  `json:"event_validation,omitempty" enum:",known,strict"`
	AlertEmails           []string                `json:"alert_emails,omitempty" maxItems:"10"`
	EndpointProfile       string                  `json:"endpoint_profile,omitempty" enum:",eds,ojs,cybercube,standard-webhooks"`
	EndpointPolicy        *godwit.PolicyOverrides `json:"endpoint_policy,omitempty"`
	EndpointSigning       string                  `json:"endpoint_signing,omitempty" enum:"own,environment" doc:"Whose keys sign for new endpoints that say nothing: their own secrets, or the environment's keys if the profile is eds. Defaults to own."`
	MakeTenants           bool                    `json:"make_tenants,omitempty"`
	RetentionEvents       int64                   `json:"retention_events_seconds,omitempty" minimum:"0" doc:"At least 3600 and at most the server's retention. 0: the server's"`
	RetentionDeadLetters  int64                   `json:"retention_dead_letters_seconds,omitempty" minimum:"0" doc:"At least 3600 and at most the server's retention. 0: the server's"`
	Limits                *Limits                 `json:"limits,omitempty" doc:"Of tenants that do not say. Absent: the server's"`
	AllowedOrigins        []string                `json:"allowed_origins,omitempty" doc:"Origins of pages that may show the portal in a frame, as in https://app.example.com. Absent: none may"`
	Theme                 *godwit.Theme           `json:"theme,omitempty" doc:"Look of the portal"`
}

func (b *EnvironmentDraft) spec(uid string) management.EnvironmentSpec {
	var spec management.EnvironmentSpec
	(&EnvironmentPatch{
		UID: &uid, Name: &b.Name, Live: &b.Live, RequireIdempotencyKey: &b.RequireIdempotencyKey, EventValidation: &b.EventValidation,
		EndpointProfile: &b.EndpointProfile, EndpointPolicy: b.EndpointPolicy, MakeTenants: &b.MakeTenants, EndpointSigning: &b.EndpointSigning,
		RetentionEvents: &b.RetentionEvents, RetentionDeadLetters: &b.RetentionDeadLetters, Limits: b.Limits, Theme: b.Theme,
	}).apply(&spec)
	if len(b.AlertEmails) > 0 {
		spec.AlertEmails = b.AlertEmails
	}
	if len(b.AllowedOrigins) > 0 {
		spec.Portal.AllowedOrigins = b.AllowedOrigins
	}
	return spec
}

// EnvironmentPath names an environment.
type EnvironmentPath struct {
	ID string `path:"id" doc:"Id or uid of the environment"`
}

type (
	environmentInput struct {
		Body struct {
			UID string `json:"uid"`
			EnvironmentDraft
		} `nameHint:"NewEnvironment"`
	}
	putEnvironmentInput struct {
		EnvironmentPath
		MatchParams
		Body struct {
			UID string `json:"uid,omitempty" doc:"The one in the path"`
			EnvironmentDraft
		} `nameHint:"EnvironmentDocument"`
	}
	environmentPatch struct {
		EnvironmentPath
		VersionParams
		Body EnvironmentPatch
	}
	deleteEnvironmentInput struct {
		EnvironmentPath
		VersionParams
	}
	environmentOutput struct {
		Location string `header:"Location"`
		ETag     string `header:"ETag"`
		Body     Environment
	}
)

// Descriptions of the operations on environments.
var (
	createEnvironmentDoc = huma.Operation{
		OperationID: "create-environment", Summary: "Create an environment", DefaultStatus: http.StatusCreated,
		Description: "An environment owns tenants and the event types that they share. Its keys act for any of its tenants.",
	}
	listEnvironmentsDoc = huma.Operation{
		OperationID: "list-environments", Summary: "List environments",
		Description: "A key of an environment sees its own.",
	}
	getEnvironmentDoc = huma.Operation{
		OperationID: "get-environment", Summary: "Get an environment",
	}
	updateEnvironmentDoc = huma.Operation{
		OperationID: "update-environment", Summary: "Change an environment",
		Description: "Tenants that inherit a setting have the new one at once on this node, and within half a second on others.",
	}
	putEnvironmentDoc = huma.Operation{
		OperationID: "put-environment", Summary: "Create or replace an environment",
		Description: "With a uid of your choice in the path. All settings are replaced; those that are absent get their defaults. live cannot change.",
	}
	deleteEnvironmentDoc = huma.Operation{
		OperationID: "delete-environment", Summary: "Delete an environment", DefaultStatus: http.StatusNoContent,
		Description: "With its shared event types and its keys. Its tenants must have been deleted; the one that every server has cannot be.",
	}
)

// environmentHandlers serve the operations on environments.
type environmentHandlers struct {
	environments interface {
		Create(ctx context.Context, spec management.EnvironmentSpec) (*godwit.Environment, error)
		Get(ctx context.Context, named string) (*godwit.Environment, error)
		List(ctx context.Context, p store.Page) ([]godwit.Environment, error)
		Put(ctx context.Context, named string, spec management.EnvironmentSpec, m godwit.Match) (*godwit.Environment, bool, error)
		Update(ctx context.Context, named string, m godwit.Match, edit func(*management.EnvironmentSpec) error) (*godwit.Environment, error)
		Delete(ctx context.Context, named string, m godwit.Match) error
	}
}

func (h *environmentHandlers) create(ctx context.Context, _ *management.Caller, in *environmentInput) (*environmentOutput, error) {
	e, err := h.environments.Create(ctx, in.Body.spec(in.Body.UID))
	if err != nil {
		return nil, err
	}
	return &environmentOutput{Location: "/v1/environments/" + e.ID.String(), ETag: etag(e.Version), Body: environmentView(e)}, nil
}

func (h *environmentHandlers) list(ctx context.Context, c *management.Caller, in *PageParams) (*listOutput[Environment], error) {
	return environments.page(*in, func(p store.Page) ([]godwit.Environment, error) {
		if c.Key.Has(godwit.ScopeAdmin) {
			return h.environments.List(ctx, p)
		}
		own, err := h.environments.Get(ctx, c.Tenant.EnvironmentID.String())
		if err != nil || p.After != [16]byte{} {
			return nil, err
		}
		return []godwit.Environment{*own}, nil
	})
}

func (h *environmentHandlers) get(ctx context.Context, c *management.Caller, in *EnvironmentPath) (*environmentOutput, error) {
	e, err := h.environments.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if e.ID != c.Tenant.EnvironmentID && !c.Key.Has(godwit.ScopeAdmin) {
		return nil, store.ErrNotFound
	}
	return &environmentOutput{ETag: etag(e.Version), Body: environmentView(e)}, nil
}

func (h *environmentHandlers) update(ctx context.Context, _ *management.Caller, in *environmentPatch) (*environmentOutput, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	e, err := h.environments.Update(ctx, in.ID, m, func(spec *management.EnvironmentSpec) error { in.Body.apply(spec); return nil })
	if err != nil {
		return nil, err
	}
	return &environmentOutput{ETag: etag(e.Version), Body: environmentView(e)}, nil
}

func (h *environmentHandlers) put(ctx context.Context, _ *management.Caller, in *putEnvironmentInput) (*putOutput[Environment], error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	if err := sameUID(in.Body.UID, in.ID); err != nil {
		return nil, err
	}
	e, made, err := h.environments.Put(ctx, in.ID, in.Body.spec(in.Body.UID), m)
	if err != nil {
		return nil, err
	}
	return written(made, e.Version, "/v1/environments/"+e.ID.String(), environmentView(e)), nil
}

func (h *environmentHandlers) delete(ctx context.Context, _ *management.Caller, in *deleteEnvironmentInput) (*struct{}, error) {
	m, err := in.match()
	if err != nil {
		return nil, err
	}
	return nil, h.environments.Delete(ctx, in.ID, m)
}
