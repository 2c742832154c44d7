package ojs_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/api/ojs"
	"github.com/godwit-hq/godwit/internal/apptest"
)

// Every response has what the HTTP binding requires, errors, refusals and repeats included.
func TestBindingOfEveryResponse(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	event := `{"specversion":"1.0","id":"evt_019539a4-b68c-7def-8000-1a2b3c4d5e6f","type":"job.completed","source":"ojs://shop/queues/a","time":"2026-02-12T10:30:00Z","data":{}}`
	key := map[string]string{"Idempotency-Key": `"one subscription 0001"`}
	for _, c := range []struct {
		call   apptest.Call
		status int
	}{
		{apptest.Call{Path: "/ojs/manifest"}, 200},
		{apptest.Call{Path: "/ojs/v1/webhooks/subscriptions"}, 200},
		{apptest.Call{Path: "/ojs/v1/webhooks/subscriptions", Key: "gdw_nonsense"}, 401},
		{apptest.Call{Path: "/ojs/v1/nothing"}, 404},
		{apptest.Call{Method: "DELETE", Path: "/ojs/v1/events"}, 405},
		{apptest.Call{Path: "/ojs/v1/webhooks/subscriptions", Body: `{`}, 400},
		{apptest.Call{Path: "/ojs/v1/webhooks/subscriptions", Body: `{"url":"http://127.0.0.1:9/","events":["*"]}`, Header: key}, 201},
		{apptest.Call{Path: "/ojs/v1/webhooks/subscriptions", Body: `{"url":"http://127.0.0.1:9/","events":["*"]}`, Header: key}, 201}, // kept
		{apptest.Call{Path: "/ojs/v1/events", Body: event}, 202},
		{apptest.Call{Path: "/ojs/v1/events", Body: event}, 202}, // kept
	} {
		for accept, media := range map[string]string{"": "application/openjobspec+json", "application/json": "application/json"} {
			call := c.call
			call.Header = map[string]string{"X-Request-Id": "mine-1"}
			for name, value := range c.call.Header {
				call.Header[name] = value
			}
			if accept != "" {
				call.Header["Accept"] = accept
			}
			r := srv.Call(call)
			if r.Status != c.status || r.Header.Get("Content-Type") != media || r.Header.Get("OJS-Version") != "1.0" || r.Header.Get("X-Request-Id") != "mine-1" {
				t.Errorf("%s %s with Accept %q: %d %v %s", call.Method, call.Path, accept, r.Status, r.Header, r.Body)
			}
		}
	}
	// An id with unsafe characters is not echoed.
	r := srv.Call(apptest.Call{Path: "/ojs/manifest", Header: map[string]string{"X-Request-Id": "<script>"}})
	if id := r.Header.Get("X-Request-Id"); id == "" || strings.Contains(id, "<") || id != r.Header.Get("Request-Id") {
		t.Errorf("X-Request-Id %q", id)
	}
	var m struct {
		Level   *int   `json:"conformance_level"`
		Version string `json:"ojs_version"`
		Backend string `json:"backend"`
	}
	srv.Must(apptest.Call{Path: "/ojs/manifest"}, &m)
	if m.Level == nil || *m.Level != 0 || m.Version != "1.0" || m.Backend != "sqlite" {
		t.Errorf("manifest %+v", m)
	}
}

// A client that asks for a version that this server does not implement is refused. The manifest tells it the version.
func TestVersionsThatAreNotImplemented(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	for version, want := range map[string]int{
		"1": 200, "1.0": 200, "1.0.0": 200, "1.0.0-rc.1": 200, " 1.0 ": 200, "2.0": 422, "1.1": 422, "": 422, "1.0.0-rc.2": 422, "nonsense": 422,
	} {
		r := srv.Call(apptest.Call{Path: "/ojs/v1/webhooks/subscriptions", Header: map[string]string{"OJS-Version": version}})
		if r.Status != want || r.Header.Get("OJS-Version") != "1.0" || want == 422 && !strings.Contains(string(r.Body), `"code":"unsupported"`) {
			t.Errorf("OJS-Version %q: %d %s", version, r.Status, r.Body)
		}
		for _, path := range []string{"/ojs/manifest", "/ojs/v1/manifest"} {
			if r := srv.Call(apptest.Call{Path: path, Header: map[string]string{"OJS-Version": version}}); r.Status != 200 {
				t.Errorf("%s with OJS-Version %q: %d %s", path, version, r.Status, r.Body)
			}
		}
	}
}

func TestNegotiation(t *testing.T) {
	own, plain := "application/openjobspec+json", "application/json"
	for accept, want := range map[string]string{
		"": own, "*/*": own, "application/*": own, own: own, own + ", " + plain: own, plain + ", " + own: own, "text/html": own,
		plain: plain, plain + ", text/plain, */*": plain, plain + "; charset=utf-8": plain, own + ";q=0.5, " + plain: plain, plain + ";q=0.5, " + own: own,
		plain + ";q=0": own, own + ";q=0, */*": plain, "nonsense;;": own,
	} {
		h := ojs.Binding(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{}"))
		}))
		r, w := httptest.NewRequest(http.MethodGet, "/ojs/manifest", nil), httptest.NewRecorder()
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %s, want %s", accept, got, want)
		}
	}
}
