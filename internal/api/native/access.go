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

// access lists the scopes that may use a route; a key needs any one of them.
type access []godwit.Scope

var (
	mayIngest   = access{godwit.ScopeIngest}
	mayRead     = access{godwit.ScopeRead}
	mayManage   = access{godwit.ScopeManage}
	mayAdmin    = access{godwit.ScopeAdmin}
	mayMintKeys = access{godwit.ScopeManage, godwit.ScopeAdmin}
	mayReadKeys = access{godwit.ScopeRead, godwit.ScopeManage, godwit.ScopeAdmin}
	anyone      = access(nil) // no key needed
)

// A session holds the caller and the id of a management request.
type session struct {
	caller    *management.Caller
	requestID string
	request   *http.Request
}

type sessionKey struct{}

// sessionOf returns the session of a management request; every management route has one.
func sessionOf(ctx context.Context) *session { return ctx.Value(sessionKey{}).(*session) }

// managed wraps huma's handler of a management operation. PUT is idempotent and needs no key (IKH-DEF-2). A confirmation
// continues the command that the first request created; the command recognises its repeats.
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
		r.Body = io.NopCloser(bytes.NewReader(c.Body)) // the body was read above
		next(c.W, r)
		return nil
	})
}
