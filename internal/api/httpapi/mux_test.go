package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
)

// A Mux chooses as an http.ServeMux does, for routes without wildcards as well as for all others.
func TestMuxChoosesAsServeMux(t *testing.T) {
	answer := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Answer", name+"|"+r.Pattern+"|"+r.PathValue("id"))
		}
	}
	inner := httpapi.NewMux()
	outer, plainInner, plain := httpapi.NewMux(), http.NewServeMux(), http.NewServeMux()
	for _, pattern := range []string{"POST /v1/events", "GET /v1/events", "GET /v1/events/{id}", "GET /v1/events/latest", "GET /v1/tree/"} {
		inner.Handle(pattern, answer(pattern))
		plainInner.Handle(pattern, answer(pattern))
	}
	outer.Mount("/v1/", inner)
	plain.Handle("/v1/", plainInner)
	outer.Handle("GET /v1/health", answer("health"))
	plain.Handle("GET /v1/health", answer("health"))
	outer.Otherwise(answer("otherwise"))
	plain.Handle("/", answer("otherwise"))

	for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
		for _, target := range []string{
			"/v1/events", "/v1/events?type=a", "/v1/events/", "/v1/%65vents", "/v1%2Fevents", "//v1/events", "/v1/./events", "/v1/events/7",
			"/v1/events/latest", "/v1/tree", "/v1/tree/", "/v1/tree/x", "/v1/health", "/v1/none", "/v1", "/", "/other",
		} {
			got, want := httptest.NewRecorder(), httptest.NewRecorder()
			outer.ServeHTTP(got, httptest.NewRequest(method, target, nil))
			plain.ServeHTTP(want, httptest.NewRequest(method, target, nil))
			if got.Code != want.Code || got.Header().Get("Answer") != want.Header().Get("Answer") || got.Header().Get("Location") != want.Header().Get("Location") {
				t.Errorf("%s %s: %d %v, want %d %v", method, target, got.Code, got.Header(), want.Code, want.Header())
			}
		}
	}
}
