package cybercube

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestSameOnEveryStore runs one scenario on each store and compares the API's responses, except for ids: fields, states and
// orders are the same on every store.
func TestSameOnEveryStore(t *testing.T) {
	trace.Covers(t, "CCW-DB-9")
	stories := map[string][]any{}
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(500))
		ep := r.endpoint("/a", object{"description": "x", "events": []string{"project.*"}, "filter": object{"resource_ids": []string{"PRJ-X2M8KD-F"}}})
		id := r.publish("project.created")
		r.exhaust()
		r.sink.Script("/a", ok)
		r.pass(time.Hour)
		r.replay(id, ep)
		r.settle()
		told := []any{r.show(ep), r.logs(ep, ""), r.failures(ep), r.list("/endpoints")}
		stories[o.Store+map[bool]string{true: "postgres", false: "sqlite"}[o.Postgres]] = anonymous(told).([]any)
	})
	sameJSON(t, "PostgreSQL against SQLite", stories["postgres"], stories["sqlite"])
}

// anonymous replaces the values that are random in each run.
func anonymous(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = anonymous(v[i])
		}
		return out
	case []object:
		out := make([]any, len(v))
		for i := range v {
			out[i] = anonymous(v[i])
		}
		return out
	case object:
		return anonymous(map[string]any(v))
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			switch name {
			case "id", "event_id", "endpoint_id", "account_id", "delivery_id", "secret_hint", "href", "url":
				out[name] = "…"
			default:
				out[name] = anonymous(value)
			}
		}
		return out
	}
	return v
}
