package native

import (
	"context"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// access says who may use a route: a key with any of the scopes.
type access []godwit.Scope

var (
	mayIngest   = access{godwit.ScopeIngest}
	mayRead     = access{godwit.ScopeRead}
	mayManage   = access{godwit.ScopeManage}
	mayAdmin    = access{godwit.ScopeAdmin}
	mayMintKeys = access{godwit.ScopeManage, godwit.ScopeAdmin}
	mayReadKeys = access{godwit.ScopeRead, godwit.ScopeManage, godwit.ScopeAdmin}
	anyone      = access(nil) // without a key
)

// TenantHeader lets an admin act for another tenant.
const TenantHeader = "Godwit-Tenant"

// authorize finds out who calls and whether it may.
func (s *server) authorize(r *http.Request, need access) (*management.Caller, error) {
	caller, err := s.cfg.Registry.Authenticate(r.Context(), bearer(r))
	if err != nil {
		return nil, err
	}
	if err := caller.Need(need...); err != nil {
		return nil, err
	}
	if other := r.Header[TenantHeader]; len(other) > 0 {
		return s.actFor(r.Context(), caller, other)
	}
	return caller, nil
}

func (s *server) actFor(ctx context.Context, caller *management.Caller, header []string) (*management.Caller, error) {
	if len(header) > 1 {
		return nil, problem.InvalidRequest.In(TenantHeader, "must be given once")
	}
	id, err := godwit.ParseTenantID(header[0])
	if err != nil {
		return nil, problem.InvalidRequest.In(TenantHeader, "must be a tenant's id, as in ten_…")
	}
	return s.cfg.Registry.ActFor(ctx, caller, id)
}

// bearer is the token of the Authorization header, or "".
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

// A session is what a management request carries along: who makes it and what it is called.
type session struct {
	caller    *management.Caller
	requestID string
	request   *http.Request
}

type sessionKey struct{}

// sessionOf finds the session; every management route has one.
func sessionOf(ctx context.Context) *session { return ctx.Value(sessionKey{}).(*session) }

// maxManagementBody bounds the body of everything that is not an event.
const maxManagementBody = 1 << 20

// managed wraps a management route: authenticate, check the body's size and type, and honour an Idempotency-Key where the
// method is not idempotent by itself (IKH-DEF-2). Authentication comes first, so that nothing about keys shows to strangers
// (IKH K-13).
func (s *server) managed(need access, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.authorize(r, need)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		in := &session{caller: caller, requestID: w.Header().Get(problem.RequestIDHeader), request: r}
		r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, in))
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodPost && r.Method != http.MethodPatch && r.Method != http.MethodPut {
			next(w, r)
			return
		}
		taken, err := s.bodies.Body(r, caller.Tenant.ID, maxManagementBody)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer s.bodies.Leave(caller.Tenant.ID, taken)
		body, err := readBody(w, r, maxManagementBody)
		if err == nil {
			err = checkJSONBody(r, body)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		// A confirmation is a step further with the command that the first request made; its repeats are the command's.
		if idempotency.Present(r.Header) && r.Method != http.MethodPut && len(r.Header[confirmationHeader]) == 0 {
			scope := scopeOf(caller, r.Method+" "+r.URL.Path)
			scope.Channel, scope.Route = channel, r.Pattern
			s.cfg.Idempotency.Serve(w, r, scope, body, next)
			return
		}
		r.Body = rewound(body)
		next(w, r)
	}
}

func scopeOf(c *management.Caller, operation string) idempotency.Scope {
	return idempotency.Scope{Principal: c.Key.Principal, Tenant: c.Tenant.ID, Operation: operation}
}
