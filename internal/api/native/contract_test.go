package native

import (
	"bytes"
	"encoding/json"
	"flag"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write spec/openapi.json anew")

// A contract checks responses against the OpenAPI document that the server serves.
type contract struct {
	api      *server
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
}

const docURL = "https://godwit.example/openapi.json"

func newContract(t testing.TB, api *server) *contract {
	t.Helper()
	text, err := api.document()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &contract{api: api, doc: doc.(map[string]any), compiler: jsonschema.NewCompiler()}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(docURL, doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// check fails the test if the document does not allow the response.
func (c *contract) check(t testing.TB, r *http.Request, a *answer) {
	t.Helper()
	_, pattern := c.api.mux.Handler(r)
	if pattern == "/" || pattern == "GET /openapi.json" {
		return
	}
	method, path, _ := strings.Cut(pattern, " ")
	if r.Method == http.MethodHead {
		return
	}
	responses := dig(c.doc, "paths", path, strings.ToLower(method), "responses")
	if responses == nil {
		t.Fatalf("%s is not documented", pattern)
	}
	status := strconv.Itoa(a.status)
	response, ok := dig(responses, status).(map[string]any)
	if !ok {
		t.Fatalf("%s: status %d is not documented: %s", pattern, a.status, a.body)
	}
	at := []string{"paths", path, strings.ToLower(method), "responses", status}
	if ref, shared := response["$ref"].(string); shared {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		response = dig(c.doc, at...).(map[string]any)
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 {
		if len(a.body) > 0 {
			t.Errorf("%s: %d has a body that is not documented: %s", pattern, a.status, a.body)
		}
		return
	}
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		t.Fatalf("%s: Content-Type %q", pattern, a.header.Get("Content-Type"))
	}
	if content[media] == nil {
		if content["*/*"] != nil {
			return
		}
		t.Fatalf("%s: %d as %s is not documented", pattern, a.status, media)
	}
	documents := [][]byte{a.body}
	switch media {
	case "application/x-ndjson":
		documents = bytes.Split(bytes.TrimSpace(a.body), []byte("\n"))
	case "text/event-stream":
		return // another test checks it line by line
	}
	pointer := strings.Join(append(at, "content", media, "schema"), "\x00")
	for _, d := range documents {
		if len(d) > 0 {
			c.validate(t, pattern, pointer, d)
		}
	}
}

func (c *contract) validate(t testing.TB, pattern, pointer string, body []byte) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "+", "\x00", "/")
	schema, err := c.compiler.Compile(docURL + "#/" + escape.Replace(pointer))
	if err != nil {
		t.Fatalf("%s: compile schema: %v", pattern, err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: body is not JSON: %q", pattern, body)
	}
	if err := schema.Validate(instance); err != nil {
		t.Errorf("%s: response does not fit the document: %v\n%s", pattern, err, body)
	}
}

func dig(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func TestEveryRouteIsDocumented(t *testing.T) {
	h := newHarness(t)
	documented := map[string]bool{}
	for path, item := range h.contract.doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			pattern := strings.ToUpper(method) + " " + path
			documented[pattern] = true
			if _, registered := h.api.patterns[pattern]; !registered {
				t.Errorf("%s is documented but not served", pattern)
			}
			o := op.(map[string]any)
			for _, member := range []string{"operationId", "summary", "description", "tags", "security"} {
				if o[member] == nil {
					t.Errorf("%s has no %s", pattern, member)
				}
			}
		}
	}
	for pattern, need := range h.api.patterns {
		if need.Need == nil {
			continue // the document itself
		}
		if !documented[pattern] {
			t.Errorf("%s is served but not documented", pattern)
		}
	}
	if len(documented) < 35 {
		t.Errorf("only %d operations", len(documented))
	}
}

// TestRoutesNeedAKey walks over every route without credentials and with a key that lacks the scope.
func TestRoutesNeedAKey(t *testing.T) {
	h := newHarness(t)
	for pattern, need := range h.api.patterns {
		if need.Need == nil {
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.ReplaceAll(path, "{id}", "x")
		a := h.do(call{method: method, path: path, token: "-"})
		if a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a key: %d", pattern, a.status)
		}
		for _, token := range []string{"gdw_" + strings.Repeat("A", 43), "nonsense", strings.Repeat("x", 5000)} {
			if a := h.do(call{method: method, path: path, token: token}); a.status != 401 {
				t.Errorf("%s with a bad key: %d", pattern, a.status)
			}
		}
		for scope, token := range h.keysWithout(need) {
			a := h.do(call{method: method, path: path, token: token})
			if p := a.problem(); a.status != 403 || p.Code != "forbidden" || !strings.Contains(p.Detail, string(need.Need[0])) {
				t.Errorf("%s with %s alone: %d %s", pattern, scope, a.status, a.body)
			}
		}
	}
}

// TestDocumentIsTheOneInTheRepository keeps the copy that SDKs are generated from up to date. Rewrite it with -update.
func TestDocumentIsTheOneInTheRepository(t *testing.T) {
	h := newHarness(t)
	a := h.do(call{method: "GET", path: "/openapi.json", token: "-"}).want(200)
	var doc map[string]any
	a.into(&doc)
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi is %v", doc["openapi"])
	}
	file := filepath.Join("..", "..", "..", "spec", "openapi.json")
	if *update {
		must(t, os.WriteFile(file, a.body, 0o644))
	}
	kept, err := os.ReadFile(file)
	must(t, err)
	if !bytes.Equal(kept, a.body) {
		t.Error("spec/openapi.json is not what is served: run go test ./internal/api/native -run TestDocument -update")
	}
	if !json.Valid(kept) {
		t.Error("spec/openapi.json is not JSON")
	}
}

// Allow lists the methods that the document has for the path.
func TestOptionsListTheMethods(t *testing.T) {
	h := newHarness(t)
	for path, item := range h.contract.doc["paths"].(map[string]any) {
		var want []string
		for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
			if item.(map[string]any)[strings.ToLower(method)] != nil {
				want = append(want, method)
				if method == "GET" {
					want = append(want, "HEAD")
				}
			}
		}
		a := h.do(call{method: "OPTIONS", path: strings.NewReplacer("{id}", "x", "{name}", "x", "{secret}", "x").Replace(path), token: "-"})
		if got := a.header.Get("Allow"); a.status != 204 || got != strings.Join(want, ", ") {
			t.Errorf("%s: %d, Allow %q, want %q", path, a.status, got, want)
		}
	}
}
