package native

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Session is a browser that has signed in.
type Session struct {
	ID             string              `json:"id" example:"ses_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Kind           string              `json:"kind" enum:"dashboard,portal"`
	Current        bool                `json:"current" doc:"Whether it is the session of this request"`
	Name           string              `json:"name" doc:"Name of the API key, the user or the portal link"`
	KeyID          string              `json:"key_id,omitempty" doc:"The API key that a dashboard session acts like" example:"key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	User           string              `json:"user,omitempty" doc:"Name of the user, if it was signed in by an identity provider: a verified e-mail address, a login name or a name"`
	UserID         string              `json:"user_id,omitempty" doc:"The user as evidence names it; it follows from the provider and the subject, and never changes" example:"usr_018f3c2e-7b1a-8c3d-9e4f-5a6b7c8d9e0f"`
	Subject        string              `json:"subject,omitempty" doc:"The user as the identity provider names it"`
	LinkID         string              `json:"link_id,omitempty" doc:"The link that it was made from" example:"lnk_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Scopes         []string            `json:"scopes" doc:"Of the API key or the user; a portal has capabilities instead"`
	Tenant         *SessionTenant      `json:"tenant,omitempty" doc:"The tenant of the API key or the portal; absent for a key of an environment"`
	Environment    *SessionEnvironment `json:"environment,omitempty"`
	Capabilities   []string            `json:"capabilities,omitempty" doc:"What a portal session may do: view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types"`
	Theme          string              `json:"theme,omitempty" enum:"light,dark,system"`
	ReturnURL      string              `json:"return_url,omitempty" doc:"Where a portal leads back to"`
	StartPage      string              `json:"start_page,omitempty"`
	HideNavigation bool                `json:"hide_navigation,omitempty"`
	CreatedAt      time.Time           `json:"created_at"`
	LastUsedAt     time.Time           `json:"last_used_at" doc:"Up to a minute older than the last request"`
	IdleUntil      time.Time           `json:"idle_until" doc:"It ends then unless it is used before"`
	ExpiresAt      time.Time           `json:"expires_at" doc:"It ends then in any case"`
	Address        string              `json:"address" doc:"Address that it was made from"`
	UserAgent      string              `json:"user_agent"`
}

// SessionTenant names the tenant of a session.
type SessionTenant struct {
	ID   string `json:"id" example:"ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	UID  string `json:"uid,omitempty"`
	Name string `json:"name"`
}

// SessionEnvironment names the environment of a session.
type SessionEnvironment struct {
	ID   string `json:"id" example:"env_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	UID  string `json:"uid"`
	Name string `json:"name"`
}

func sessionView(s *godwit.Session) Session {
	v := Session{
		ID: s.ID.String(), Kind: string(s.Kind), Name: s.Name, User: s.User, Subject: s.Subject, Scopes: []string{},
		Theme: s.View.Theme, ReturnURL: s.View.ReturnURL, StartPage: s.View.StartPage, HideNavigation: s.View.HideNavigation,
		CreatedAt: s.CreatedAt.UTC(), LastUsedAt: s.LastUsedAt.UTC(), IdleUntil: s.IdleUntil.UTC(), ExpiresAt: s.ExpiresAt.UTC(), Address: s.Address, UserAgent: s.UserAgent,
	}
	if !s.KeyID.IsZero() {
		v.KeyID = s.KeyID.String()
	}
	if !s.UserID.IsZero() {
		v.UserID = s.UserID.String()
	}
	if !s.LinkID.IsZero() {
		v.LinkID = s.LinkID.String()
	}
	for _, scope := range s.Scopes {
		v.Scopes = append(v.Scopes, string(scope))
	}
	for _, c := range s.Capabilities {
		v.Capabilities = append(v.Capabilities, string(c))
	}
	return v
}

type signInInput struct {
	Body struct {
		Key  string `json:"key,omitempty" maxLength:"200" doc:"An API key. The session acts like it"`
		Code string `json:"code,omitempty" maxLength:"200" doc:"The code of a sign-in link or portal link, which is behind #code= in its URL. It is good for one sign-in"`
	} `nameHint:"SignIn"`
}

// credential is what the browser signs in with.
func (in *signInInput) credential() string { return in.Body.Key + in.Body.Code } // one of the two is empty

type signInOutput struct {
	SetCookie string `header:"Set-Cookie" doc:"The session's token, for browsers; it is in no other place"`
	Body      Session
}

type sessionOutput struct{ Body Session }

type signOutOutput struct {
	SetCookie string `header:"Set-Cookie"`
}

// SessionPath names a session.
type SessionPath struct {
	ID string `path:"id" doc:"Id of the session"`
}

type sessionsInput struct {
	PageParams
	Kind string `query:"kind" enum:"dashboard,portal" doc:"Only sessions of this kind"`
}

type endSessionsInput struct {
	Tenant string `query:"tenant" required:"true" maxLength:"100" doc:"Id or uid of the tenant"`
	Kind   string `query:"kind" enum:"dashboard,portal" doc:"Only sessions of this kind"`
}

type endedOutput struct {
	Body struct {
		Ended int `json:"ended" doc:"How many sessions were ended"`
	} `nameHint:"EndedSessions"`
}

// SignInLink signs in to the dashboard.
type SignInLink struct {
	URL       string    `json:"url" doc:"Opens the dashboard signed in, once. The code behind # is not sent to the server when the page is loaded"`
	ExpiresAt time.Time `json:"expires_at"`
}

type signInLinkOutput struct{ Body SignInLink }

// Descriptions of the operations on sessions.
var (
	createSessionDoc = huma.Operation{
		OperationID: "create-session", Summary: "Sign in", DefaultStatus: http.StatusCreated,
		Description: "Makes a session from an API key or from the code of a link, and sets its cookie. Pages of the portal send Godwit-Portal: 1, or frame if they are in a frame of another page, and Godwit-Environment with the id of their environment. " +
			"Every sign-in makes a new token; a session that the browser had before at this place is ended.",
	}
	currentSessionDoc = huma.Operation{
		OperationID: "get-current-session", Summary: "Get the session of this request",
		Description: "Answers 404 to a request with an API key, which has no session.",
	}
	endCurrentSessionDoc = huma.Operation{
		OperationID: "end-current-session", Summary: "Sign out", DefaultStatus: http.StatusNoContent,
		Description: "Ends the session of this request and removes its cookie.",
	}
	listSessionsDoc = huma.Operation{
		OperationID: "list-sessions", Summary: "List sessions",
		Description: "Those of the tenant's keys and portals; for an environment, those of the environment's own keys.",
	}
	getSessionDoc = huma.Operation{OperationID: "get-session", Summary: "Get a session"}
	endSessionDoc = huma.Operation{
		OperationID: "end-session", Summary: "End a session", DefaultStatus: http.StatusNoContent,
		Description: "It is refused at once by this node and within half a second by all others.",
	}
	endSessionsDoc = huma.Operation{
		OperationID: "end-sessions", Summary: "End all sessions of a tenant",
		Description: "Also removes portal links of the tenant that were not used, unless kind is dashboard. A caller without the scope admin leaves the sessions of those with it.",
	}
	createSignInLinkDoc = huma.Operation{
		OperationID: "create-sign-in-link", Summary: "Create a sign-in link", DefaultStatus: http.StatusCreated,
		Description: "A URL that opens the dashboard with a session that acts like the API key of this request, within 5 minutes and once. A session cannot make one.",
	}
)

// sessionHandlers serve the operations on sessions.
type sessionHandlers struct {
	sessions     *management.Sessions
	callers      *management.Callers
	environments *management.Environments
	browser      *httpapi.Browser
	failures     *httpapi.Failures
	provider     func() *SignInMethod
	now          func() time.Time
}

func (h *sessionHandlers) create(ctx context.Context, _ *management.Caller, in *signInInput) (*signInOutput, error) {
	r := sessionOf(ctx).request
	if err := h.browser.CheckSignIn(r); err != nil {
		return nil, err
	}
	visitor := management.Visitor{Address: h.browser.Address(r), UserAgent: r.UserAgent()}
	if err := h.failures.Check(visitor.Address, in.credential()); err != nil {
		return nil, err
	}
	place, before, err := h.browser.Token(r)
	if err != nil {
		return nil, err
	}
	var caller *management.Caller
	var token string
	switch key, code := in.Body.Key, in.Body.Code; {
	case (key == "") == (code == ""):
		return nil, problem.InvalidRequest.In("body", "must have either key or code")
	case key != "" && place.Portal:
		return nil, problem.InvalidRequest.In("key", "signs in to the dashboard; a portal is opened by the code of a portal link")
	case key != "":
		caller, token, err = h.sessions.SignIn(ctx, key, visitor)
	default:
		caller, token, err = h.sessions.Redeem(ctx, place.Kind(), place.Environment, code, visitor)
	}
	if err != nil {
		for _, kind := range []error{problem.Unauthorized, problem.CodeUsed, problem.CodeExpired} {
			if errors.Is(err, kind) {
				h.failures.Add(visitor.Address, in.credential())
				break
			}
		}
		return nil, err
	}
	if before != "" {
		if old, err := h.callers.AuthenticateSession(ctx, place.Kind(), before); err == nil {
			_ = h.sessions.End(ctx, old, old.Session.ID) // it also ends by itself
		}
	}
	view, err := h.view(ctx, caller)
	if err != nil {
		return nil, err
	}
	return &signInOutput{SetCookie: h.browser.SetCookie(r, place, token, caller.Session.ExpiresAt.Sub(h.now())), Body: view}, nil
}

// view renders the session of a caller, with its tenant and environment.
func (h *sessionHandlers) view(ctx context.Context, c *management.Caller) (Session, error) {
	v := sessionView(c.Session)
	v.Current = true
	if !c.Tenant.Home {
		v.Tenant = &SessionTenant{ID: c.Tenant.ID.String(), UID: c.Tenant.UID, Name: c.Tenant.Name}
	}
	e, err := h.environments.Get(ctx, c.Tenant.EnvironmentID.String())
	if err != nil {
		return v, err
	}
	v.Environment = &SessionEnvironment{ID: e.ID.String(), UID: e.UID, Name: e.Name}
	return v, nil
}

// own returns the caller for the tenant of its session, whatever tenant the request names.
func (h *sessionHandlers) own(ctx context.Context, c *management.Caller) (*management.Caller, error) {
	if c.Session == nil {
		return nil, problem.NotFound.With("the request has an API key, and no session")
	}
	return h.callers.Own(ctx, c)
}

func (h *sessionHandlers) current(ctx context.Context, c *management.Caller, _ *struct{}) (*sessionOutput, error) {
	c, err := h.own(ctx, c)
	if err != nil {
		return nil, err
	}
	v, err := h.view(ctx, c)
	if err != nil {
		return nil, err
	}
	return &sessionOutput{Body: v}, nil
}

func (h *sessionHandlers) endCurrent(ctx context.Context, c *management.Caller, _ *struct{}) (*signOutOutput, error) {
	c, err := h.own(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := h.sessions.End(ctx, c, c.Session.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	r := sessionOf(ctx).request
	place, err := httpapi.PlaceOf(r)
	if err != nil {
		return nil, err
	}
	return &signOutOutput{SetCookie: h.browser.ClearCookie(r, place)}, nil
}

func (h *sessionHandlers) list(ctx context.Context, c *management.Caller, in *sessionsInput) (*listOutput[Session], error) {
	out, err := sessions.page(in.PageParams, func(p store.Page) ([]godwit.Session, error) {
		return h.sessions.List(ctx, c.Tenant.ID, godwit.SessionKind(in.Kind), p)
	})
	if err != nil {
		return nil, err
	}
	for i := range out.Body.Items {
		out.Body.Items[i].Current = out.Body.Items[i].ID == c.SessionID()
	}
	return out, nil
}

func (h *sessionHandlers) get(ctx context.Context, c *management.Caller, in *SessionPath) (*sessionOutput, error) {
	id, err := godwit.ParseSessionID(in.ID)
	if err != nil {
		return nil, badID("id", "ses_…")
	}
	s, err := h.sessions.Get(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	v := sessionView(s)
	v.Current = v.ID == c.SessionID()
	return &sessionOutput{Body: v}, nil
}

func (h *sessionHandlers) end(ctx context.Context, c *management.Caller, in *SessionPath) (*struct{}, error) {
	id, err := godwit.ParseSessionID(in.ID)
	if err != nil {
		return nil, badID("id", "ses_…")
	}
	return nil, h.sessions.End(ctx, c, id)
}

func (h *sessionHandlers) endAll(ctx context.Context, c *management.Caller, in *endSessionsInput) (*endedOutput, error) {
	of, err := h.callers.ActFor(ctx, c, in.Tenant, false)
	if err != nil {
		return nil, err
	}
	out := &endedOutput{}
	out.Body.Ended, err = h.sessions.EndAll(ctx, of, godwit.SessionKind(in.Kind))
	return out, err
}

func (h *sessionHandlers) link(ctx context.Context, c *management.Caller, _ *struct{}) (*signInLinkOutput, error) {
	if c.Session != nil {
		return nil, problem.Forbidden.With("a session cannot make sign-in links, or it would have no end; use an API key")
	}
	l, code, err := h.sessions.Link(ctx, c.Key, management.SignInLinkLife)
	if err != nil {
		return nil, err
	}
	return &signInLinkOutput{Body: SignInLink{URL: h.browser.URL("/ui/#code=" + code), ExpiresAt: l.ExpiresAt.UTC()}}, nil
}
