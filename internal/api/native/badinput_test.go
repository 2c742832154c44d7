package native

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestBadInput: refusals name the field, nothing is stored, and the server keeps running.
func TestBadInput(t *testing.T) {
	h := newHarness(t)
	h.endpoint("http://127.0.0.1:9/", `"patterns":["never"]`)
	before := h.counts()
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name   string
		call   call
		status int
		kind   *problem.Kind
		field  string
	}{
		// Invalid JSON.
		{"malformed", call{path: "/v1/endpoints", body: `{"url":`}, 400, problem.MalformedJSON, "body"},
		{"trailing", call{path: "/v1/endpoints", body: `{"url":"https://a.example/"} x`}, 400, problem.MalformedJSON, "body"},
		{"no body", call{path: "/v1/endpoints"}, 400, problem.InvalidRequest, "body"},
		{"not an object", call{path: "/v1/endpoints", body: `[]`}, 400, problem.InvalidRequest, "body"},
		{"null", call{path: "/v1/endpoints", body: `null`}, 400, problem.InvalidRequest, "body"},
		{"deeply nested", call{path: "/v1/endpoints", body: strings.Repeat(`[`, 100000)}, 400, problem.MalformedJSON, "body"},
		{"envelope malformed", call{path: "/v1/events", body: `{"type":"a","data":{]}`}, 400, problem.MalformedJSON, "body"},
		{"envelope trailing", call{path: "/v1/events", body: `{"type":"a","data":1}{}`}, 400, problem.MalformedJSON, "body"},
		{"envelope nested", call{path: "/v1/events", body: `{"type":"a","data":` + strings.Repeat(`[`, 100000)}, 400, problem.MalformedJSON, "body"},
		{"envelope empty", call{path: "/v1/events", body: ``, header: []string{"Content-Type", "application/json"}}, 400, problem.MalformedJSON, "body"},
		{"batch malformed", call{path: "/v1/events/batch", body: `{"events":[{]}`}, 400, problem.MalformedJSON, "body"},

		// null is not the same as absent.
		{"null description", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","description":null}`}, 400, problem.InvalidRequest, "description"},
		{"null in policy", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","policy":{"max_retries":null}}`}, 400, problem.InvalidRequest, "policy.max_retries"},
		{"null in a list", call{path: "/v1/sources", body: `{"name":"a","scheme":"eds","credentials":[{"id":null}]}`}, 400, problem.InvalidRequest, "credentials.id"},
		{"null expiry", call{path: "/v1/keys", body: `{"name":"a","scopes":["read"],"expires_at":null}`}, 400, problem.InvalidRequest, "expires_at"},
		{"null name", call{method: "PATCH", path: "/v1/tenants/" + h.tenant.ID.String(), body: `{"name":null}`}, 400, problem.InvalidRequest, "name"},

		// Parameters that are empty or given twice.
		{"empty until", call{method: "GET", path: "/v1/events?until="}, 400, problem.InvalidRequest, "until"},
		{"empty endpoint", call{method: "GET", path: "/v1/deliveries?endpoint="}, 400, problem.InvalidRequest, "endpoint"},
		{"repeated limit", call{method: "GET", path: "/v1/events?limit=1&limit=2"}, 400, problem.InvalidRequest, "limit"},

		// Wrong types and shapes.
		{"number for url", call{path: "/v1/endpoints", body: `{"url":1}`}, 400, problem.InvalidRequest, "url"},
		{"url missing", call{path: "/v1/endpoints", body: `{}`}, 400, problem.InvalidRequest, "url"},
		{"unknown member", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","colour":"red"}`}, 400, problem.InvalidRequest, "colour"},
		{"member in another case", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","Method":"PUT"}`}, 400, problem.InvalidRequest, "Method"},
		{"unknown nested", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","policy":{"retries":1}}`}, 400, problem.InvalidRequest, "policy.retries"},
		{"patterns no list", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":"*"}`}, 400, problem.InvalidRequest, "patterns"},
		{"pattern no string", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":[1]}`}, 400, problem.InvalidRequest, "patterns[0]"},
		{"header no string", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","headers":{"X-A":1}}`}, 400, problem.InvalidRequest, "headers.X-A"},
		{"float for int", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","policy":{"max_retries":1.5}}`}, 400, problem.InvalidRequest, "policy.max_retries"},
		{"huge int", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","policy":{"max_retries":1e30}}`}, 400, problem.InvalidRequest, ""},
		{"method GET", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","method":"GET"}`}, 400, problem.InvalidRequest, "method"},
		{"type no string", call{path: "/v1/events", body: `{"type":1,"data":1}`}, 400, problem.InvalidRequest, "type"},
		{"type missing", call{path: "/v1/events", body: `{"data":1}`}, 400, problem.InvalidRequest, "type"},
		{"type null", call{path: "/v1/events", body: `{"type":null,"data":1}`}, 400, problem.InvalidRequest, "type"},
		{"type twice", call{path: "/v1/events", body: `{"type":"a","type":"b","data":1}`}, 400, problem.InvalidRequest, "type"},
		{"data missing", call{path: "/v1/events", body: `{"type":"a"}`}, 400, problem.InvalidRequest, "data"},
		{"data both", call{path: "/v1/events", body: `{"type":"a","data":1,"data_base64":"AA=="}`}, 400, problem.InvalidRequest, "data"},
		{"bad base64", call{path: "/v1/events", body: `{"type":"a","data_base64":"A$"}`}, 400, problem.InvalidRequest, "data_base64"},
		{"envelope unknown", call{path: "/v1/events", body: `{"type":"a","data":1,"colour":1}`}, 400, problem.InvalidRequest, "colour"},
		{"envelope other case", call{path: "/v1/events", body: `{"Type":"a","data":1}`}, 400, problem.InvalidRequest, "Type"},
		{"attribute no string", call{path: "/v1/events", body: `{"type":"a","data":1,"attributes":{"x":1}}`}, 400, problem.InvalidRequest, "attributes.x"},
		{"attribute null", call{path: "/v1/events", body: `{"type":"a","data":1,"attributes":{"x":null}}`}, 400, problem.InvalidRequest, "attributes.x"},
		{"attribute twice", call{path: "/v1/events", body: `{"type":"a","data":1,"attributes":{"x":"1","x":"2"}}`}, 400, problem.InvalidRequest, "attributes.x"},
		{"attributes no object", call{path: "/v1/events", body: `{"type":"a","data":1,"attributes":null}`}, 400, problem.InvalidRequest, "attributes"},
		{"base64 in numbers", call{path: "/v1/events", body: `{"type":"a","data_base64":[1,2]}`}, 400, problem.InvalidRequest, "data_base64"},
		{"envelope list", call{path: "/v1/events", body: `[]`}, 400, problem.InvalidRequest, "body"},
		{"batch empty", call{path: "/v1/events/batch", body: `{"events":[]}`}, 400, problem.InvalidRequest, "events"},
		{"batch missing", call{path: "/v1/events/batch", body: `{}`}, 400, problem.InvalidRequest, "events"},
		{"batch no list", call{path: "/v1/events/batch", body: `{"events":{}}`}, 400, problem.InvalidRequest, "events"},
		{"batch unknown", call{path: "/v1/events/batch", body: `{"events":[],"x":1}`}, 400, problem.InvalidRequest, "x"},
		{"batch item no object", call{path: "/v1/events/batch", body: `{"events":[1]}`}, 400, problem.InvalidRequest, "events[0]"},
		{"key for event in body", call{path: "/v1/events", body: `{"type":"a","data":1,"idempotency_key":"0123456789abcdef"}`}, 422, problem.Invalid, "idempotency_key"},

		// Values out of bounds.
		{"bad pattern", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":["a.*.b"]}`}, 422, problem.Invalid, "patterns[0]"},
		{"empty pattern", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":[""]}`}, 422, problem.Invalid, "patterns[0]"},
		{"pattern twice", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":["a","a"]}`}, 422, problem.Invalid, "patterns[1]"},
		{"no patterns", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":[]}`}, 422, problem.Invalid, "patterns"},
		{"many patterns", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","patterns":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 101), ",") + `]}`}, 422, problem.Invalid, "patterns"},
		{"unknown profile", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","profile":"soap"}`}, 422, problem.Invalid, "profile"},
		{"long description", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","description":"` + long + `"}`}, 422, problem.Invalid, "description"},
		{"long metadata", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","metadata":{"a":"` + strings.Repeat(long, 3) + `"}}`}, 422, problem.Invalid, "metadata.a"},
		{"empty filter", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","filter":{"a":[]}}`}, 422, problem.Invalid, "filter.a"},
		{"filter name", call{path: "/v1/endpoints", body: `{"url":"https://a.example/","filter":{"a b":["x"]}}`}, 422, problem.Invalid, "filter.a b"},
		{"private address", call{path: "/v1/endpoints", body: `{"url":"https://10.1.2.3/"}`}, 422, problem.Invalid, "url"},
		{"bad type", call{path: "/v1/events", body: `{"type":"a..b","data":1}`}, 422, problem.Invalid, "type"},
		{"bad type in query", call{path: "/v1/events?type=a%20b", body: `{}`}, 422, problem.Invalid, "type"},
		{"empty type in query", call{path: "/v1/events?type=", body: `{}`}, 422, problem.Invalid, "type"},
		{"long type", call{path: "/v1/events?type=" + long, body: `{}`}, 422, problem.Invalid, "type"},
		{"type wild", call{path: "/v1/events?type=a.*", body: `{}`}, 422, problem.Invalid, "type"},
		{"attribute name", call{path: "/v1/events?type=a&attr.b%20c=1", body: `{}`}, 422, problem.Invalid, "attributes.b c"},
		{"attribute value", call{path: "/v1/events?type=a&attr.b=" + long, body: `{}`}, 422, problem.Invalid, "attributes.b"},
		{"attribute control", call{path: "/v1/events?type=a&attr.b=x%0Ay", body: `{}`}, 422, problem.Invalid, "attributes.b"},
		{"many attributes", call{path: "/v1/events?type=a" + manyAttributes(33), body: `{}`}, 422, problem.Invalid, "attributes"},
		{"bad content_type", call{path: "/v1/events", body: `{"type":"a","data":1,"content_type":"x\r\ny: z"}`}, 422, problem.Invalid, "content_type"},
		{"wild content_type", call{path: "/v1/events", body: `{"type":"a","data":1,"content_type":"*/*"}`}, 422, problem.Invalid, "content_type"},

		// Parameters.
		{"unknown parameter", call{path: "/v1/events?type=a&colour=red", body: `{}`}, 400, problem.InvalidRequest, "colour"},
		{"type twice in query", call{path: "/v1/events?type=a&type=b", body: `{}`}, 400, problem.InvalidRequest, "type"},
		{"type in two places", call{path: "/v1/events?type=a", body: `{}`, header: []string{"Godwit-Event-Type", "b"}}, 400, problem.InvalidRequest, "type"},
		{"attributes without type", call{path: "/v1/events?attr.a=1", body: `{}`}, 400, problem.InvalidRequest, "type"},
		{"bad query", call{path: "/v1/events?type=%zz", body: `{}`}, 400, problem.InvalidRequest, "query"},
		{"limit 0", call{method: "GET", path: "/v1/events?limit=0"}, 400, problem.InvalidRequest, "limit"},
		{"limit 201", call{method: "GET", path: "/v1/events?limit=201"}, 400, problem.InvalidRequest, "limit"},
		{"limit x", call{method: "GET", path: "/v1/events?limit=x"}, 400, problem.InvalidRequest, "limit"},
		{"bad cursor", call{method: "GET", path: "/v1/events?cursor=abc"}, 400, problem.InvalidRequest, "cursor"},
		{"cursor of another list", call{method: "GET", path: "/v1/events?cursor=" + cursor(listKeys, [16]byte{1})}, 400, problem.InvalidRequest, "cursor"},
		{"bad time", call{method: "GET", path: "/v1/events?since=yesterday"}, 400, problem.InvalidRequest, "since"},
		{"bad status", call{method: "GET", path: "/v1/deliveries?status=lost"}, 400, problem.InvalidRequest, "status"},
		{"bad id", call{method: "GET", path: "/v1/deliveries?endpoint=evt_x"}, 400, problem.InvalidRequest, "endpoint"},
		{"unknown list parameter", call{method: "GET", path: "/v1/deliveries?colour=red"}, 400, problem.InvalidRequest, "colour"},
		{"malformed list query", call{method: "GET", path: "/v1/deliveries?endpoint=%zz"}, 400, problem.InvalidRequest, "query"},
		{"empty export parameter", call{method: "GET", path: "/v1/dead-letters/export?endpoint="}, 400, problem.InvalidRequest, "endpoint"},
		{"repeated export parameter", call{method: "GET", path: "/v1/dead-letters/export?type=a&type=b"}, 400, problem.InvalidRequest, "type"},
		{"malformed export query", call{method: "GET", path: "/v1/dead-letters/export?endpoint=%zz"}, 400, problem.InvalidRequest, "query"},
		{"bad export time", call{method: "GET", path: "/v1/dead-letters/export?until=yesterday"}, 400, problem.InvalidRequest, "until"},
		{"batch parameter", call{path: "/v1/events/batch?type=a", body: `{"events":[{"type":"a","data":1}]}`}, 400, problem.InvalidRequest, "type"},
		{"payload parameter", call{method: "GET", path: "/v1/events/evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f/body?colour=red"}, 400, problem.InvalidRequest, "colour"},
		{"export parameter", call{method: "GET", path: "/v1/dead-letters/export?colour=red"}, 400, problem.InvalidRequest, "colour"},
		{"id of another kind", call{method: "GET", path: "/v1/endpoints/evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"}, 400, problem.InvalidRequest, "id"},
		{"no such id", call{method: "GET", path: "/v1/endpoints/sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"}, 404, problem.NotFound, ""},
		{"empty tenant header", call{method: "GET", path: "/v1/events", header: []string{"Godwit-Tenant", ""}}, 400, problem.InvalidRequest, "Godwit-Tenant"},
		{"unknown tenant", call{method: "GET", path: "/v1/events", header: []string{"Godwit-Tenant", "acme"}}, 404, problem.NotFound, ""},
		{"unknown environment", call{method: "GET", path: "/v1/events", header: []string{"Godwit-Environment", "staging"}}, 404, problem.NotFound, ""},
		{"environment where a tenant is meant", call{method: "GET", path: "/v1/events", header: []string{"Godwit-Environment", "default"}}, 400, problem.InvalidRequest, "Godwit-Tenant"},
		{"no such tenant", call{method: "GET", path: "/v1/events", header: []string{"Godwit-Tenant", "ten_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"}}, 404, problem.NotFound, ""},

		// Media types and encodings.
		{"management as text", call{path: "/v1/endpoints", body: `{}`, header: []string{"Content-Type", "text/plain"}}, 415, problem.UnsupportedMediaType, "Content-Type"},
		{"management untyped", call{path: "/v1/endpoints", body: `{}`, noType: true}, 415, problem.UnsupportedMediaType, "Content-Type"},
		{"envelope as text", call{path: "/v1/events", body: `{}`, header: []string{"Content-Type", "text/plain"}}, 415, problem.UnsupportedMediaType, "Content-Type"},
		{"batch as text", call{path: "/v1/events/batch", body: `{}`, header: []string{"Content-Type", "text/plain"}}, 415, problem.UnsupportedMediaType, "Content-Type"},
		{"payload of no type", call{path: "/v1/events?type=a", body: `x`, header: []string{"Content-Type", "nonsense"}}, 415, problem.UnsupportedMediaType, "Content-Type"},
		{"payload of long type", call{path: "/v1/events?type=a", body: `x`, header: []string{"Content-Type", "text/" + strings.Repeat("x", 300)}}, 415, problem.UnsupportedMediaType, "Content-Type"},
		{"encoded payload", call{path: "/v1/events?type=a", body: `x`, header: []string{"Content-Encoding", "gzip"}}, 415, problem.UnsupportedMediaType, "Content-Encoding"},

		// Bodies that are too large.
		{"giant event", call{path: "/v1/events?type=a", body: strings.Repeat("x", 1<<20+1)}, 413, problem.TooLarge, ""},
		{"giant management", call{path: "/v1/endpoints", body: `{"url":"` + strings.Repeat("x", 1<<20) + `"}`}, 413, problem.TooLarge, ""},
		{"giant batch", call{path: "/v1/events/batch", body: strings.Repeat("x", 16<<20+1)}, 413, problem.TooLarge, ""},

		// Keys and tenants.
		{"key without scopes", call{path: "/v1/keys", body: `{"name":"x","scopes":[]}`}, 422, problem.Invalid, "scopes"},
		{"key with odd scope", call{path: "/v1/keys", body: `{"name":"x","scopes":["root"]}`}, 400, problem.InvalidRequest, "scopes[0]"},
		{"key without name", call{path: "/v1/keys", body: `{"name":"","scopes":["read"]}`}, 422, problem.Invalid, "name"},
		{"key of the past", call{path: "/v1/keys", body: `{"name":"x","scopes":["read"],"expires_at":"2020-01-01T00:00:00Z"}`}, 422, problem.Invalid, "expires_at"},
		{"key replacing nothing", call{path: "/v1/keys", body: `{"name":"x","scopes":["read"],"replaces":"key_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"}`}, 422, problem.Invalid, "replaces"},
		{"key replacing no id", call{path: "/v1/keys", body: `{"name":"x","scopes":["read"],"replaces":"x"}`}, 400, problem.InvalidRequest, "replaces"},
		{"tenant without name", call{path: "/v1/tenants", body: `{"name":""}`}, 422, problem.Invalid, "name"},
		{"tenant with control name", call{path: "/v1/tenants", body: `{"name":"a\u0007"}`}, 422, problem.Invalid, "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.call.method == "" {
				c.call.method = "POST"
			}
			h.t = t
			h.do(c.call).refused(c.status, c.kind, c.field)
		})
	}
	h.t = t
	if after := h.counts(); after != before {
		t.Errorf("something was stored: %+v, before %+v", after, before)
	}
	h.publish("still.there", `{}`)
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "&attr.a%d=1", i)
	}
	return b.String()
}

func TestHTTPDuties(t *testing.T) {
	trace.Covers(t, "EDS-SCP-3")
	h := newHarness(t)
	a := h.do(call{method: "GET", path: "/v1/events", token: "-"}).refused(401, problem.Unauthorized, "")
	if got := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
		t.Errorf("WWW-Authenticate is %q", got)
	}
	for path, want := range map[string]string{
		"/v1/events":        "GET, HEAD, POST",
		"/v1/events/batch":  "POST",
		"/v1/keys/x":        "GET, HEAD, DELETE",
		"/v1/tenants":       "GET, HEAD, POST",
		"/v1/events/x/body": "GET, HEAD",
	} {
		// GET /v1/events/batch reads an event with the id "batch".
		method := "PUT"
		a := h.do(call{method: method, path: path, body: `{}`}).refused(405, problem.MethodNotAllowed, "")
		if got := a.header.Get("Allow"); got != want && path != "/v1/events/batch" {
			t.Errorf("%s: Allow is %q, want %q", path, got, want)
		}
	}
	h.get("/v1/nothing").refused(404, problem.NotFound, "")
	h.get("/v1").refused(404, problem.NotFound, "")
	if a := h.do(call{method: "HEAD", path: "/v1/events"}); a.status != 200 || len(a.body) != 0 {
		t.Errorf("HEAD: %d %q", a.status, a.body)
	}
	h.post("/v1/endpoints", `{"url":"https://a.example/"}`).want(201)
	for _, a := range []*answer{h.get("/v1/events"), h.post("/v1/events?type=a", `1`), h.get("/v1/nothing")} {
		if a.header.Get("Request-Id") == "" {
			t.Error("no request id")
		}
	}
	a = h.do(call{method: "GET", path: "/v1/nothing", header: []string{"X-Request-Id", "my-own.name_1"}})
	if a.header.Get("Request-Id") != "my-own.name_1" || a.problem().RequestID != "my-own.name_1" {
		t.Errorf("request id is %q", a.header.Get("Request-Id"))
	}
	a = h.do(call{method: "GET", path: "/v1/nothing", header: []string{"X-Request-Id", "<script>"}})
	if strings.Contains(string(a.body), "script") {
		t.Error("a hostile request id is repeated")
	}
}

// TestRequestIDsReachEveryProblem includes requests that run under a key, and those that huma rejects.
func TestRequestIDsReachEveryProblem(t *testing.T) {
	h := newHarness(t)
	for _, c := range []call{
		{method: "POST", path: "/v1/endpoints", body: `{"url":"ftp://x/"}`},
		{method: "POST", path: "/v1/endpoints", body: `{"url":"ftp://x/"}`, header: []string{"Idempotency-Key", key1}},
		{method: "POST", path: "/v1/endpoints", body: `{"url":1}`, header: []string{"Idempotency-Key", key2}},
		{method: "POST", path: "/v1/endpoints", body: `{"url":1}`},
		{method: "POST", path: "/v1/events", body: `{`},
	} {
		a := h.do(c)
		if p := a.problem(); p.RequestID == "" || p.RequestID != a.header.Get("Request-Id") || !strings.HasPrefix(p.Type, "https://godwit.example/docs/") {
			t.Errorf("%+v: %s", c, a.body)
		}
	}
}

func TestPanicsShowNothing(t *testing.T) {
	h := newHarness(t)
	h.api.mux.HandleFunc("GET /v1/panic", func(http.ResponseWriter, *http.Request) { panic("password is hunter2") })
	req, err := http.NewRequest("GET", h.http.URL+"/v1/panic", nil)
	must(t, err)
	resp, err := h.http.Client().Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != 500 || !strings.Contains(string(body), `"internal"`) || strings.Contains(string(body), "hunter2") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if !strings.Contains(h.log.String(), "hunter2") || !strings.Contains(h.log.String(), resp.Header.Get("Request-Id")) {
		t.Error("the log does not tell what happened")
	}
	h.publish("still.there", `{}`)
}
