package oidc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/identity"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// The paths.
const (
	Prefix       = "/ui/oidc/"
	StartPath    = Prefix + "start"
	CallbackPath = Prefix + "callback"
	ChoicePath   = Prefix + "choose"
	SignOutPath  = Prefix + "sign-out"
)

// Config of the handlers.
type Config struct {
	// Provider is nil if the server has none. The pages say so then.
	Provider *identity.Provider
	Ring     identity.Ring
	Sessions *management.Sessions
	Callers  *management.Callers
	Browser  *httpapi.Browser
	Failures *httpapi.Failures
	Problems *problem.Writer
	Lifetime time.Duration // of sessions
	Now      func() time.Time
	Log      *slog.Logger
}

type handlers struct{ Config }

// New returns the handlers.
func New(cfg Config) httpapi.Router {
	h := &handlers{cfg}
	mux := httpapi.NewMux()
	mux.HandleFunc("GET "+StartPath, h.page(h.start))
	mux.HandleFunc("GET "+CallbackPath, h.page(h.callback))
	mux.HandleFunc("GET "+ChoicePath, h.page(h.offer))
	mux.HandleFunc("POST "+ChoicePath, h.page(h.choose))
	mux.HandleFunc("GET "+SignOutPath, h.page(h.signOut))
	mux.Unmatched("/", cfg.Problems, "")
	return mux
}

var (
	flowCookie   = httpapi.StepCookie{Name: "godwit_oidc", Path: Prefix}
	choiceCookie = httpapi.StepCookie{Name: "godwit_oidc_choice", Path: Prefix}
)

// page answers errors of a step with a page. Sign-ins whose answer of the provider is refused count, as those with API keys do that fail.
func (h *handlers) page(step func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		httpapi.NameRequest(w, r)
		defer httpapi.Recover(w, r, h.Problems)
		w.Header().Set("Cache-Control", "no-store")
		if h.Provider == nil {
			h.showRefusal(w, r, http.StatusNotFound, "", "This server has no identity provider. Sign in with an API key.")
			return
		}
		address := h.Browser.Address(r)
		if err := h.Failures.Check(address, Prefix); err != nil {
			h.showError(w, r, err)
			return
		}
		err := step(w, r)
		if err == nil {
			return
		}
		if refusal := identity.AsRefusal(err); refusal != nil {
			h.Log.Warn("sign-in by OpenID Connect was refused", "reason", string(refusal.Reason), "address", address, "error", err)
			if refusal.Reason == identity.BadToken { // the others have nothing to guess, and any page can make a browser cause them
				h.Failures.Add(address, Prefix)
			}
		}
		h.showError(w, r, err)
	}
}

// start sends the browser to the provider.
func (h *handlers) start(w http.ResponseWriter, r *http.Request) error {
	var before identity.Before
	if place, token, err := h.Browser.Token(r); err == nil && !place.Portal && token != "" {
		if c, err := h.Callers.AuthenticateSession(r.Context(), godwit.DashboardSession, token); err == nil {
			before = identity.Before{Tenant: c.Session.TenantID, Session: c.Session.ID}
		}
	}
	location, cookie, err := h.Provider.Start(r.URL.Query().Get("return"), before)
	if err != nil {
		return err
	}
	w.Header().Add("Set-Cookie", h.Browser.SetStep(r, flowCookie, cookie, identity.FlowLife))
	redirect(w, location)
	return nil
}

// callback takes the provider's answer. The cookie of the sign-in is spent, whatever comes of it.
func (h *handlers) callback(w http.ResponseWriter, r *http.Request) error {
	cookie := h.Browser.Step(r, flowCookie)
	if cookie != "" {
		w.Header().Add("Set-Cookie", h.Browser.ClearStep(r, flowCookie))
	}
	arrived, err := h.Provider.Finish(r.Context(), cookie, r.URL.Query())
	if err != nil {
		if arrived != nil {
			h.Log.Warn("user has no grant", "user", arrived.User.Name, "subject", arrived.User.Subject, "groups", arrived.Groups)
		}
		return err
	}
	seats, err := h.seats(r.Context(), arrived)
	if err != nil {
		return err
	}
	if len(seats) == 1 {
		return h.signIn(w, r, arrived.User, &seats[0], arrived.Before, arrived.Return)
	}
	return h.ask(w, r, arrived, seats)
}

// seats finds the places of a person. Places that do not exist are left out, and so are tenants where the person may do no more than in the whole environment.
func (h *handlers) seats(ctx context.Context, a *identity.Arrived) ([]management.Seat, error) {
	var seats []management.Seat
	for _, p := range a.Places {
		s, err := h.Sessions.FindSeat(ctx, p.Environment, p.Tenant, p.Scopes)
		if errors.Is(err, store.ErrNotFound) {
			h.Log.Warn("grant names a place that does not exist", "environment", p.Environment, "tenant", p.Tenant, "user", a.User.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(seats, func(o management.Seat) bool { return o.Tenant.ID == s.Tenant.ID }); i >= 0 { // once by id and once by uid
			seats[i].Scopes = identity.MergeScopes(seats[i].Scopes, s.Scopes)
			continue
		}
		seats = append(seats, *s)
	}
	all := slices.Clone(seats)
	seats = slices.DeleteFunc(seats, func(s management.Seat) bool {
		return slices.ContainsFunc(all, func(o management.Seat) bool {
			return o.Tenant.Home && !s.Tenant.Home && o.Environment.ID == s.Environment.ID && len(identity.MergeScopes(o.Scopes, s.Scopes)) == len(o.Scopes)
		})
	})
	if len(seats) == 0 {
		return nil, &identity.Refusal{Reason: identity.NoGrant, Detail: "Your groups give you access to environments or tenants that this server does not have. Ask the operator of this server."}
	}
	return seats, nil
}

// signIn makes the session and opens the dashboard.
func (h *handlers) signIn(w http.ResponseWriter, r *http.Request, u godwit.User, s *management.Seat, before identity.Before, returnTo string) error {
	visitor := management.Visitor{Address: h.Browser.Address(r), UserAgent: r.UserAgent()}
	caller, token, err := h.Sessions.SignInUser(r.Context(), u, s.Tenant.ID, s.Scopes, h.Lifetime, visitor)
	if err != nil {
		return err
	}
	if err := h.Sessions.Supersede(r.Context(), before.Tenant, before.Session); err != nil {
		h.Log.Warn("session before a sign-in was not ended", "session", before.Session.String(), "error", err)
	}
	h.Log.Info("user signed in", "user", u.Name, "user_id", u.ID.String(), "subject", u.Subject, "session", caller.Session.ID.String(), "tenant", s.Tenant.ID.String(), "address", visitor.Address)
	w.Header().Add("Set-Cookie", h.Browser.SetCookie(r, httpapi.Place{}, token, caller.Session.ExpiresAt.Sub(h.Now())))
	redirect(w, returnTo)
	return nil
}

// signOut leads to the provider's page for signing out.
func (h *handlers) signOut(w http.ResponseWriter, _ *http.Request) error {
	location, err := h.Provider.SignOutURL()
	if err != nil {
		return err
	}
	if location == "" {
		location = "/ui/"
	}
	redirect(w, location)
	return nil
}

// redirect answers with 303, and without a body: the address may hold a state.
func redirect(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// showError answers with the page for an error.
func (h *handlers) showError(w http.ResponseWriter, r *http.Request, err error) {
	if refusal := identity.AsRefusal(err); refusal != nil {
		status := http.StatusBadRequest
		switch refusal.Reason {
		case identity.Unavailable:
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "5")
		case identity.Declined, identity.BadToken, identity.NoGrant, identity.TooManyGroups:
			status = http.StatusForbidden
		}
		h.showRefusal(w, r, status, string(refusal.Reason), refusal.Detail)
		return
	}
	p := h.Problems.Complete(r, w.Header().Get(problem.RequestIDHeader), err)
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	detail := p.Detail
	if detail == "" {
		detail = p.Title
	}
	h.showRefusal(w, r, p.Status, p.Code, detail)
}
