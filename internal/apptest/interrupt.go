package apptest

import (
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/idempotency"
)

// Interrupt takes back the stored response to a POST with an Idempotency-Key, as if the server had died before it was stored and
// the lease of the key were over. The call's path must be as it was sent.
func (s *Server) Interrupt(c Call) {
	s.t.Helper()
	ctx := s.t.Context()
	caller, err := s.App.Management().Callers.Authenticate(ctx, s.Key)
	if err != nil {
		s.t.Fatalf("interrupt: %v", err)
	}
	scope := idempotency.Scope{Principal: caller.Key.Principal, Tenant: s.Tenant, Operation: "POST " + c.Path}
	held, err := s.App.Store().Recorded(ctx, scope.ID(strings.Trim(c.Header["Idempotency-Key"], `"`)), time.Time{})
	if err == nil {
		err = s.App.Store().Forget(ctx, held)
	}
	if err == nil {
		held.Response, held.ExpiresAt = nil, held.CreatedAt.Add(time.Microsecond)
		_, err = s.App.Store().Reserve(ctx, held)
	}
	if err != nil {
		s.t.Fatalf("interrupt: %v", err)
	}
}
