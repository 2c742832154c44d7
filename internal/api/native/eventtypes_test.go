package native

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

const orderSchema = `{"type":"object","required":["id","lines"],"properties":{"id":{"type":"string"},"lines":{"type":"array","items":{"type":"object","required":["sku"]}}}}`

func (h *harness) put(path, body string) *answer {
	h.t.Helper()
	return h.do(call{method: "PUT", path: path, body: body})
}

func TestEventTypes(t *testing.T) {
	h := newHarness(t)
	var entry EventTypeDetail
	h.put("/v1/event-types/order.created", `{"description":"An order came in","schema":`+orderSchema+`,"example":{"id":"1","lines":[]}}`).want(201).into(&entry)
	if entry.Name != "order.created" || entry.Version != 1 || len(entry.Versions) != 1 || entry.Standard != "" || entry.CreatedAt == nil {
		t.Errorf("put %+v", entry)
	}
	// The same schema in another spelling is not a new version; a different schema is. Members that are absent from the
	// request are kept or removed.
	h.put("/v1/event-types/order.created", `{"deprecated":true,"schema": {"required":["id","lines"],"properties":{"lines":{"items":{"required":["sku"],"type":"object"},"type":"array"},"id":{"type":"string"}},"type":"object"}}`).want(200).into(&entry)
	if entry.Version != 1 || !entry.Deprecated || entry.Description != "" {
		t.Errorf("the same schema: %+v", entry)
	}
	h.put("/v1/event-types/order.created", `{"schema":{"type":"object"}}`).want(200).into(&entry)
	h.put("/v1/event-types/order.created", `{"description":"Again"}`).want(200)
	entry = EventTypeDetail{}
	h.get("/v1/event-types/order.created").want(200).into(&entry)
	if entry.Version != 2 || len(entry.Versions) != 2 || string(entry.Schema) != `{"type":"object"}` || entry.Deprecated || entry.Description != "Again" || entry.Example != nil {
		t.Errorf("got %+v", entry)
	}

	for _, name := range []string{"a.a", "b.b", "job.completed"} {
		h.put("/v1/event-types/"+name, `{}`).want(201)
	}
	var names []string
	for cursor := ""; ; {
		var page list[EventType]
		h.get("/v1/event-types?limit=3" + cursor).want(200).into(&page)
		for _, e := range page.Items {
			names = append(names, e.Name)
		}
		if page.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + page.NextCursor
	}
	if got := strings.Join(names, " "); got != "a.a b.b job.completed order.created" {
		t.Errorf("listed %s", got)
	}
	h.get("/v1/event-types?cursor=zzz").refused(400, problem.InvalidRequest, "cursor")

	// The tenant's own type takes precedence over a standard's type of the same name.
	h.get("/v1/event-types/job.completed").want(200).into(&entry)
	if entry.Standard != "" {
		t.Errorf("own entry: %+v", entry)
	}
	h.do(call{method: "DELETE", path: "/v1/event-types/job.completed"}).want(204)
	h.do(call{method: "DELETE", path: "/v1/event-types/job.completed"}).refused(404, problem.NotFound, "")
	entry = EventTypeDetail{}
	h.get("/v1/event-types/job.completed").want(200).into(&entry)
	if entry.Standard != "ojs" || entry.Version != 1 || entry.Example == nil || entry.CreatedAt != nil {
		t.Errorf("built-in entry: %+v", entry)
	}
	h.get("/v1/event-types/nothing.such").refused(404, problem.NotFound, "")
	for standard, want := range map[string]int{"ojs": 23, "cybercube": 33} {
		seen := map[string]bool{}
		for cursor := ""; ; {
			var page list[EventType]
			h.get("/v1/event-types?limit=10&standard=" + standard + cursor).want(200).into(&page)
			for _, e := range page.Items {
				seen[e.Name] = e.Standard == standard
			}
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + page.NextCursor
		}
		if len(seen) != want {
			t.Errorf("%s lists %d types", standard, len(seen))
		}
	}
	h.get("/v1/event-types?standard=soap").refused(400, problem.InvalidRequest, "standard")

	// Another tenant sees none of these types.
	other, err := h.management.Tenants.Create(context.Background(), godwit.DefaultEnvironment, management.TenantSpec{Name: "other"})
	must(t, err)
	_, token := h.mint(other.ID, godwit.ScopeRead)
	var page list[EventType]
	h.do(call{method: "GET", path: "/v1/event-types", token: token}).want(200).into(&page)
	if len(page.Items) != 0 {
		t.Errorf("another tenant sees %+v", page.Items)
	}
}

func TestEventTypesRefused(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct{ path, body, field string }{
		"name":              {"/v1/event-types/a..b", `{}`, "name"},
		"schema is a list":  {"/v1/event-types/a.b", `{"schema":[]}`, "schema"},
		"wrong keyword":     {"/v1/event-types/a.b", `{"schema":{"type":"thing"}}`, "schema"},
		"remote reference":  {"/v1/event-types/a.b", `{"schema":{"$ref":"http://127.0.0.1:1/x.json"}}`, "schema"},
		"local file":        {"/v1/event-types/a.b", `{"schema":{"$ref":"file:///etc/passwd"}}`, "schema"},
		"example":           {"/v1/event-types/a.b", `{"schema":` + orderSchema + `,"example":{"id":"1","lines":[{}]}}`, "example.lines[0].sku"},
		"description":       {"/v1/event-types/a.b", `{"description":"` + strings.Repeat("x", 1001) + `"}`, "description"},
		"large schema":      {"/v1/event-types/a.b", `{"schema":{"title":"` + strings.Repeat("x", 40000) + `"}}`, "schema"},
		"another draft":     {"/v1/event-types/a.b", `{"schema":{"$schema":"http://json-schema.org/draft-07/schema#"}}`, "schema"},
		"endless recursion": {"/v1/event-types/a.b", `{"schema":{"properties":{"a":{"$ref":"#"}}}}`, "schema"},
	} {
		t.Run(name, func(t *testing.T) { h.put(c.path, c.body).refused(422, problem.Invalid, c.field) })
	}
	h.put("/v1/event-types/a.b", `{"colour":"red"}`).refused(400, problem.InvalidRequest, "colour")
	h.put("/v1/event-types/a.b", `{`).refused(400, problem.MalformedJSON, "body")
	h.do(call{method: "PUT", path: "/v1/event-types/a.b", body: `{}`, header: []string{"Content-Type", "text/plain"}}).refused(415, problem.UnsupportedMediaType, "Content-Type")
	var page list[EventType]
	if h.get("/v1/event-types").want(200).into(&page); len(page.Items) != 0 {
		t.Errorf("something was stored: %+v", page.Items)
	}
}

// Events are checked against the catalogue if the tenant enables it: single and in batches, raw and in an envelope.
func TestEventsAreHeldAgainstTheCatalogue(t *testing.T) {
	h := newHarness(t)
	h.put("/v1/event-types/order.created", `{"schema":`+orderSchema+`}`).want(201)
	h.put("/v1/event-types/order.noted", `{}`).want(201)
	wrong := `{"id":7,"lines":[{"sku":"a"},{}]}`
	post := func(body string) *answer { return h.post("/v1/events?type=order.created", body) }

	post(wrong).want(202) // validation is off
	h.validation("known")
	post(`{"id":"7","lines":[]}`).want(202)
	if a := post(wrong).refused(422, problem.Invalid, "id"); fields(t, a) != "id lines[1].sku" {
		t.Errorf("fields: %s", a.body)
	}
	post(`[`).refused(422, problem.Invalid, "body")
	h.do(call{method: "POST", path: "/v1/events?type=order.created", body: "<a/>", header: []string{"Content-Type", "text/xml"}}).refused(422, problem.Invalid, "body")
	h.post("/v1/events", `{"type":"order.created","data":`+wrong+`}`).refused(422, problem.Invalid, "data.id")
	h.post("/v1/events", `{"type":"order.created","data_base64":"AAAA"}`).refused(422, problem.Invalid, "data_base64")
	h.post("/v1/events?type=order.noted", `<`).want(202) // listed without a schema
	h.post("/v1/events?type=other.thing", `<`).want(202)
	before := h.counts().events
	batch := h.post("/v1/events/batch", `{"events":[{"type":"other.thing","data":1},{"type":"order.created","data":`+wrong+`},{"type":"order.created","data":{}}]}`)
	if batch.refused(422, problem.Invalid, "events[1].data.id"); fields(t, batch) != "events[1].data.id events[1].data.lines[1].sku events[2].data.id events[2].data.lines" {
		t.Errorf("fields: %s", batch.body)
	}
	if n := h.counts().events; n != before {
		t.Errorf("%d events of a refused batch are stored", n-before)
	}

	h.validation("strict")
	h.post("/v1/events?type=other.thing", `1`).refused(422, problem.Invalid, "type")
	h.post("/v1/events/batch", `{"events":[{"type":"other.thing","data":1}]}`).refused(422, problem.Invalid, "events[0].type")
	h.post("/v1/events?type=order.noted", `1`).want(202)

	// A change of the catalogue applies to the next event.
	h.put("/v1/event-types/other.thing", `{"schema":{"type":"integer"}}`).want(201)
	h.post("/v1/events?type=other.thing", `1`).want(202)
	h.put("/v1/event-types/other.thing", `{"schema":{"type":"string"}}`).want(200)
	h.post("/v1/events?type=other.thing", `1`).refused(422, problem.Invalid, "body")
	h.do(call{method: "DELETE", path: "/v1/event-types/other.thing"}).want(204)
	h.post("/v1/events?type=other.thing", `"a"`).refused(422, problem.Invalid, "type")
	h.validation("")
	post(wrong).want(202)
}

// A repeat of an accepted event gets the first response, although the catalogue has changed since.
func TestRepeatsOutliveAChangeOfTheCatalogue(t *testing.T) {
	h := newHarness(t)
	const item = `{"type":"order.created","data":{"id":7}`
	posts := []func() *answer{
		func() *answer { return h.post("/v1/events?type=order.created", `{"id":7}`, "Idempotency-Key", key1) },
		func() *answer { return h.post("/v1/events/batch", `{"events":[`+item+`}]}`, "Idempotency-Key", key1) },
		func() *answer {
			return h.post("/v1/events/batch", `{"events":[`+item+`,"idempotency_key":"0123456789abcdef-item"}]}`)
		},
	}
	var first []string
	for _, post := range posts {
		first = append(first, string(post().want(202).body))
	}
	h.put("/v1/event-types/order.created", `{"schema":`+orderSchema+`}`).want(201)
	h.validation("known")
	for i, post := range posts {
		again := string(post().want(202).body)
		if again != first[i] && again != strings.Replace(first[i], `"accepted"`, `"replayed"`, 1) {
			t.Errorf("repeat %d: %s, first %s", i, again, first[i])
		}
	}
	if n := h.counts().events; n != 3 {
		t.Errorf("%d events", n)
	}
	h.post("/v1/events?type=order.created", `{"id":8}`, "Idempotency-Key", key1).refused(422, problem.Invalid, "id")
	h.post("/v1/events/batch", `{"events":[{"type":"order.created","data":{"id":8}}]}`, "Idempotency-Key", key1).refused(422, problem.Invalid, "events[0].data.id")
}

func (h *harness) validation(degree string) {
	h.t.Helper()
	h.do(call{method: "PATCH", path: "/v1/tenants/" + h.tenant.ID.String(), body: fmt.Sprintf(`{"event_validation":%q}`, degree)}).want(200)
}

func fields(t *testing.T, a *answer) string {
	t.Helper()
	var p struct {
		Errors []struct{ Field string }
	}
	must(t, json.Unmarshal(a.body, &p))
	var names []string
	for _, e := range p.Errors {
		names = append(names, e.Field)
	}
	return strings.Join(names, " ")
}

// A version that does not keep to the compatibility that the one in force declares is refused with the place, unless it is forced.
func TestSchemaEvolution(t *testing.T) {
	h := newHarness(t)
	const path = "/v1/event-types/order.paid"
	var entry EventTypeDetail
	h.put(path, `{"compatibility":"forward"}`).refused(422, problem.Invalid, "compatibility") // of what?
	h.put(path, `{"compatibility":"sideways","schema":{}}`).refused(400, problem.InvalidRequest, "compatibility")
	h.put(path, `{"compatibility":"forward","schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}`).want(201)
	stays := `{"schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"note":{"type":"string"}}}}`
	h.put(path, stays).want(200).into(&entry)
	if entry.Version != 2 || entry.Compatibility != "forward" {
		t.Errorf("an optional member: %+v", entry)
	}
	breaks := `{"compatibility":"none","schema":{"type":"object","properties":{"id":{"type":"integer"}}}}`
	refused := h.put(path, breaks)
	refused.refused(422, problem.Invalid, "schema/required")
	refused.refused(422, problem.Invalid, "schema/properties/id/type")
	h.get(path).want(200).into(&entry)
	if entry.Version != 2 || entry.Compatibility != "forward" || len(entry.Versions) != 2 {
		t.Errorf("a refused version changed something: %+v", entry)
	}
	h.put(path+"?force=true", breaks).want(200).into(&entry)
	if entry.Version != 3 || entry.Compatibility != "none" {
		t.Errorf("forced: %+v", entry)
	}
	h.put(path, `{"schema":{"type":"string"}}`).want(200).into(&entry)
	h.put(path, `{"compatibility":"full"}`).want(200).into(&entry)
	if entry.Version != 4 || entry.Compatibility != "full" {
		t.Errorf("declared without a schema: %+v", entry)
	}
	h.put(path, `{"schema":{"type":["string","null"]}}`).refused(422, problem.Invalid, "schema/type")
}
