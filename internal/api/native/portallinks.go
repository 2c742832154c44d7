package native

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// PortalLink opens the portal of a tenant once.
type PortalLink struct {
	ID               string     `json:"id" example:"lnk_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	TenantID         string     `json:"tenant_id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Name             string     `json:"name,omitempty"`
	Capabilities     []string   `json:"capabilities" doc:"view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types"`
	Theme            string     `json:"theme,omitempty" enum:"light,dark,system"`
	ReturnURL        string     `json:"return_url,omitempty"`
	StartPage        string     `json:"start_page,omitempty"`
	HideNavigation   bool       `json:"hide_navigation,omitempty"`
	SessionExpiresIn int64      `json:"session_expires_in" doc:"Seconds that its session lives at most"`
	KeyID            string     `json:"key_id,omitempty" doc:"The API key that made it" example:"key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	CreatedAt        time.Time  `json:"created_at"`
	ExpiresAt        time.Time  `json:"expires_at"`
	UsedAt           *time.Time `json:"used_at,omitempty"`
	SessionID        string     `json:"session_id,omitempty" doc:"The session that was made from it" example:"ses_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
}

// IssuedPortalLink is a new link with its URL.
type IssuedPortalLink struct {
	PortalLink
	URL string `json:"url" doc:"Give it to the tenant's browser. It holds the code, which is shown this once and kept as a hash alone."`
}

func portalLinkView(l *godwit.SignInLink) PortalLink {
	v := PortalLink{
		ID: l.ID.String(), TenantID: l.TenantID.String(), Name: l.Name, Capabilities: []string{}, Theme: l.View.Theme, ReturnURL: l.View.ReturnURL,
		StartPage: l.View.StartPage, HideNavigation: l.View.HideNavigation, SessionExpiresIn: int64(l.SessionLife.Seconds()),
		CreatedAt: l.CreatedAt.UTC(), ExpiresAt: l.ExpiresAt.UTC(), UsedAt: timestamp(l.UsedAt),
	}
	for _, c := range l.Capabilities {
		v.Capabilities = append(v.Capabilities, string(c))
	}
	if !l.KeyID.IsZero() {
		v.KeyID = l.KeyID.String()
	}
	if !l.SessionID.IsZero() {
		v.SessionID = l.SessionID.String()
	}
	return v
}

type portalLinkInput struct {
	Body struct {
		Tenant           string   `json:"tenant,omitempty" maxLength:"100" doc:"Id or uid of the tenant; absent: the one that the request is made for"`
		Name             string   `json:"name,omitempty" doc:"For lists"`
		Capabilities     []string `json:"capabilities" enum:"view_endpoints,manage_endpoints,secrets,send_tests,view_payloads,replay,event_types" doc:"What the session may do; none implies another"`
		ExpiresIn        *int64   `json:"expires_in,omitempty" doc:"Seconds within which the link can be used, 10 to 604800. Defaults to 600"`
		SessionExpiresIn *int64   `json:"session_expires_in,omitempty" doc:"Seconds that the session lives at most, 60 to 2592000. Defaults to 86400"`
		Theme            string   `json:"theme,omitempty" enum:"light,dark,system"`
		ReturnURL        string   `json:"return_url,omitempty" doc:"Where the portal leads back to"`
		StartPage        string   `json:"start_page,omitempty" doc:"Page of the portal that is shown first" example:"endpoints"`
		HideNavigation   bool     `json:"hide_navigation,omitempty" doc:"For a portal in a frame of a page with navigation of its own"`
	} `nameHint:"NewPortalLink"`
}

// PortalLinkPath names a portal link.
type PortalLinkPath struct {
	ID string `path:"id" doc:"Id of the link"`
}

func (p PortalLinkPath) parse() (godwit.LinkID, error) {
	id, err := godwit.ParseLinkID(p.ID)
	if err != nil {
		return id, badID("id", "lnk_…")
	}
	return id, nil
}

type issuedPortalLinkOutput struct {
	Location string `header:"Location"`
	Body     IssuedPortalLink
}

type portalLinkOutput struct{ Body PortalLink }

// Descriptions of the operations on portal links.
var (
	createPortalLinkDoc = huma.Operation{
		OperationID: "create-portal-link", Summary: "Create a portal link", DefaultStatus: http.StatusCreated,
		Description: "A URL that opens the portal of a tenant, once. The session that it makes can do what the capabilities say, for this tenant, and nothing else.",
	}
	listPortalLinksDoc = huma.Operation{
		OperationID: "list-portal-links", Summary: "List portal links", Description: "Links are listed until a week after they have expired.",
	}
	getPortalLinkDoc    = huma.Operation{OperationID: "get-portal-link", Summary: "Get a portal link"}
	revokePortalLinkDoc = huma.Operation{
		OperationID: "revoke-portal-link", Summary: "Revoke a portal link", DefaultStatus: http.StatusNoContent,
		Description: "Ends the session that was made from it, too. DELETE /v1/sessions?tenant=…&kind=portal revokes all of a tenant.",
	}
)

// portalLinkHandlers serve the operations on portal links.
type portalLinkHandlers struct {
	sessions *management.Sessions
	callers  *management.Callers
	browser  *httpapi.Browser
}

func (h *portalLinkHandlers) create(ctx context.Context, c *management.Caller, in *portalLinkInput) (*issuedPortalLinkOutput, error) {
	b := &in.Body
	if b.Tenant != "" {
		var err error
		if c, err = h.callers.ActFor(ctx, c, b.Tenant, false); err != nil {
			return nil, err
		}
	}
	if c.ForEnvironment() {
		return nil, problem.Invalid.In("tenant", "must name the tenant whose portal it is")
	}
	spec := management.PortalSpec{
		Name: b.Name, View: godwit.PortalView{Theme: b.Theme, ReturnURL: b.ReturnURL, StartPage: b.StartPage, HideNavigation: b.HideNavigation},
		Life: seconds(b.ExpiresIn), SessionLife: seconds(b.SessionExpiresIn),
	}
	for _, capability := range b.Capabilities {
		spec.Capabilities = append(spec.Capabilities, godwit.Capability(capability))
	}
	l, code, err := h.sessions.CreatePortalLink(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	return &issuedPortalLinkOutput{
		Location: "/v1/portal-links/" + l.ID.String(),
		Body:     IssuedPortalLink{PortalLink: portalLinkView(l), URL: h.browser.URL("/portal/" + c.Tenant.EnvironmentID.String() + "/#code=" + code)},
	}, nil
}

// seconds converts a member that may be absent. A value that does not fit is out of every range.
func seconds(n *int64) time.Duration {
	switch {
	case n == nil:
		return 0
	case *n <= 0 || *n > math.MaxInt64/int64(time.Second):
		return -1
	}
	return time.Duration(*n) * time.Second
}

func (h *portalLinkHandlers) list(ctx context.Context, c *management.Caller, in *PageParams) (*listOutput[PortalLink], error) {
	return portalLinks.page(*in, func(p store.Page) ([]godwit.SignInLink, error) { return h.sessions.PortalLinks(ctx, c.Tenant.ID, p) })
}

func (h *portalLinkHandlers) get(ctx context.Context, c *management.Caller, in *PortalLinkPath) (*portalLinkOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	l, err := h.sessions.PortalLink(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	return &portalLinkOutput{Body: portalLinkView(l)}, nil
}

func (h *portalLinkHandlers) revoke(ctx context.Context, c *management.Caller, in *PortalLinkPath) (*struct{}, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	return nil, h.sessions.RevokePortalLink(ctx, c.Tenant.ID, id)
}
