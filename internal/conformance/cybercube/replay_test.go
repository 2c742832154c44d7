package cybercube

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestReplayOne: an event that was delivered, and one that never went to the endpoint.
func TestReplayOne(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-20", "CCW-EVT-17")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		id := r.publish("project.created")
		r.settle()
		r.pass(time.Hour)
		sameJSON(t, "answer", r.replay(id, ep), object{"event_id": id, "endpoint_id": ep.ID, "queued": 1})
		r.settle()
		newcomer := r.endpoint("/new", object{"events": []string{"task.*"}})
		r.replay(id, newcomer)
		r.settle()
		got := append(r.sink.Requests("/a"), r.sink.Requests("/new")...)
		equal(t, "requests", len(got), 3)
		seen := map[string]bool{}
		for _, q := range got {
			equal(t, "body", string(q.Body), string(got[0].Body))
			equal(t, "attempt", q.Header.Get("X-Webhook-Delivery-Attempt"), "1")
			seen[q.Header.Get("X-Webhook-ID")] = true
		}
		equal(t, "attempt ids", len(seen), 3)
		verify(t, got[2], newcomer)
		for path, members := range map[string]object{
			"/events/evt_00000000000000000000000000/replay": {"endpoint_id": ep.ID},
			"/events/nonsense/replay":                       {"endpoint_id": ep.ID},
			"/events/" + id + "/replay":                     {"endpoint_id": "WEB-X2M8KD-Z"},
		} {
			equal(t, path, code(t, r.want(404, apptest.Call{Path: base + path, Body: members})), "RESOURCE_NOT_FOUND")
		}
		named(t, r.want(400, apptest.Call{Path: base + "/events/" + id + "/replay", Body: object{}}), "endpoint_id")
	})
}

func (r *rig) replayRange(members object) object {
	r.t.Helper()
	answer := r.data(202, apptest.Call{Path: base + "/replay", Body: members})
	if id, is := answer["replay_id"].(string); !is || id == "" {
		r.t.Errorf("no replay_id: %v", answer)
	}
	return answer
}

func TestReplayRange(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-21")
		r := newRig(t, o)
		old := r.endpoint("/old")
		var ids []string
		for _, name := range []string{"project.created", "project.created", "task.created", "project.updated", "project.created"} {
			resource, _, _ := strings.Cut(name, ".")
			ids = append(ids, r.publish(name, object{"object": resource}))
			r.settle()
			r.pass(time.Minute)
		}
		backdated := r.post(object{"type": "project.archived", "data": object{"object": project()}, "created_at": "2026-07-01T12:01:30Z"})
		r.settle()
		newcomer := r.endpoint("/new", object{"events": []string{"nothing.*"}})
		r.policy(newcomer, object{"concurrency": 1})
		bounds := object{"endpoint_id": newcomer.ID, "start_time": "2026-07-01T12:01:00Z", "end_time": "2026-07-01T12:03:00Z", "event_types": []string{"project.*"}}
		answer := r.replayRange(bounds)
		if answer["queued"] != 3.0 || answer["has_more"] != false {
			t.Errorf("answer %v", answer)
		}
		r.settle()
		var got []string
		for _, q := range r.sink.WaitOn("/new", 3) {
			got = append(got, body(t, q)["id"].(string))
		}
		if !slices.Equal(got, []string{ids[1], ids[3], backdated}) { // in the order in which they came in
			t.Errorf("replayed %v", got)
		}
		delete(bounds, "event_types")
		bounds["endpoint_id"] = old.ID
		n := len(r.sink.Requests("/old"))
		equal(t, "all types", r.replayRange(bounds)["queued"].(float64), 4)
		r.settle()
		equal(t, "requests", len(r.sink.Requests("/old")), n+4)
		bounds["start_time"] = "2026-08-01T00:00:00Z"
		bounds["end_time"] = "2026-08-02T00:00:00Z"
		equal(t, "nothing", r.replayRange(bounds)["queued"].(float64), 0)
	})
}

func TestReplayOfTooMany(t *testing.T) {
	trace.Covers(t, "CCW-API-22")
	const events = 1001
	r := newRig(t, apptest.Options{})
	r.publishMany(events)
	ep := r.endpoint("/a")
	r.policy(ep, object{"per_second": 0, "per_minute": 0})
	bounds := object{"endpoint_id": ep.ID, "start_time": "2026-07-01T00:00:00Z", "end_time": "2026-07-02T00:00:00Z"}
	answer := r.replayRange(bounds)
	if answer["queued"] != 1000.0 || answer["has_more"] != true {
		t.Errorf("answer %v", answer)
	}
	r.sink.WaitOn("/a", 1000)
	r.settle()
	equal(t, "requests", len(r.sink.Requests("/a")), 1000)
	equal(t, "events", len(distinct(t, r.sink.Requests("/a"))), 1000)
}

func TestRefusedReplays(t *testing.T) {
	trace.Covers(t, "CCW-API-23")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	id := r.publish("project.created")
	r.settle()
	fine := func(change object) object {
		b := object{"endpoint_id": ep.ID, "start_time": "2026-07-01T00:00:00Z", "end_time": "2026-07-02T00:00:00Z"}
		for name, v := range change {
			if b[name] = v; v == nil {
				delete(b, name)
			}
		}
		return b
	}
	for field, change := range map[string]object{
		"end_time":       {"end_time": "2026-06-30T00:00:00Z"},
		"start_time":     {"start_time": "yesterday"},
		"endpoint_id":    {"endpoint_id": nil},
		"event_types":    {"event_types": "project.*"},
		"event_types[0]": {"event_types": []string{"a*"}},
		"color":          {"color": "red"},
	} {
		named(t, r.want(400, apptest.Call{Path: base + "/replay", Body: fine(change)}), field)
	}
	named(t, r.want(400, apptest.Call{Path: base + "/replay", Body: fine(object{"end_time": nil})}), "end_time")
	named(t, r.want(400, apptest.Call{Path: base + "/replay", Body: fine(object{"start_time": 5})}), "start_time")
	r.want(404, apptest.Call{Path: base + "/replay", Body: fine(object{"endpoint_id": "WEB-X2M8KD-Z"})})

	r.patch(ep, object{"status": "disabled"})
	equal(t, "range", code(t, r.want(409, apptest.Call{Path: base + "/replay", Body: fine(nil)})), "RESOURCE_CONFLICT")
	r.want(409, apptest.Call{Path: base + "/events/" + id + "/replay", Body: object{"endpoint_id": ep.ID}})
	r.patch(ep, object{"status": "paused"})
	equal(t, "paused", r.replayRange(fine(nil))["queued"].(float64), 1)
	r.pass(time.Hour)
	equal(t, "requests while paused", len(r.sink.Requests("/a")), 1)
	r.patch(ep, object{"status": "active"})
	r.sink.WaitOn("/a", 2)
}

// TestLogs: each filter by itself and together.
func TestLogs(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-API-25", "CCW-API-27")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		r.policy(ep, object{"disable_after_failures": 0})
		r.sink.Script("/a", apptest.Status(500)) // seven of it, to 22:36 on the second day
		exhausted := r.publish("project.created")
		r.exhaust()
		r.sink.Script("/a", ok)
		for range 60 {
			r.publish("project.created")
			r.settle()
			r.pass(time.Second)
		}
		r.sink.Script("/a", apptest.Status(404))
		refused := r.publish("project.created")
		r.settle()
		count := func(query string, want int, statuses ...string) []object {
			t.Helper()
			log := r.logs(ep, query)
			equal(t, query, len(log), want)
			for i, e := range log {
				if !slices.Contains(statuses, e["status"].(string)) {
					t.Errorf("%s: %v", query, e)
				}
				if i > 0 && e["created_at"].(string) > log[i-1]["created_at"].(string) {
					t.Errorf("%s: not newest first", query)
				}
			}
			return log
		}
		all := count("", 50, "success", "failed")
		equal(t, "newest", all[0]["event_id"].(string), refused)
		count("?limit=100", 68, "success", "failed", "exhausted")
		count("?limit=5", 5, "success", "failed")
		count("?status=success&limit=100", 60, "success")
		failed := count("?status=failed&limit=50", 8, "failed", "exhausted")
		equal(t, "oldest failure", failed[7]["event_id"].(string), exhausted)
		equal(t, "its number", failed[7]["attempt"].(float64), 1)
		last := count("?status=exhausted", 1, "exhausted")
		equal(t, "the seventh", last[0]["attempt"].(float64), 7)
		count("?start_time=2026-07-01T12:06:00Z&end_time=2026-07-01T22:36:00Z", 4, "failed")
		count("?start_time=2026-07-01T12:06:00Z&end_time=2026-07-01T22:36:00Z&status=success", 0)
		count("?end_time=2026-07-01T12:01:00Z", 2, "failed")
		count("?start_time=2026-07-02T22:36:30Z&limit=100", 31, "success", "failed")
		count("?status=pending", 0)
		r.sink.Script("/a", apptest.Status(503))
		waiting := r.publish("project.created")
		r.settle()
		pending := count("?status=pending", 1, "pending")
		if pending[0]["event_id"] != waiting || pending[0]["attempt"] != 2.0 || pending[0]["next_retry_at"] == nil {
			t.Errorf("pending %v", pending)
		}
		for range 8 { // later attempts that others follow do not hide the exhausted one
			r.publish("project.created")
			r.settle()
		}
		count("?status=exhausted&limit=1", 1, "exhausted")
		for field, query := range map[string]string{
			"status": "?status=gone", "limit": "?limit=101", "start_time": "?start_time=yesterday", "end_time": "?end_time=2026-01-01T00:00:00Z&start_time=2026-01-02T00:00:00Z",
			"color": "?color=red",
		} {
			named(t, r.want(400, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/logs" + query}), field)
		}
	})
}
