package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// between returns the URL of a proxy before the server. On each PUT, after the server has answered, it asks whether to lose the answer.
func between(t *testing.T, srv *apptest.Server, before func(r *http.Request), lose func(r *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			forward.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body) // to its end: only then does the server notice that a client has gone
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if before != nil {
			before(r)
		}
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		if lose != nil && lose(r) {
			panic(http.ErrAbortHandler) // the connection is closed without an answer
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

const manyTenants = `
event_types: {order.paid: {schema: {type: object}}}
tenants:
  a: {endpoints: {main: {url: 'https://a.example/'}}}
  b: {endpoints: {main: {url: 'https://b.example/'}}}
  c: {endpoints: {main: {url: 'https://c.example/'}}}
  d: {endpoints: {main: {url: 'https://d.example/'}}}
`

// A change whose answer was lost is repeated under its key and counts as made, once.
func TestApplyWhenAnswersAreLost(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	var mu sync.Mutex
	keys := map[string][]string{} // Idempotency-Key of each PUT, by path and tenant
	u.env["GODWIT_URL"] = between(t, srv, nil, func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		what := r.URL.Path + r.Header.Get("Godwit-Tenant")
		keys[what] = append(keys[what], r.Header.Get("Idempotency-Key"))
		return len(keys[what]) == 1 // the first answer to each
	})
	dir := files{"a.yaml": manyTenants}.write(t, t.TempDir())
	if _, stderr, err := u.apply(dir); err != nil || !strings.Contains(stderr, "9 created, 0 changed, 0 deleted; 0 were") ||
		!strings.Contains(stderr, "the answers with the secrets of 4 new endpoints and sources were lost") {
		t.Errorf("%v\n%s", err, stderr)
	}
	seen := map[string]bool{}
	for what, list := range keys {
		if len(list) != 2 || list[0] != list[1] || list[0] == "" || seen[list[0]] {
			t.Errorf("%s came with the keys %v", what, list)
		}
		seen[list[0]] = true
	}
	u.same(dir)
}

// A run that is stopped begins nothing more, and is completed by the next one.
func TestApplyStopped(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	var puts atomic.Int32
	u.env["GODWIT_URL"] = between(t, srv, func(r *http.Request) { // one at a time
		if puts.Add(1) == 3 {
			cancel()
			<-r.Context().Done() // until the client has gone
		}
	}, nil)
	dir := files{"a.yaml": manyTenants}.write(t, t.TempDir())
	var out, problems bytes.Buffer
	if err := u.runIn(u.session(ctx, &out, &problems), "apply", "-f", dir, "--concurrency", "1"); !errors.Is(err, ErrReported) {
		t.Errorf("got %v", err)
	}
	if puts.Load() != 3 || !strings.Contains(problems.String(), "7 not tried") || !strings.Contains(problems.String(), "run the command again to go on") {
		t.Errorf("%d changes were sent:\n%s", puts.Load(), problems.String())
	}
	if _, stderr, err := u.apply(dir); err != nil || !strings.Contains(stderr, "created") {
		t.Errorf("%v\n%s", err, stderr)
	}
	u.same(dir)
}

// An object that others changed since the plan was made is left alone.
func TestApplyLeavesWhatOthersChanged(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	dir := files{"a.yaml": "event_types: {order.paid: {description: One}}\ntenants: {acme: {name: One}}\n"}.write(t, t.TempDir())
	if _, stderr, err := u.apply(dir); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	files{"a.yaml": "event_types: {order.paid: {description: Two}}\ntenants: {acme: {name: Two}}\n"}.write(t, dir)
	direct := u.env["GODWIT_URL"]
	u.env["GODWIT_URL"] = between(t, srv, func(r *http.Request) {
		environment := map[string]string{"Godwit-Environment": "default"}
		if strings.Contains(r.URL.Path, "tenants") {
			srv.Must(apptest.Call{Method: "PATCH", Path: "/v1/tenants/acme", Header: environment, Body: `{"name":"Other"}`}, nil)
		} else {
			srv.Must(apptest.Call{Method: "PUT", Path: "/v1/event-types/order.paid", Header: environment, Body: `{"description":"Other"}`}, nil)
		}
	}, nil)
	_, stderr, err := u.apply(dir)
	if !errors.Is(err, ErrReported) || strings.Count(stderr, "it was changed by others meanwhile; run the command again to see the difference") != 2 {
		t.Errorf("%v\n%s", err, stderr)
	}
	u.env["GODWIT_URL"] = direct
	stdout, _, err := u.apply(dir)
	if err != nil || !strings.Contains(stdout, `name: "Other" → "Two"`) || !strings.Contains(stdout, `description: "Other" → "Two"`) {
		t.Errorf("%v\n%s", err, stdout)
	}
	u.same(dir)
}
