package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// TenantHeader names the tenant of a request by id or uid, in every API. EnvironmentHeader names the environment of an administrator's request.
const (
	TenantHeader      = management.TenantHeader
	EnvironmentHeader = "Godwit-Environment"
)

// An Access says who may use a route.
type Access struct {
	// Need lists scopes; the caller's key must have one of them.
	Need []godwit.Scope
	// Environment lists scopes for callers that act for an environment and name no tenant; their key must have one of them, or admin. Without
	// any, the route is for tenants alone.
	Environment []godwit.Scope
	// Open admits requests without any credential.
	Open bool
	// Capabilities open the route to portal sessions that have one of them. Set it by Portal or Closed: a route has to say which.
	Capabilities []godwit.Capability
	decided      bool
	// Passive marks requests that a page repeats by itself, such as those for a stream. They are no use of a session: a page that only watches ends with the idle time.
	Passive bool
}

// Portal opens a route to portal sessions that have one of the capabilities.
func (a Access) Portal(anyOf ...godwit.Capability) Access {
	a.Capabilities, a.decided = anyOf, true
	return a
}

// Closed keeps portal sessions from a route.
func (a Access) Closed() Access {
	a.Capabilities, a.decided = nil, true
	return a
}

// Watched marks the requests of a route as no use of a session.
func (a Access) Watched() Access {
	a.Passive = true
	return a
}

// Decided reports whether the access says what portal sessions may do.
func (a Access) Decided() bool { return a.decided || a.Open }

// admit refuses a caller whose scopes, or capabilities, do not permit the route.
func (a *Access) admit(c *management.Caller) error {
	if !c.Portal() {
		return c.Need(a.Need...)
	}
	names := make([]string, len(a.Capabilities))
	for i, capability := range a.Capabilities {
		if c.Session.Can(capability) {
			return nil
		}
		names[i] = string(capability)
	}
	if len(names) == 0 {
		return problem.Forbidden.With("portals cannot use this operation")
	}
	return problem.Forbidden.With("this operation needs a portal link with the capability %s", strings.Join(names, " or "))
}

// Authorize authenticates the caller, rejects a key that has none of the scopes, and returns the caller for the tenant or environment that
// the request names.
func (a *API) Authorize(r *http.Request, access Access) (*management.Caller, error) {
	caller, err := a.authenticate(r, access.Passive)
	if err != nil {
		return nil, err
	}
	environment, _, err := named(r, EnvironmentHeader)
	if err != nil {
		return nil, err
	}
	tenant, hasTenant, err := named(r, TenantHeader)
	if err != nil {
		return nil, err
	}
	if environment != "" {
		if caller, err = a.cfg.Callers.Enter(r.Context(), caller, environment); err != nil {
			return nil, err
		}
	}
	if caller.ForEnvironment() && !hasTenant {
		if len(access.Environment) == 0 {
			return nil, problem.InvalidRequest.In(TenantHeader, "must name a tenant, by id or uid: the request is made for an environment, and this is an operation on a tenant")
		}
		return caller, caller.Need(append(access.Environment[:len(access.Environment):len(access.Environment)], godwit.ScopeAdmin)...)
	}
	if err := access.admit(caller); err != nil || !hasTenant {
		return caller, err
	}
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	return a.cfg.Callers.ActFor(r.Context(), caller, tenant, changes)
}

// session returns the caller of a session.
func (a *API) session(ctx context.Context, kind godwit.SessionKind, token string, passive bool) (*management.Caller, error) {
	if passive {
		return a.cfg.Callers.SeeSession(ctx, kind, token)
	}
	return a.cfg.Callers.AuthenticateSession(ctx, kind, token)
}

// authenticate returns the caller by its API key or, in requests without Authorization, by the cookie of its session. A passive request is no use of the session.
func (a *API) authenticate(r *http.Request, passive bool) (*management.Caller, error) {
	if a.cfg.Browser != nil && len(r.Header["Authorization"]) == 0 {
		place, token, err := a.cfg.Browser.Token(r)
		if err != nil {
			return nil, err
		}
		if token != "" && (!place.Portal || a.cfg.Portal) {
			if err := a.cfg.Browser.CheckSite(r); err != nil {
				return nil, err
			}
			caller, err := a.session(r.Context(), place.Kind(), token, passive)
			if err == nil && place.Portal && caller.Tenant.EnvironmentID != place.Environment {
				return nil, problem.Forbidden.With("the session belongs to the portal of another environment")
			}
			return caller, err
		}
	}
	return a.cfg.Callers.Authenticate(r.Context(), bearer(r))
}

// Many reports whether a request names several tenants, or all. Only routes that use AuthorizeMany take such requests.
func Many(r *http.Request) bool {
	values := r.Header[TenantHeader]
	return len(values) == 1 && (values[0] == AllTenants || strings.IndexByte(values[0], ',') >= 0)
}

// AllTenants is the value of TenantHeader that names all tenants of an environment.
const AllTenants = "*"

// AuthorizeMany authorizes a request that names several tenants, or all: those of the caller's environment, or of the one that the request
// names. It returns the caller for the environment, or for its own tenant, and the names; nil names mean all tenants.
func (a *API) AuthorizeMany(r *http.Request, access Access) (*management.Caller, []string, error) {
	caller, err := a.authenticate(r, access.Passive)
	if err != nil {
		return nil, nil, err
	}
	environment, _, err := named(r, EnvironmentHeader)
	if err != nil {
		return nil, nil, err
	}
	if environment != "" {
		if caller, err = a.cfg.Callers.Enter(r.Context(), caller, environment); err != nil {
			return nil, nil, err
		}
	}
	if !caller.ForEnvironment() && !caller.Key.Has(godwit.ScopeAdmin) {
		return nil, nil, problem.Forbidden.With("the API key belongs to a tenant and acts for it alone; several tenants need a key of their environment, or one with the scope admin")
	}
	if err := access.admit(caller); err != nil {
		return nil, nil, err
	}
	value := r.Header[TenantHeader][0]
	if value == AllTenants {
		return caller, nil, nil
	}
	names, err := split(value)
	return caller, names, err
}

// split returns the elements of a list. Empty ones do not count (RFC 9110, section 5.6.1).
func split(value string) (names []string, err error) {
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if name == AllTenants {
			return nil, problem.InvalidRequest.In(TenantHeader, "must be * alone, or ids and uids of tenants with a comma between them")
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > godwit.MaxBroadcastNames {
		return nil, problem.InvalidRequest.In(TenantHeader, "names %d tenants, and may name 1 to %d; use several requests, or * for all tenants with an endpoint for the event", len(names), godwit.MaxBroadcastNames)
	}
	return names, nil
}

// named returns the value of a header that may be given once.
func named(r *http.Request, header string) (value string, given bool, err error) {
	switch values := r.Header[header]; {
	case len(values) == 0:
		return "", false, nil
	case len(values) > 1:
		return "", false, problem.InvalidRequest.In(header, "must be given once")
	case values[0] == "":
		return "", false, problem.InvalidRequest.In(header, "must not be empty")
	default:
		return values[0], true, nil
	}
}

// bearer returns the token of the Authorization header, or "".
func bearer(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	const scheme = "bearer "
	if v := values[0]; len(v) > len(scheme) && strings.EqualFold(v[:len(scheme)], scheme) {
		return v[len(scheme):]
	}
	return ""
}
