package cybercube

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// eventSchema is the standard's interface WebhookEvent, written down independently of the catalogue.
const eventSchema = `{
	"type": "object", "additionalProperties": false,
	"required": ["id", "type", "api_version", "created_at", "data", "account_id", "livemode"],
	"properties": {
		"id": {"type": "string", "pattern": "^evt_[A-Za-z0-9]{26}$"},
		"type": {"type": "string", "pattern": "^[a-z_]+(\\.[a-z_]+){1,2}$"},
		"api_version": {"const": "2026-01-17"},
		"created_at": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"},
		"data": {
			"type": "object", "required": ["object"],
			"properties": {"object": {"type": "object", "required": ["id", "object"]}, "previous_attributes": {"type": "object"}}
		},
		"account_id": {"type": "string", "pattern": "^ACC-[A-HJ-NP-Z2-9]{6}-[A-HJ-NP-Z2-9]$"},
		"livemode": {"type": "boolean"}
	}
}`

func checkSchema(t testing.TB, text []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(eventSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:event", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:event")
	if err != nil {
		t.Fatal(err)
	}
	event, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := s.Validate(event); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// delivered posts an event and returns the delivered body.
func (r *rig) delivered(path string, event object) object {
	r.t.Helper()
	before := len(r.sink.Requests(path))
	r.post(event)
	got := r.sink.WaitOn(path, before+1)[before]
	checkSchema(r.t, got.Body)
	return body(r.t, got)
}

func TestEventSchema(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-EVT-1", "CCW-EVT-2", "CCW-EVT-3", "CCW-EVT-7", "CCW-EVT-8", "CCW-API-28")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		got := r.delivered("/a", object{"type": "project.created", "data": object{"object": project()}})
		id := got["id"]
		sameJSON(t, "event", got, object{
			"id": id, "type": "project.created", "api_version": "2026-01-17", "created_at": "2026-07-01T12:00:00Z",
			"data": object{"object": project()}, "account_id": r.show(ep)["account_id"], "livemode": true,
		})
		// The minimal form of the glossary is part of it.
		for _, name := range []string{"id", "type", "created_at", "data"} {
			if got[name] == nil {
				t.Errorf("no %s", name)
			}
		}
		for _, live := range []bool{true, false} {
			got := r.delivered("/a", object{"type": "project.created", "data": object{"object": project()}, "livemode": live, "created_at": "2026-06-30T14:00:00.75+02:00"})
			equal(t, "livemode", got["livemode"].(bool), live)
			equal(t, "created_at", got["created_at"].(string), "2026-06-30T12:00:00Z")
		}
		answer := r.data(200, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/test", Body: object{}})
		tested := r.sink.WaitOn("/a", 4)[3]
		checkSchema(t, tested.Body)
		equal(t, "livemode of a test", body(t, tested)["livemode"].(bool), false)
		equal(t, "id of a test", body(t, tested)["id"], answer["event_id"])
	})
}

// TestFixtures are the standard's own examples, with ids of the length that its text asks for.
func TestFixtures(t *testing.T) {
	r := newRig(t, apptest.Options{})
	account := r.show(r.endpoint("/a"))["account_id"]
	t.Run("created", func(t *testing.T) {
		trace.Covers(t, "CCW-EVT-11", "CCW-EVT-6")
		event := object{
			"id": "evt_1MqLi2J3K4L5M6N7O8P9Q0R1S2", "type": "project.created", "api_version": "2026-01-17", "created_at": "2026-01-17T12:00:00Z",
			"data": object{"object": object{
				"id": "PRJ-X2M8KD-7", "object": "project", "name": "Customer Portal", "description": "New customer portal project",
				"status": "active", "owner_id": "USR-4Q7T9P-K", "created_at": "2026-01-17T12:00:00Z", "updated_at": "2026-01-17T12:00:00Z",
			}},
			"account_id": account, "livemode": true,
		}
		got := r.delivered("/a", event)
		sameJSON(t, "event", got, event)
		if _, has := got["data"].(map[string]any)["previous_attributes"]; has {
			t.Errorf("previous_attributes on a creation: %v", got)
		}
	})
	t.Run("updated", func(t *testing.T) {
		trace.Covers(t, "CCW-EVT-12", "CCW-EVT-5", "CCW-EVT-10")
		event := object{
			"id": "evt_2NrMj3K4L5M6N7O8P9Q0R1S2T3", "type": "project.updated", "api_version": "2026-01-17", "created_at": "2026-01-17T14:30:00Z",
			"data": object{
				"object":              object{"id": "PRJ-X2M8KD-7", "object": "project", "name": "Customer Portal v2", "status": "active", "updated_at": "2026-01-17T14:30:00Z"},
				"previous_attributes": object{"name": "Customer Portal"},
			},
			"account_id": account, "livemode": true,
		}
		sameJSON(t, "event", r.delivered("/a", event), event)
	})
}

// TestRefusedEvents: the response names every invalid field, and nothing is delivered.
func TestRefusedEvents(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.endpoint("/a")
	with := func(change object) object {
		e := object{"type": "project.created", "data": object{"object": project()}}
		for name, v := range change {
			if e[name] = v; v == nil {
				delete(e, name)
			}
		}
		return e
	}
	resource := func(change object) object { return object{"object": without(project(change))} }
	updated := func(previous any) object {
		return object{"type": "project.updated", "data": object{"object": project(object{"name": "B"}), "previous_attributes": previous}}
	}
	for name, c := range map[string]struct {
		rows  []string
		event object
		field string
	}{
		"upper case":              {[]string{"CCW-EVT-18"}, with(object{"type": "Project.Created"}), "type"},
		"one part":                {[]string{"CCW-EVT-18"}, with(object{"type": "project"}), "type"},
		"four parts":              {[]string{"CCW-EVT-18"}, with(object{"type": "a.b.c.d"}), "type"},
		"digits":                  {[]string{"CCW-EVT-18"}, with(object{"type": "a.b2"}), "type"},
		"empty part":              {[]string{"CCW-EVT-18"}, with(object{"type": "a..b"}), "type"},
		"101 characters":          {[]string{"CCW-EVT-18"}, with(object{"type": "a." + strings.Repeat("b", 99)}), "type"},
		"no type":                 {[]string{"CCW-EVT-27"}, with(object{"type": nil}), "type"},
		"livemode in words":       {[]string{"CCW-EVT-27"}, with(object{"livemode": "yes"}), "livemode"},
		"no data":                 {[]string{"CCW-EVT-27"}, with(object{"data": nil}), "data"},
		"data in words":           {[]string{"CCW-EVT-27"}, with(object{"data": "x"}), "data"},
		"another version":         {[]string{"CCW-EVT-27"}, with(object{"api_version": "2025-01-01"}), "api_version"},
		"unknown member":          {[]string{"CCW-EVT-27"}, with(object{"user": "x"}), "user"},
		"unknown member of data":  {[]string{"CCW-EVT-27"}, with(object{"data": object{"object": project(), "extra": 1}}), "data.extra"},
		"no day":                  {[]string{"CCW-EVT-27"}, with(object{"created_at": "yesterday"}), "created_at"},
		"the future":              {[]string{"CCW-EVT-27"}, with(object{"created_at": "2026-07-01T12:05:02Z"}), "created_at"},
		"another account":         {[]string{"CCW-API-1"}, with(object{"account_id": "ACC-9F4K7Q-T"}), "account_id"},
		"short id":                {[]string{"CCW-EVT-13"}, with(object{"id": "evt_1MqLi2J3K4L5M6N7O8P9Q0R1"}), "id"},
		"id of other characters":  {[]string{"CCW-EVT-13"}, with(object{"id": "evt_1MqLi2J3K4L5M6N7O8P9Q0R1-2"}), "id"},
		"no resource id":          {[]string{"CCW-EVT-10"}, with(object{"data": resource(object{"id": nil})}), "data.object.id"},
		"no resource type":        {[]string{"CCW-EVT-10"}, with(object{"data": resource(object{"object": nil})}), "data.object.object"},
		"no creation":             {[]string{"CCW-EVT-10"}, with(object{"data": resource(object{"created_at": nil})}), "data.object.created_at"},
		"no update":               {[]string{"CCW-EVT-10"}, with(object{"data": resource(object{"updated_at": nil})}), "data.object.updated_at"},
		"previous on a creation":  {[]string{"CCW-EVT-6"}, with(object{"data": object{"object": project(), "previous_attributes": object{"name": "B"}}}), "data.previous_attributes"},
		"previous null":           {[]string{"CCW-EVT-6"}, with(object{"data": object{"object": project(), "previous_attributes": json.RawMessage("null")}}), "data.previous_attributes"},
		"previous in words":       {[]string{"CCW-EVT-5"}, updated("name"), "data.previous_attributes"},
		"previous as it is now":   {[]string{"CCW-EVT-5"}, updated(object{"name": "B"}), "data.previous_attributes.name"},
		"another resource's type": {[]string{"CCW-EVT-27"}, with(object{"data": resource(object{"object": "task"})}), "data.object.object"},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, c.rows...)
			named(t, r.want(400, apptest.Call{Path: base + "/events", Body: c.event}), c.field)
		})
	}
	r.publish("project.archived")
	if got := r.sink.WaitOn("/a", 1); len(got) != 1 || body(t, got[0])["type"] != "project.archived" {
		t.Errorf("delivered: %v", got)
	}
	for _, fine := range []object{updated(object{"name": "A"}), with(object{"created_at": "2026-07-01T12:05:00Z"}), {"type": "project.updated", "data": resource(object{"created_at": nil})}} {
		r.post(fine)
	}
}

// standardTypes is the catalogue as the standard prints it.
var standardTypes = map[string][]string{
	"CCW-EVT-19": {"project.created", "project.updated", "project.deleted", "project.archived", "project.restored"},
	"CCW-EVT-20": {"task.created", "task.updated", "task.deleted", "task.assigned", "task.completed", "task.reopened"},
	"CCW-EVT-21": {"invoice.created", "invoice.updated", "invoice.sent", "invoice.paid", "invoice.voided", "invoice.payment.failed", "invoice.payment.succeeded"},
	"CCW-EVT-22": {"user.created", "user.updated", "user.deleted", "user.invited", "user.activated", "user.suspended"},
	"CCW-EVT-23": {"milestone.created", "milestone.updated", "milestone.completed", "milestone.missed"},
	"CCW-EVT-24": {"deliverable.created", "deliverable.updated", "deliverable.submitted", "deliverable.approved", "deliverable.rejected"},
}

func TestCatalogue(t *testing.T) {
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.Cybercube.UnknownTypes = false }})
	total := 0
	for row, types := range standardTypes {
		total += len(types)
		resource, _, _ := strings.Cut(types[0], ".")
		t.Run(resource, func(t *testing.T) {
			trace.Covers(t, row)
			r.endpoint("/"+resource, object{"events": []string{resource + ".*"}})
			var posted []string
			for _, name := range types {
				posted = append(posted, r.post(object{"type": name, "data": object{"object": project(object{"id": "RES-1", "object": resource})}}))
			}
			r.settle()
			var arrived []string
			for _, q := range r.sink.Requests("/" + resource) {
				arrived = append(arrived, body(t, q)["id"].(string))
				if !slices.Contains(types, q.Header.Get("X-Webhook-Event-Type")) {
					t.Errorf("%s arrived", q.Header.Get("X-Webhook-Event-Type"))
				}
			}
			slices.Sort(arrived)
			slices.Sort(posted)
			if !slices.Equal(arrived, posted) {
				t.Errorf("posted %v, arrived %v", posted, arrived)
			}
		})
	}
	t.Run("33 types", func(t *testing.T) {
		trace.Covers(t, "CCW-EVT-24")
		equal(t, "types of the standard", total, 33)
		equal(t, "types of the catalogue", len(catalogue.Cybercube().Types()), 33)
		named(t, r.want(400, apptest.Call{Path: base + "/events", Body: object{"type": "user.subscription.upgraded", "data": object{"object": project()}}}), "type")
	})
}

func TestTypesOutsideTheCatalogue(t *testing.T) {
	trace.Covers(t, "CCW-EVT-25", "CCW-EVT-18")
	r := newRig(t, apptest.Options{})
	r.endpoint("/user", object{"events": []string{"user.*"}})
	r.endpoint("/other", object{"events": []string{"project.*"}})
	id := r.publish("user.subscription.upgraded")
	equal(t, "id", body(t, r.sink.WaitOn("/user", 1)[0])["id"].(string), id)
	r.settle()
	equal(t, "others", len(r.sink.Requests("/other")), 0)
	r.publish("invoice.payment.failed", object{"object": "invoice"})
}

// TestSnapshot: a retry sends the original state, not the current one.
func TestSnapshot(t *testing.T) {
	trace.Covers(t, "CCW-EVT-4", "CCW-EVT-3")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500), ok)
	r.endpoint("/a")
	first := r.publish("project.created", object{"name": "before"})
	r.settle()
	r.pass(30 * time.Second)
	r.publish("project.updated", object{"name": "after"})
	r.settle()
	r.pass(30 * time.Second)
	got := r.sink.Requests("/a")
	if len(got) != 3 {
		t.Fatalf("%d requests", len(got))
	}
	retry := body(t, got[2])
	equal(t, "id", retry["id"].(string), first)
	equal(t, "name", retry["data"].(map[string]any)["object"].(map[string]any)["name"].(string), "before")
	equal(t, "created_at", retry["created_at"].(string), "2026-07-01T12:00:00Z")
}

// TestFrozenBytes: every attempt, endpoint and replay gets the same bytes, also after a restart.
func TestFrozenBytes(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-EVT-26", "CCW-EVT-17", "CCW-EVT-3", "CCW-DB-9")
		r := newRig(t, o)
		for _, path := range []string{"/a", "/b"} {
			r.sink.Script(path, apptest.Status(500), apptest.Status(503), ok)
		}
		a := r.endpoint("/a")
		r.endpoint("/b")
		text := `{"type":"project.created","data":{ "object" : {"id":"PRJ-1","object":"project","z":1.500,"a":"\u00e9<>&","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}}}`
		id := r.data(202, apptest.Call{Path: base + "/events", Body: text})["id"].(string)
		r.settle()
		r.pass(time.Minute)
		r = r.again(apptest.Options{})
		r.pass(5 * time.Minute)
		r.replay(id, a)
		r.settle()
		got := r.sink.Requests("")
		equal(t, "requests", len(got), 7)
		for _, q := range got {
			equal(t, "body", string(q.Body), string(got[0].Body))
			equal(t, "id", body(t, q)["id"].(string), id)
		}
		if !strings.Contains(string(got[0].Body), `"data":{ "object" : {"id":"PRJ-1","object":"project","z":1.500,"a":"\u00e9<>&"`) {
			t.Errorf("the data changed: %s", got[0].Body)
		}
	})
}

func TestEventIDs(t *testing.T) {
	t.Run("form", func(t *testing.T) {
		trace.Covers(t, "CCW-EVT-13", "CCW-EVT-15", "CCW-EVT-16")
		r := newRig(t, apptest.Options{})
		form := regexp.MustCompile(`^evt_[A-Za-z0-9]{26}$`)
		var ids []string
		for range 200 {
			id := r.publish("project.created")
			if len(id) != 30 || !form.MatchString(id) || url.PathEscape(id) != id {
				t.Errorf("id %q", id)
			}
			ids = append(ids, id)
			r.Advance(time.Millisecond)
		}
		if !slices.IsSorted(ids) {
			t.Error("ids do not sort by time")
		}
	})
	t.Run("unique", func(t *testing.T) {
		trace.Covers(t, "CCW-EVT-14")
		const workers, each = 8, 125_000
		seen := make([]map[godwit.EventID]bool, workers)
		var wg sync.WaitGroup
		for w := range workers {
			seen[w] = make(map[godwit.EventID]bool, each)
			wg.Go(func() {
				for range each {
					seen[w][godwit.NewEventID(start)] = true
				}
			})
		}
		wg.Wait()
		all := make(map[godwit.EventID]bool, workers*each)
		for _, part := range seen {
			for id := range part {
				all[id] = true
			}
		}
		equal(t, "distinct ids", len(all), workers*each)
	})
	t.Run("the same event again", func(t *testing.T) {
		apptest.Backends(t, func(t *testing.T, o apptest.Options) {
			trace.Covers(t, "CCW-EVT-14")
			r := newRig(t, o)
			r.endpoint("/a")
			own := object{"id": "evt_AbcdefghijklmnopqrstuvwxyZ", "type": "project.created", "data": object{"object": project()}}
			for range 3 {
				equal(t, "id", r.post(own), "evt_AbcdefghijklmnopqrstuvwxyZ")
			}
			minted := object{"type": "project.created", "data": object{"object": project()}}
			id := r.post(minted)
			minted["id"] = id
			equal(t, "id of ours", r.post(minted), id)
			r.settle()
			equal(t, "requests", len(r.sink.Requests("/a")), 2)
			own["data"] = object{"object": project(object{"name": "other"})}
			minted["data"] = own["data"]
			for _, e := range []object{own, minted} {
				r.want(409, apptest.Call{Path: base + "/events", Body: e})
			}
			r.settle()
			equal(t, "requests", len(r.sink.Requests("/a")), 2)
		})
	})
}

// TestFanOut: every endpoint gets the same event, and an endpoint that hangs delays no other.
func TestFanOut(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-EVT-29", "CCW-RTY-9", "CCW-EVT-17")
		r := newRig(t, o)
		gate := make(chan struct{})
		r.sink.Script("/hangs", apptest.Status(500).Until(gate), ok)
		r.sink.Script("/fails", apptest.Status(500), ok)
		for _, path := range []string{"/hangs", "/fails", "/fine"} {
			r.endpoint(path)
		}
		id := r.publish("project.created")
		for _, path := range []string{"/fine", "/fails", "/hangs"} {
			equal(t, "id", body(t, r.sink.WaitOn(path, 1)[0])["id"].(string), id)
		}
		close(gate) // the others got their event while this one hung
		r.settle()
		r.pass(time.Minute)
		for path, want := range map[string]string{"/hangs": "2", "/fails": "2", "/fine": "1"} {
			got := r.sink.Requests(path)
			equal(t, path, got[len(got)-1].Header.Get("X-Webhook-Delivery-Attempt"), want)
		}
	})
}

// TestOrder: events arrive in the order of creation if nothing fails; a failing event delays no other.
func TestOrder(t *testing.T) {
	trace.Covers(t, "CCW-EVT-30")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	r.policy(ep, object{"concurrency": 1})
	var posted, arrived []string
	for range 50 {
		posted = append(posted, r.publish("project.created"))
		r.Advance(time.Millisecond)
	}
	r.settle()
	for _, q := range r.sink.Requests("/a") {
		arrived = append(arrived, body(t, q)["id"].(string))
	}
	if !slices.Equal(posted, arrived) {
		t.Errorf("posted %v\narrived %v", posted, arrived)
	}
	r.sink.Script("/a", apptest.Status(500), ok)
	failing := r.publish("project.created")
	later := r.publish("project.created")
	got := r.sink.WaitOn("/a", 52)
	r.settle()
	equal(t, "first", body(t, got[50])["id"].(string), failing)
	equal(t, "second, before the first is tried again", body(t, got[51])["id"].(string), later)
}

// TestPhases: the phases of an event, as the API and the log show them.
func TestPhases(t *testing.T) {
	trace.Covers(t, "CCW-EVT-31")
	r := newRig(t, apptest.Options{})
	gate := make(chan struct{})
	r.sink.Script("/a", apptest.Status(500).Until(gate), apptest.Status(500))
	ep := r.endpoint("/a")
	id := r.publish("project.created")
	// Persisted and queued before it is sent.
	got := r.sink.WaitOn("/a", 1)[0]
	waiting := r.logs(ep, "?status=pending")
	if len(waiting) != 1 || waiting[0]["event_id"] != id || waiting[0]["attempt"] != 1.0 {
		t.Errorf("pending: %v", waiting)
	}
	equal(t, "attempts", len(r.logs(ep, "")), 0)
	// Built, signed, posted.
	checkSchema(t, got.Body)
	verify(t, got, ep)
	// Evaluated, another attempt scheduled.
	close(gate)
	r.settle()
	log := r.logs(ep, "")
	if len(log) != 1 || log[0]["status"] != "failed" || log[0]["next_retry_at"] != "2026-07-01T12:01:00Z" {
		t.Errorf("log: %v", log)
	}
	equal(t, "failures", len(r.failures(ep)), 0)
	r.exhaust()
	equal(t, "failures", len(r.failures(ep)), 1)
	equal(t, "last", r.logs(ep, "")[0]["status"].(string), "exhausted")
	equal(t, "pending", len(r.logs(ep, "?status=pending")), 0)
	if !r.Log.Has("msg=attempt", "outcome=transient", "delivery_status=exhausted", "n=7") {
		t.Error("the log has no line of the last attempt")
	}
	// The successful case.
	r.sink.Script("/a", ok)
	r.pass(time.Second)
	r.replay(id, ep)
	r.settle()
	equal(t, "replayed", r.logs(ep, "")[0]["status"].(string), "success")
}

// TestScope: outbound webhooks, and nothing else of what the standard names.
func TestScope(t *testing.T) {
	trace.Covers(t, "CCW-EVT-33")
	r := newRig(t, apptest.Options{})
	for _, path := range []string{"/api/v1/oauth/apps", "/api/v1/integrations", "/api/v1/webhooks/oauth", "/api/v1/webhooks/integrations", "/api/v1/webhooks/inbound", "/oauth/authorize", "/oauth/token"} {
		for _, method := range []string{"GET", "POST"} {
			r.want(404, apptest.Call{Method: method, Path: path, Body: "{}"})
		}
	}
}

// TestIngestSurvivesAKill: the next process delivers every acknowledged event.
func TestIngestSurvivesAKill(t *testing.T) {
	trace.Covers(t, "CCW-EVT-28")
	sink := apptest.NewSink(t)
	sink.Script("/a", apptest.Stall())
	p := apptest.StartProcess(t, apptest.ProcessOptions{})
	ep := register(t, p, sink.URL("/a"))
	id := ingest(t, p, fmt.Sprintf(`{"type":"project.created","data":{"object":%s}}`, mustJSON(t, project())))
	p.Kill()
	sink.Script("/a", ok)
	sink.DropConnections()
	p.Restart()
	sink.WaitFor("/a", "a delivery after the restart", func(seen []apptest.Request) bool {
		return slices.ContainsFunc(seen, func(q apptest.Request) bool { return body(t, q)["id"] == id })
	})
	for _, q := range sink.Requests("/a") {
		verify(t, q, ep)
	}
}
