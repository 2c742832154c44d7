package ojs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// TestEnvelopeIsKept: missing members are inserted at the front; all other bytes arrive unchanged.
func TestEnvelopeIsKept(t *testing.T) {
	r := still(t)
	at := start.Format("2006-01-02T15:04:05Z")
	r.subscribe("/hook", object{"events": []string{"a.b"}})
	for _, c := range []struct {
		name, rest string // after the members that are filled in
		front      string // with %s for the id
	}{
		{"all missing", `"type":"a.b", "source":"ojs://s", "data":{ "n":1.50, "é":"\u00e9" }}`, `{"specversion":"1.0","id":"%s","time":"` + at + `",`},
		{"own id", `"id":"mine","type":"a.b","source":"ojs://s","data":{}}`, `{"specversion":"1.0","time":"` + at + `",`},
		{"own time", `"time":"2026-02-15T22:00:00+01:00","type":"a.b","source":"ojs://s","data":{},"x-ext":[1,{"a":null}]}`, `{"specversion":"1.0","id":"%s",`},
		{"complete", `"specversion":"1.0","id":"i2","type":"a.b","source":"ojs://s","time":"2026-02-15T22:00:00Z","subject":"job-1","data":{"z":1,"a":2}}`, `{`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(r.sink.Requests("/hook"))
			got := r.send(t, 202, apptest.Call{Path: events, Body: "{" + c.rest})
			body := string(r.sink.WaitOn("/hook", before+1)[before].Body)
			want := c.front
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, got["id"])
			}
			if body != want+c.rest {
				t.Errorf("delivered %s\nwant      %s", body, want+c.rest)
			}
			e, err := r.App.Store().Event(t.Context(), r.Tenant, eventID(t, got["id"].(string)))
			if err != nil {
				t.Fatal(err)
			}
			var env struct {
				ID   string    `json:"id"`
				Time time.Time `json:"time"`
			}
			if err := json.Unmarshal([]byte(body), &env); err != nil {
				t.Fatal(err)
			}
			if !e.OccurredAt.Equal(env.Time) || e.Format != godwit.FormatOJS || (e.SourceID != "" && e.SourceID != env.ID) || (e.SourceID == "" && e.ID.String() != env.ID) {
				t.Errorf("stored as %+v", e)
			}
		})
	}
}

// TestBadEvents: the response names every invalid field, and nothing is stored.
func TestBadEvents(t *testing.T) {
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.MaxBody = 4096 }})
	for name, c := range map[string]struct {
		body   string
		fields []string
	}{
		"nothing":           {``, []string{"body"}},
		"not JSON":          {`{"type":`, []string{"body"}},
		"not UTF-8":         {"{\"type\":\"a\xff\"}", []string{"body"}},
		"no object":         {`[]`, []string{"body"}},
		"null":              {`null`, []string{"body"}},
		"empty":             {`{}`, []string{"source", "type", "data"}},
		"no type":           {event(object{"type": nil}), []string{"type"}},
		"no source":         {event(object{"source": nil}), []string{"source"}},
		"no data":           {event(object{"data": nil}), []string{"data"}},
		"type number":       {event(object{"type": 1}), []string{"type"}},
		"type pattern":      {event(object{"type": "job.*"}), []string{"type"}},
		"type segments":     {event(object{"type": "job..x"}), []string{"type"}},
		"type long":         {event(object{"type": strings.Repeat("x", 129)}), []string{"type"}},
		"source number":     {event(object{"source": 1}), []string{"source"}},
		"source relative":   {event(object{"source": "workers/1"}), []string{"source"}},
		"source no URI":     {event(object{"source": "://"}), []string{"source"}},
		"id number":         {event(object{"id": 7}), []string{"id"}},
		"id empty":          {event(object{"id": ""}), []string{"id"}},
		"id long":           {event(object{"id": strings.Repeat("x", 256)}), []string{"id"}},
		"time text":         {event(object{"time": "yesterday"}), []string{"time"}},
		"time without zone": {event(object{"time": "2026-02-15T22:00:00"}), []string{"time"}},
		"time past 9999":    {event(object{"time": "9999-12-31T23:59:59-23:59"}), []string{"time"}},
		"time before 0000":  {event(object{"time": "0000-01-01T00:00:00+00:01"}), []string{"time"}},
		"version":           {event(object{"specversion": "2.0"}), []string{"specversion"}},
		"subject number":    {event(object{"subject": 1}), []string{"subject"}},
		"data list":         {event(object{"data": []int{1}}), []string{"data"}},
		"data queue number": {event(object{"data": object{"queue": 1}}), []string{"data.queue"}},
		"data of its type":  {event(object{"data": object{"duration_ms": "long"}}), []string{"data.duration_ms"}},
		"id null":           {`{"id":null,"type":"a","source":"ojs://s","data":{}}`, []string{"id"}},
		"id twice":          {`{"id":"a","id":"b","type":"a","source":"ojs://s","data":{}}`, []string{"id"}},
		"type twice":        {`{"type":"a","type":"b","source":"ojs://s","data":{}}`, []string{"type"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.send(t, 400, apptest.Call{Method: "POST", Path: events, Body: c.body})
			if code(got) != "invalid_request" || !slices.Equal(fields(got), c.fields) {
				t.Errorf("%v", got)
			}
			if len(c.body) == 0 || !json.Valid([]byte(c.body)) {
				return
			}
			got = r.send(t, 400, apptest.Call{Path: events + "/batch", Body: `{"events":[` + event() + `,` + c.body + `]}`})
			for i, f := range fields(got) {
				want := "events[1]." + c.fields[i]
				if c.fields[i] == "body" {
					want = "events[1]"
				}
				if f != want {
					t.Errorf("in a batch: %v", got)
				}
			}
		})
	}
	if got := r.send(t, 413, apptest.Call{Path: events, Body: event(object{"data": object{"x": strings.Repeat("x", 5000)}})}); code(got) != "body_too_large" {
		t.Errorf("too large: %v", got)
	}
	got := r.send(t, 400, apptest.Call{Path: events + "/batch", Body: `{"events":[` + event(object{"data": object{"x": strings.Repeat("x", 5000)}}) + `]}`})
	if !slices.Equal(fields(got), []string{"events[0]"}) {
		t.Errorf("too large in a batch: %v", got)
	}
	for _, body := range []string{`{}`, `{"events":{}}`, `{"events":[]}`, `{"events":null}`, `[` + event() + `]`, `{"events":[` + strings.Repeat(`1,`, 1000) + `1]}`} {
		if got := r.send(t, 400, apptest.Call{Path: events + "/batch", Body: body}); len(fields(got)) == 0 {
			t.Errorf("batch %.30s: %v", body, got)
		}
	}
	list := r.Must(apptest.Call{Path: "/v1/events"}, nil)
	if !strings.Contains(string(list.Body), `"items":[]`) {
		t.Errorf("stored: %s", list.Body)
	}
}

// TestEventsAreKnownByTheirID: the same id and source with the same content is one event; other content is a conflict; the
// same id from another source is another event.
func TestEventsAreKnownByTheirID(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.subscribe("/hook", object{"events": []string{"job.*"}})
	mine := event(object{"id": "mine"})
	first := r.send(t, 202, apptest.Call{Path: events, Body: mine})
	if first["source_id"] != "mine" {
		t.Errorf("%v", first)
	}
	again := r.Call(apptest.Call{Path: events, Body: mine})
	var second object
	again.JSON(t, &second)
	if again.Status != 202 || second["id"] != first["id"] || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %d %v", again.Status, second)
	}
	if got := r.send(t, 409, apptest.Call{Path: events, Body: event(object{"id": "mine", "subject": "else"})}); code(got) != "duplicate" {
		t.Errorf("other content: %v", got)
	}
	if other := r.send(t, 202, apptest.Call{Path: events, Body: event(object{"id": "mine", "source": "ojs://other"})}); other["id"] == first["id"] {
		t.Errorf("other source: %v", other)
	}
	_, foreign := r.NewTenant("other", godwit.AllScopes...)
	if other := r.send(t, 202, apptest.Call{Path: events, Body: mine, Key: foreign}); other["id"] == first["id"] {
		t.Errorf("other tenant: %v", other)
	}
	for range 2 { // without an id, each is a separate event
		r.post(event())
	}
	r.sink.WaitOn("/hook", 4)
	if n := len(r.sink.Requests("/hook")); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// TestEventsUnderAKey: the key identifies the request and is forwarded; the id identifies the event.
func TestEventsUnderAKey(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.subscribe("/hook", object{"events": []string{"job.*"}})
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": `"` + k + `"`} }
	const one, two, three = "key-number-one-0001", "key-number-two-0002", "key-number-three-003"
	plain := r.send(t, 202, apptest.Call{Path: events, Body: event(), Header: key(one)})
	if again := r.send(t, 202, apptest.Call{Path: events, Body: event(), Header: key(one)}); again["id"] != plain["id"] {
		t.Errorf("again: %v", again)
	}
	if got := r.send(t, 422, apptest.Call{Path: events, Body: event(object{"subject": "x"}), Header: key(one)}); code(got) != "idempotency_key_reused" {
		t.Errorf("reused: %v", got)
	}
	mine := event(object{"id": "mine"})
	both := r.send(t, 202, apptest.Call{Path: events, Body: mine, Header: key(two)})
	if again := r.send(t, 202, apptest.Call{Path: events, Body: mine, Header: key(two)}); again["id"] != both["id"] {
		t.Errorf("both again: %v", again)
	}
	if other := r.send(t, 202, apptest.Call{Path: events, Body: mine, Header: key(three)}); other["id"] != both["id"] {
		t.Errorf("same event under another key: %v", other)
	}
	if got := r.send(t, 422, apptest.Call{Path: events, Body: event(object{"id": "yours"}), Header: key(two)}); code(got) != "idempotency_key_reused" {
		t.Errorf("other event under the key: %v", got)
	}
	if got := r.send(t, 409, apptest.Call{Path: events, Body: event(object{"id": "mine", "subject": "x"}), Header: key("key-number-four-004")}); code(got) != "duplicate" {
		t.Errorf("other content under a fresh key: %v", got)
	}
	requests := r.sink.WaitOn("/hook", 2)
	keys := []string{requests[0].Key(), requests[1].Key()}
	slices.Sort(keys)
	if len(requests) != 2 || !slices.Equal(keys, []string{`"` + one + `"`, `"` + two + `"`}) {
		t.Errorf("delivered with %v", keys)
	}
	// A tenant may require keys.
	r.Must(apptest.Call{Method: "PATCH", Path: "/v1/tenants/" + r.Tenant.String(), Body: `{"require_idempotency_key":true}`}, nil)
	fresh := r.NewKey(r.Tenant, godwit.AllScopes...)
	for _, path := range []string{events, events + "/batch"} {
		if got := r.send(t, 400, apptest.Call{Key: fresh, Path: path, Body: event()}); code(got) != "idempotency_key_missing" {
			t.Errorf("%s without a key: %v", path, got)
		}
	}
}

func TestBatch(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.subscribe("/hook", object{"events": []string{"job.*"}})
	known := event(object{"id": "known"})
	first := r.send(t, 202, apptest.Call{Path: events, Body: known})
	batch := `{"events":[` + strings.Join([]string{
		event(), known, event(object{"id": "new"}), event(object{"id": "new"}), event(object{"id": "known", "source": "ojs://other"}),
	}, ",") + `]}`
	header := map[string]string{"Idempotency-Key": `"key-of-the-batch-01"`}
	got := r.send(t, 202, apptest.Call{Path: events + "/batch", Body: batch, Header: header})
	items := got["events"].([]any)
	var states []string
	for i, item := range items {
		it := item.(object)
		states = append(states, it["status"].(string))
		if it["index"] != float64(i) || it["id"] == nil {
			t.Errorf("item %d: %v", i, it)
		}
	}
	if !slices.Equal(states, []string{"accepted", "duplicate", "accepted", "duplicate", "accepted"}) {
		t.Errorf("states %v", states)
	}
	if items[1].(object)["id"] != first["id"] || items[2].(object)["id"] != items[3].(object)["id"] {
		t.Errorf("items %v", items)
	}
	requests := r.sink.WaitOn("/hook", 4)
	keys := map[string]bool{}
	for _, req := range requests {
		keys[req.Key()] = true
	}
	if len(requests) != 4 || len(keys) != 4 {
		t.Errorf("%d requests with %d keys", len(requests), len(keys))
	}
	again := r.Call(apptest.Call{Path: events + "/batch", Body: batch, Header: header})
	var second object
	again.JSON(t, &second)
	if again.Header.Get("Idempotency-Replayed") != "true" || fmt.Sprint(second) != fmt.Sprint(got) {
		t.Errorf("again: %v", second)
	}
	// Each event has its own result: a conflict does not affect the others.
	mixed := r.send(t, 207, apptest.Call{Path: events + "/batch", Body: `{"events":[` + event(object{"id": "known", "subject": "x"}) + `,` + event() + `]}`})
	items = mixed["events"].([]any)
	if e, _ := items[0].(object)["error"].(object); items[0].(object)["status"] != "refused" || e["code"] != "duplicate" || items[1].(object)["status"] != "accepted" {
		t.Errorf("mixed: %v", mixed)
	}
	bad := r.send(t, 400, apptest.Call{Path: events + "/batch", Body: `{"events":[` + event(object{"id": "q"}) + `,` + event(object{"id": "q", "subject": "x"}) + `]}`})
	if !slices.Equal(fields(bad), []string{"events[1].id"}) {
		t.Errorf("two contents: %v", bad)
	}
	r.sink.WaitOn("/hook", 5)
}

// TestAttributes: filters compare members of data; values that no filter can name are ignored.
func TestAttributes(t *testing.T) {
	r := newRig(t, apptest.Options{})
	for data, want := range map[string]map[string]string{
		`{"queue":"a","job_type":"b","x":"c"}`:         {"queue": "a", "job_type": "b"},
		`{"queue":"` + strings.Repeat("x", 257) + `"}`: nil,
		`{"Queue":"a"}`:            nil,
		`{"job_type":"a\nb"}`:      nil,
		`{"queue":""}`:             {"queue": ""},
		`{}`:                       nil,
		`{"nested":{"queue":"a"}}`: nil,
	} {
		id := r.post(`{"type":"x","source":"ojs://s","data":` + data + `}`)
		e, err := r.App.Store().Event(t.Context(), r.Tenant, eventID(t, id))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(e.Attributes) != fmt.Sprint(want) {
			t.Errorf("%.40s: %v, want %v", data, e.Attributes, want)
		}
	}
}
