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

// access says who may use a route.
type access = httpapi.Access

// Routes for tenants alone.
var (
	mayIngest = access{Need: []godwit.Scope{godwit.ScopeIngest}}
	mayRead   = access{Need: []godwit.Scope{godwit.ScopeRead}}
	mayManage = access{Need: []godwit.Scope{godwit.ScopeManage}}
	anyone    = access{Open: true} // no key needed
)

// Routes for tenants, and for environments: an environment has event types and keys too, and can list what its tenants have.
var (
	mayList       = access{Need: []godwit.Scope{godwit.ScopeRead}, Environment: []godwit.Scope{godwit.ScopeRead}}
	mayReadTypes  = access{Need: []godwit.Scope{godwit.ScopeRead}, Environment: []godwit.Scope{godwit.ScopeRead}}
	mayWriteTypes = access{Need: []godwit.Scope{godwit.ScopeManage}, Environment: []godwit.Scope{godwit.ScopeManage}}
	// The body of a request for an environment may name the tenant.
	mayWriteLinks = access{Need: []godwit.Scope{godwit.ScopeManage}, Environment: []godwit.Scope{godwit.ScopeManage}}
	mayReadKeys   = access{
		Need:        []godwit.Scope{godwit.ScopeRead, godwit.ScopeManage, godwit.ScopeAdmin},
		Environment: []godwit.Scope{godwit.ScopeRead, godwit.ScopeManage},
	}
	mayCreateKeys = access{Need: []godwit.Scope{godwit.ScopeManage, godwit.ScopeAdmin}, Environment: []godwit.Scope{godwit.ScopeManage}}
)

// Routes for every key. One with the scope metrics alone is kept in monitoring systems and must open nothing else.
var (
	anyScope = []godwit.Scope{godwit.ScopeIngest, godwit.ScopeRead, godwit.ScopeManage, godwit.ScopeAdmin, godwit.ScopeAudit}
	anyKey   = access{Need: anyScope, Environment: anyScope}
)

// Routes for the server's administrator, some also for a key of the environment that they concern.
var (
	mayReadTenants      = access{Need: []godwit.Scope{godwit.ScopeAdmin}, Environment: []godwit.Scope{godwit.ScopeRead, godwit.ScopeManage}}
	mayWriteTenants     = access{Need: []godwit.Scope{godwit.ScopeAdmin}, Environment: []godwit.Scope{godwit.ScopeManage}}
	mayReadEnvironments = mayReadTenants
	mayReadBroadcasts   = access{Need: []godwit.Scope{godwit.ScopeAdmin}, Environment: []godwit.Scope{godwit.ScopeIngest, godwit.ScopeRead, godwit.ScopeManage}}
	mayAdminAnywhere    = access{Need: []godwit.Scope{godwit.ScopeAdmin}, Environment: []godwit.Scope{godwit.ScopeAdmin}}
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

// maxOpenBody bounds the body of a request without credentials.
const maxOpenBody = 4 << 10

// managed wraps huma's handler of a management operation. PUT is idempotent and needs no key (IKH-DEF-2). A confirmation
// continues the command that the first request created; the command recognises its repeats.
func (r *router) managed(pattern string, next http.HandlerFunc) http.Handler {
	need := r.patterns[pattern]
	route := httpapi.Route{Access: need, MediaTypes: []string{jsonType}, SkipKey: func(req *http.Request) bool {
		return req.Method == http.MethodPut || len(req.Header[confirmationHeader]) > 0
	}, CheckBody: func(_ *http.Request, body []byte) error { return r.refuseNull(pattern, body) }}
	if need.Open {
		route.Limit = maxOpenBody
	}
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
