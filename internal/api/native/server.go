package native

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/room"
	"github.com/godwit-hq/godwit/internal/problem"
)

type server struct {
	cfg      Config
	mux      *http.ServeMux
	api      huma.API
	document []byte            // the OpenAPI document
	patterns map[string]access // what is registered, by mux pattern
	bodies   *room.Room        // of requests under way
	streams  *room.Room
	exports  *room.Room
}

// requestIDFrom is the header by which a caller may name its request.
const requestIDFrom = "X-Request-Id"

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()[problem.RequestIDHeader] = []string{requestID(r)}
	defer s.recover(w, r)
	s.mux.ServeHTTP(w, r)
}

func (s *server) recover(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.fail(w, r, fmt.Errorf("handler panicked: %v\n%s", v, debug.Stack()))
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Problems.Write(w, r, err)
}

// requestID is the caller's name for the request where it is harmless, or a new one.
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

// unmatched answers what no route takes: with 405 and Allow when the path is known under other methods.
func (s *server) unmatched(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
		probe := *r
		probe.Method = method
		if _, pattern := s.mux.Handler(&probe); pattern != "/" && pattern != "" {
			allow = append(allow, method)
		}
	}
	if len(allow) == 0 {
		s.fail(w, r, problem.NotFound.With("there is nothing at this path; /openapi.json lists what there is"))
		return
	}
	s.fail(w, r, problem.MethodNotAllowed.With("this resource takes %s", strings.Join(allow, ", ")).
		WithHeader("Allow", strings.Join(allow, ", ")))
}
