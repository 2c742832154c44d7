package httpapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/godwit-hq/godwit/internal/problem"
)

// requestIDFrom is the header in which a caller may send its own request id.
const requestIDFrom = "X-Request-Id"

// NameRequest assigns the request id that appears in the log and in the response: the caller's id if it is safe to log,
// otherwise a new one. A request that has an id keeps it.
func NameRequest(w http.ResponseWriter, r *http.Request) {
	if h := w.Header(); len(h[problem.RequestIDHeader]) == 0 {
		h[problem.RequestIDHeader] = []string{requestID(r)}
	}
}

func requestID(r *http.Request) string {
	if given := r.Header[requestIDFrom]; len(given) == 1 && validRequestID(given[0]) {
		return given[0]
	}
	b := make([]byte, 0, 20)
	b = append(b, "req_"...)
	return string(strconv.AppendUint(b, rand.Uint64(), 36))
}

func validRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// Recover answers a request whose handler panicked; call it deferred. It passes http.ErrAbortHandler on to the server, which
// closes the connection.
func Recover(w http.ResponseWriter, r *http.Request, errors ErrorWriter) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	errors.Write(w, r, fmt.Errorf("handler panicked: %v\n%s", v, debug.Stack()))
}

// routable lists the methods that routes of any API use.
var routable = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}

// unmatched returns the handler for requests that match no route of the mux. It answers 405 with Allow if the path exists
// under other methods (204 for OPTIONS), otherwise 404 with the hint. Mount it under patterns without a method; all routes
// have one.
func unmatched(mux *http.ServeMux, errors ErrorWriter, hint string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		NameRequest(w, r)
		allow := allowed(mux, r)
		if len(allow) == 0 {
			errors.Write(w, r, problem.NotFound.With("there is nothing at this path%s", hint))
			return
		}
		list := strings.Join(allow, ", ")
		if r.Method == http.MethodOptions {
			w.Header().Set("Allow", list)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		errors.Write(w, r, problem.MethodNotAllowed.With("this resource takes %s", list).WithHeader("Allow", list))
	})
}

// allowed lists the methods of a path. If the path has routes of its own, such as /v1/events/batch, routes with a wildcard,
// such as /v1/events/{id}, do not count, because no event has that id.
func allowed(mux *http.ServeMux, r *http.Request) []string {
	var own, all []string
	for _, method := range routable {
		probe := *r
		probe.Method = method
		_, pattern := mux.Handler(&probe)
		_, path, found := strings.Cut(pattern, " ")
		if !found {
			continue
		}
		all = append(all, method)
		if path == r.URL.Path {
			own = append(own, method)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}
