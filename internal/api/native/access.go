package native

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
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

// A session is what a management request carries along: who makes it and what it is called.
type session struct {
	caller    *management.Caller
	requestID string
	request   *http.Request
}

type sessionKey struct{}

// sessionOf finds the session; every management route has one.
func sessionOf(ctx context.Context) *session { return ctx.Value(sessionKey{}).(*session) }

// managed makes the handler of a management operation out of huma's. PUT is idempotent by itself and needs no key
// (IKH-DEF-2). A confirmation is a step further with the command that the first request made; its repeats are the command's.
func (s *server) managed(pattern string, next http.HandlerFunc) http.Handler {
	route := httpapi.Route{Need: s.patterns[pattern], MediaTypes: []string{jsonType}, SkipKey: func(r *http.Request) bool {
		return r.Method == http.MethodPut || len(r.Header[confirmationHeader]) > 0
	}, CheckBody: func(_ *http.Request, body []byte) error { return s.refuseNull(pattern, body) }}
	if strings.HasPrefix(pattern, http.MethodPatch+" ") {
		route.MediaTypes = []string{jsonType, "application/merge-patch+json"}
	}
	return s.http.Handle(route, func(c *httpapi.Call) error {
		if err := checkQuery(c.R); err != nil {
			return err
		}
		in := &session{caller: c.Caller, requestID: c.W.Header().Get(problem.RequestIDHeader), request: c.R}
		r := c.R.WithContext(context.WithValue(c.R.Context(), sessionKey{}, in))
		r.Body = io.NopCloser(bytes.NewReader(c.Body)) // it has been read
		next(c.W, r)
		return nil
	})
}
