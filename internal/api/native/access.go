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
	mayIngest     = access{godwit.ScopeIngest}
	mayRead       = access{godwit.ScopeRead}
	mayManage     = access{godwit.ScopeManage}
	mayAdmin      = access{godwit.ScopeAdmin}
	mayCreateKeys = access{godwit.ScopeManage, godwit.ScopeAdmin}
	mayReadKeys   = access{godwit.ScopeRead, godwit.ScopeManage, godwit.ScopeAdmin}
	anyone        = access(nil) // no key needed
)

// A session holds the caller, the id and the API of a management request.
type session struct {
	api       *httpapi.API
	caller    *management.Caller
	requestID string
	request   *http.Request
}

type sessionKey struct{}

// sessionOf returns the session of a management request; every management route has one.
func sessionOf(ctx context.Context) *session { return ctx.Value(sessionKey{}).(*session) }

// managed wraps huma's handler of a management operation. PUT is idempotent and needs no key (IKH-DEF-2). A confirmation
// continues the command that the first request created; the command recognises its repeats.
func (r *router) managed(pattern string, next http.HandlerFunc) http.Handler {
	route := httpapi.Route{Need: r.patterns[pattern], MediaTypes: []string{jsonType}, SkipKey: func(req *http.Request) bool {
		return req.Method == http.MethodPut || len(req.Header[confirmationHeader]) > 0
	}, CheckBody: func(_ *http.Request, body []byte) error { return r.refuseNull(pattern, body) }}
	if strings.HasPrefix(pattern, http.MethodPatch+" ") {
		route.MediaTypes = []string{jsonType, "application/merge-patch+json"}
	}
	return r.http.Handle(route, func(c *httpapi.Call) error {
		if _, err := httpapi.ReadQuery(c.R.URL, nil); err != nil { // huma checks the names
			return err
		}
		in := &session{api: r.http, caller: c.Caller, requestID: c.W.Header().Get(problem.RequestIDHeader), request: c.R}
		req := c.R.WithContext(context.WithValue(c.R.Context(), sessionKey{}, in))
		req.Body = io.NopCloser(bytes.NewReader(c.Body)) // the body was read above
		next(c.W, req)
		return nil
	})
}
