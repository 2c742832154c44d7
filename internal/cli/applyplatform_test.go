package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// platformFiles describe an environment with shared event types, each with a schema in a file of its own, and tenants, each with an
// endpoint in a file of its own.
func platformFiles(tenants, types int) files {
	out := files{"environments.yaml": "environments: {production: {name: Production, event_validation: strict}}\n"}
	list := "environment: production\nevent_types:\n"
	for i := range types {
		list += fmt.Sprintf("  shop.type%d: {description: Type %d, schema: {file: type%d.json}}\n", i, i, i)
		properties := `"id": {"type": "string"}`
		for j := range 20 {
			properties += fmt.Sprintf(`, "member%d": {"type": "integer"}`, j)
		}
		out[fmt.Sprintf("types/type%d.json", i)] = `{"type": "object", "required": ["id"], "properties": {` + properties + `}}`
	}
	out["types/types.yaml"] = list
	for i := range tenants {
		out[fmt.Sprintf("tenants/customer-%d.yaml", i)] = fmt.Sprintf(
			"environment: production\ntenants:\n  customer-%d:\n    name: Customer %d\n    endpoints:\n      main: {url: 'https://customer-%d.example.com/', patterns: [shop.type%d]}\n",
			i, i, i, i%types)
	}
	return out
}

// applyPlatform applies a platform twice, and posts an event for one of its tenants. It returns how long each took.
func applyPlatform(t testing.TB, srv *apptest.Server, tenants, types int) (first, again time.Duration) {
	t.Helper()
	u := at(t, srv)
	dir := platformFiles(tenants, types).write(t, t.TempDir())
	began := time.Now()
	if _, stderr, err := u.apply(dir); err != nil || !strings.Contains(stderr, fmt.Sprintf("%d created, 0 changed, 0 deleted", 2*tenants+types+1)) {
		t.Fatalf("%v\n%s", err, stderr)
	}
	first, began = time.Since(began), time.Now()
	u.same(dir)
	again = time.Since(began)
	for body, want := range map[string]int{`{"id":"a","member1":1}`: http.StatusAccepted, `{"member1":1}`: http.StatusUnprocessableEntity} {
		r := srv.Call(apptest.Call{
			Path: "/v1/events?type=shop.type1", Header: map[string]string{"Godwit-Environment": "production", "Godwit-Tenant": fmt.Sprintf("customer-%d", tenants/2)}, Body: body,
		})
		if r.Status != want {
			t.Errorf("%s: got %d %s, want %d", body, r.Status, r.Body, want)
		}
	}
	return first, again
}

// The tenants of a platform that was applied share its event types: an event is judged by the shared schema.
func TestApplyPlatform(t *testing.T) {
	applyPlatform(t, apptest.Start(t, apptest.Options{}), 250, 5) // more than a page
}

// BenchmarkApplyPlatform applies 5,000 tenants and 50 event types to a server on SQLite, and again:
//
//	go test ./internal/cli -run '^$' -bench ApplyPlatform -benchtime 1x
func BenchmarkApplyPlatform(b *testing.B) {
	for range b.N {
		first, again := applyPlatform(b, apptest.Start(b, apptest.Options{}), 5000, 50)
		b.ReportMetric(first.Seconds(), "s/apply")
		b.ReportMetric(again.Seconds(), "s/again")
	}
}
