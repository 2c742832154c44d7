package httpapi

import (
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// TenantHeader names the tenant of a request by id or uid, in every API. EnvironmentHeader names the environment of an administrator's request.
const (
	TenantHeader      = "Godwit-Tenant"
	EnvironmentHeader = "Godwit-Environment"
)

// An Access says who may use a route.
type Access struct {
	// Need lists scopes; the caller's key must have one of them.
	Need []godwit.Scope
	// Environment lists scopes for callers that act for an environment and name no tenant; their key must have one of them, or admin. Without
	// any, the route is for tenants alone.
	Environment []godwit.Scope
}

// Authorize authenticates the caller, rejects a key that has none of the scopes, and returns the caller for the tenant or environment that
// the request names.
func (a *API) Authorize(r *http.Request, access Access) (*management.Caller, error) {
	caller, err := a.cfg.Callers.Authenticate(r.Context(), bearer(r))
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
	if err := caller.Need(access.Need...); err != nil || !hasTenant {
		return caller, err
	}
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	return a.cfg.Callers.ActFor(r.Context(), caller, tenant, changes)
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
