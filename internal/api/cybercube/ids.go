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

// origin is where the ids are looked for that producers give their events here.
const origin = "cybercube"

// endpoint finds an endpoint by any rendering of its id. One that cannot be is refused before anything is looked up
// (CCW-API-5).
func (s *server) endpoint(ctx context.Context, tenant godwit.TenantID, text string) (*godwit.Endpoint, error) {
	e, err := s.cfg.Registry.ResolveEndpoint(ctx, tenant, text)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem.NotFound.With("there is no such endpoint")
	}
	return e, err
}

// named is the endpoint of the path.
func (s *server) named(c *httpapi.Call) (*godwit.Endpoint, error) {
	return s.endpoint(c.R.Context(), c.Tenant(), c.R.PathValue("id"))
}

func publicID(e *godwit.Endpoint) string { return profile.FormatCode(profile.CodeEndpoint, e.Code) }
func accountID(t *godwit.Tenant) string  { return profile.FormatCode(profile.CodeTenant, t.Code) }
