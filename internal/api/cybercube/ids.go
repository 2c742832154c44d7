package cybercube

import (
	"context"
	"errors"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// origin is the scope of the ids that producers give their events in this API.
const origin = "cybercube"

// An endpointFinder finds the endpoint that a request names.
type endpointFinder struct {
	endpoints interface {
		Resolve(ctx context.Context, tenant godwit.TenantID, text string) (*godwit.Endpoint, error)
	}
}

// endpoint finds an endpoint by any form of its id. A malformed id is rejected before the store is asked (CCW-API-5).
func (f endpointFinder) endpoint(ctx context.Context, tenant godwit.TenantID, text string) (*godwit.Endpoint, error) {
	e, err := f.endpoints.Resolve(ctx, tenant, text)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem.NotFound.With("there is no such endpoint")
	}
	return e, err
}

// named returns the endpoint that the path names.
func (f endpointFinder) named(c *httpapi.Call) (*godwit.Endpoint, error) {
	return f.endpoint(c.R.Context(), c.Tenant(), c.R.PathValue("id"))
}

func publicID(e *godwit.Endpoint) string { return profile.FormatCode(profile.CodeEndpoint, e.Code) }
func accountID(t *godwit.Tenant) string  { return profile.FormatCode(profile.CodeTenant, t.Code) }
