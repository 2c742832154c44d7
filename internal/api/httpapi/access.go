package httpapi

import (
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// TenantHeader names the tenant of an administrator's request, in every API.
const TenantHeader = "Godwit-Tenant"

// Authorize authenticates the caller, rejects a key that has none of the scopes, and returns the caller for the tenant that
// the request names.
func (a *API) Authorize(r *http.Request, need ...godwit.Scope) (*management.Caller, error) {
	caller, err := a.cfg.Callers.Authenticate(r.Context(), bearer(r))
	if err != nil {
		return nil, err
	}
	if err := caller.Need(need...); err != nil {
		return nil, err
	}
	switch named := r.Header[TenantHeader]; len(named) {
	case 0:
		return caller, nil
	case 1:
		id, err := godwit.ParseTenantID(named[0])
		if err != nil {
			return nil, problem.InvalidRequest.In(TenantHeader, "must be a tenant's id, as in ten_…")
		}
		return a.cfg.Callers.ActFor(r.Context(), caller, id)
	}
	return nil, problem.InvalidRequest.In(TenantHeader, "must be given once")
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
