package cybercube

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

// sentAt counts requests by the second in which they were sent, from the start on.
func sentAt(t testing.TB, requests []apptest.Request) map[int]int {
	t.Helper()
	seconds := map[int]int{}
	for _, q := range requests {
		at, err := strconv.ParseInt(q.Header.Get("X-Webhook-Timestamp"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seconds[int(at-start.Unix())]++
	}
	return seconds
}

// most returns the largest number of requests within a span of seconds.
func most(seconds map[int]int, span int) int {
	most := 0
	for first := range seconds {
		n := 0
		for s := first; s < first+span; s++ {
			n += seconds[s]
		}
		most = max(most, n)
	}
	return most
}

// publishMany publishes events concurrently.
func (r *rig) publishMany(n int) {
	r.t.Helper()
	const producers = 8
	event := object{"type": "project.created", "data": object{"object": project()}}
	var wg sync.WaitGroup
	for w := range producers {
		wg.Go(func() {
			for i := w; i < n; i += producers {
				if got := r.Call(apptest.Call{Path: base + "/events", Body: event}); got.Status != http.StatusAccepted {
					r.t.Errorf("event: %d %s", got.Status, got.Body)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestDeliveryLimits: 1500 events for one endpoint at once are sent over more than a minute, each once and at its first
// attempt.
func TestDeliveryLimits(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-LIM-1", "CCW-LIM-3", "CCW-LIM-4", "CCW-LIM-5", "CCW-RTY-10")
		const events = 1500
		r := newRig(t, o)
		ep := r.endpoint("/a")
		r.publishMany(events)
		second := 0
		for sent := 100; sent <= events; sent += 100 {
			if sent == 1100 { // the minute's allowance is used up
				r.Advance(time.Duration(60-second) * time.Second)
				second = 60
			}
			r.sink.WaitOn("/a", sent)
			r.Advance(time.Second)
			second++
		}
		r.settle()
		got := r.sink.Requests("/a")
		equal(t, "requests", len(got), events)
		seconds := sentAt(t, got)
		if n := most(seconds, 1); n > 100 {
			t.Errorf("%d in a second", n)
		}
		if n := most(seconds, 60); n > 1000 {
			t.Errorf("%d in a minute", n)
		}
		equal(t, "events", len(distinct(t, got)), events)
		told := map[string]int{}
		for _, q := range got {
			if n := q.Header.Get("X-Webhook-Delivery-Attempt"); n != "1" {
				t.Errorf("attempt %s", n)
			}
			told[q.Header.Get("X-RateLimit-Remaining")]++
		}
		equal(t, "failure_count", r.show(ep)["failure_count"].(float64), 0)
		if told["999"] == 0 || told["0"] == 0 || told[""] != 0 {
			t.Errorf("what was told of the budget: %v", told)
		}
	})
}

// TestAccountLimit: 11 endpoints of an account share 10,000 deliveries a minute; another account has its own limit.
func TestAccountLimit(t *testing.T) {
	trace.Covers(t, "CCW-LIM-2", "CCW-LIM-4", "CCW-LIM-5")
	const endpoints, events, limit = 11, 1000, 10_000
	r := newRig(t, apptest.Options{})
	for i := range endpoints {
		ep := r.endpoint(fmt.Sprintf("/%d", i))
		r.policy(ep, object{"per_second": 0, "per_minute": 0})
	}
	_, other := r.NewTenant("other", "ingest", "read", "manage")
	r.want(201, apptest.Call{Path: base + "/endpoints", Key: other, Body: object{"url": r.sink.URL("/other")}})
	r.publishMany(events)
	r.sink.Wait(limit)
	r.want(202, apptest.Call{Path: base + "/events", Key: other, Body: object{"type": "project.created", "data": object{"object": project()}}})
	r.sink.WaitOn("/other", 1)
	r.Advance(59 * time.Second)
	equal(t, "requests in the minute", len(r.sink.Requests(""))-1, limit)
	r.Advance(2 * time.Second) // a start counts a little longer than a minute
	r.sink.Wait(endpoints*events + 1)
	r.settle()
	if n := most(sentAt(t, r.sink.Requests("")), 60); n > limit+1 { // the other account's is one
		t.Errorf("%d in a minute", n)
	}
	for i := range endpoints {
		got := r.sink.Requests(fmt.Sprintf("/%d", i))
		equal(t, "events of an endpoint", len(distinct(t, got)), events)
		equal(t, "requests to it", len(got), events)
	}
}

// TestLimitsAreSettings: of deliveries for each endpoint, of operations for the server.
func TestLimitsAreSettings(t *testing.T) {
	trace.Covers(t, "CCW-LIM-13")
	r := newRig(t, apptest.Options{KeepLimits: true, Configure: func(c *config.Config) {
		c.Cybercube = config.Cybercube{CreatesPerHour: 2, UpdatesPerHour: 1, DeletesPerHour: 1, TestsPerHour: 1, ReplaysPerHour: 1, UnknownTypes: true}
	}})
	a, b := r.endpoint("/a"), r.endpoint("/b")
	r.policy(a, object{"per_second": 3, "per_minute": 5, "account_per_minute": 6})
	r.policy(b, object{"account_per_minute": 0}) // does not count against the account's limit
	for range 7 {
		r.publish("project.created")
	}
	r.sink.WaitOn("/b", 7)
	equal(t, "told", r.sink.WaitOn("/a", 3)[0].Header.Get("X-RateLimit-Limit"), "5")
	r.Advance(time.Second)
	r.sink.WaitOn("/a", 5)
	r.Advance(58 * time.Second)
	r.Advance(2 * time.Second) // a start of an account counts a little longer than a minute
	r.sink.WaitOn("/a", 7)
	seconds := sentAt(t, r.sink.Requests("/a"))
	if seconds[0] != 3 || seconds[1] != 2 || seconds[60]+seconds[61] != 2 {
		t.Errorf("sent at %v", seconds)
	}
	at := base + "/endpoints/" + b.ID
	id := r.publish("project.created")
	for _, c := range []apptest.Call{
		{Path: base + "/endpoints", Body: object{"url": r.sink.URL("/c")}},
		{Method: "PATCH", Path: at, Body: object{"description": "x"}},
		{Path: at + "/test", Body: object{}},
		{Path: base + "/events/" + id + "/replay", Body: object{"endpoint_id": b.ID}},
		{Method: "DELETE", Path: at},
	} {
		got := r.Call(c)
		if c.Path != base+"/endpoints" {
			if got.Status > 299 || got.Header.Get("X-RateLimit-Limit") != "1" || got.Header.Get("X-RateLimit-Remaining") != "0" {
				t.Errorf("%s %s: %d %v", c.Method, c.Path, got.Status, got.Header)
			}
			if c.Method == "DELETE" {
				c.Path = base + "/endpoints/" + a.ID
			}
			got = r.Call(c)
		}
		equal(t, c.Method+" "+c.Path, got.Status, http.StatusTooManyRequests)
	}
	none := newRig(t, apptest.Options{KeepLimits: true, Configure: func(c *config.Config) { c.Cybercube.CreatesPerHour = 0 }})
	for range 12 {
		got := none.want(201, apptest.Call{Path: base + "/endpoints", Body: object{"url": none.sink.URL("/")}})
		equal(t, "without a limit", got.Header.Get("X-RateLimit-Limit"), "")
	}
}

// An operation that is limited.
type operation struct {
	row   string
	limit int
	call  func(r *rig, i int) apptest.Call
	done  func(r *rig) int // how many were carried out
}

func operations() map[string]operation {
	at := func(i int, eps []endpoint) string { return base + "/endpoints/" + eps[i].ID }
	var eps []endpoint
	var id string
	prepare := func(r *rig, n int) {
		if eps != nil {
			return
		}
		for range n {
			var made struct{ ID string }
			r.want(201, apptest.Call{Path: "/v1/endpoints", Body: object{"url": r.sink.URL("/a"), "profile": "cybercube", "patterns": []string{"none"}}}).JSON(r.t, &made)
			eps = append(eps, endpoint{ID: made.ID})
		}
		id = r.publish("project.created")
	}
	return map[string]operation{
		"create": {"CCW-LIM-7", 10, func(r *rig, _ int) apptest.Call {
			return apptest.Call{Path: base + "/endpoints", Body: object{"url": r.sink.URL("/a")}}
		}, func(r *rig) int { return len(r.list("/endpoints?limit=100")) }},
		"update": {"CCW-LIM-8", 60, func(r *rig, i int) apptest.Call {
			prepare(r, 1)
			return apptest.Call{Method: "PATCH", Path: at(0, eps), Body: object{"description": strconv.Itoa(i + 1)}}
		}, func(r *rig) int {
			n, _ := strconv.Atoi(fmt.Sprint(r.show(eps[0])["description"]))
			return n
		}},
		"delete": {"CCW-LIM-9", 10, func(r *rig, i int) apptest.Call {
			prepare(r, 14)
			return apptest.Call{Method: "DELETE", Path: at(i, eps)}
		}, func(r *rig) int { return 14 - len(r.list("/endpoints?limit=100")) }},
		"test": {"CCW-LIM-10", 30, func(r *rig, _ int) apptest.Call {
			prepare(r, 1)
			return apptest.Call{Path: at(0, eps) + "/test", Body: object{}}
		}, func(r *rig) int { return len(r.sink.Requests("/a")) }},
		"replay": {"CCW-LIM-11", 10, func(r *rig, i int) apptest.Call {
			prepare(r, 1)
			if i%2 == 0 {
				return apptest.Call{Path: base + "/replay", Body: object{"endpoint_id": eps[0].ID, "start_time": "2026-01-01T00:00:00Z", "end_time": "2027-01-01T00:00:00Z"}}
			}
			return apptest.Call{Path: base + "/events/" + id + "/replay", Body: object{"endpoint_id": eps[0].ID}}
		}, func(r *rig) int { r.settle(); return len(r.sink.Requests("/a")) }},
	}
}

// TestOperationLimits: beyond the hourly limit an operation is refused without effect, and the response says when to retry.
func TestOperationLimits(t *testing.T) {
	for name := range operations() {
		t.Run(name, func(t *testing.T) {
			op := operations()[name]
			trace.Covers(t, op.row, "CCW-LIM-6")
			r := newRig(t, apptest.Options{KeepLimits: true})
			budget := func(got *apptest.Response, remaining int, reset time.Duration) {
				t.Helper()
				equal(t, "limit", got.Header.Get("X-RateLimit-Limit"), strconv.Itoa(op.limit))
				equal(t, "remaining", got.Header.Get("X-RateLimit-Remaining"), strconv.Itoa(remaining))
				equal(t, "reset", got.Header.Get("X-RateLimit-Reset"), strconv.FormatInt(start.Add(reset).Unix(), 10))
			}
			for i := range op.limit {
				got := r.Call(op.call(r, i))
				if got.Status < 200 || got.Status > 299 {
					t.Fatalf("number %d: %d %s", i+1, got.Status, got.Body)
				}
				budget(got, op.limit-1-i, time.Hour)
				if i == 0 {
					r.pass(time.Minute)
				}
				r.settle()
			}
			before := op.done(r)
			equal(t, "carried out", before, op.limit)
			over := r.want(429, op.call(r, op.limit))
			budget(over, 0, time.Hour)
			equal(t, "Retry-After", over.Header.Get("Retry-After"), strconv.Itoa(59*60))
			equal(t, "code", decode(t, over)["error"].(map[string]any)["code"].(string), "RATE_LIMIT_EXCEEDED")
			equal(t, "carried out", op.done(r), before)
			r.pass(59*time.Minute - time.Second)
			r.want(429, op.call(r, op.limit))
			r.pass(time.Second) // the first was an hour ago
			if got := r.Call(op.call(r, op.limit)); got.Status > 299 {
				t.Errorf("after an hour: %d %s", got.Status, got.Body)
			}
			r.want(429, op.call(r, op.limit+1))
			equal(t, "carried out", op.done(r), op.limit+1)
		})
	}
}

// TestWhatCounts: refusals and repeats do not count, every response has the limit headers, and each account has its own
// limits.
func TestWhatCounts(t *testing.T) {
	trace.Covers(t, "CCW-LIM-7", "CCW-LIM-6")
	r := newRig(t, apptest.Options{KeepLimits: true})
	create := apptest.Call{Path: base + "/endpoints", Body: object{"url": r.sink.URL("/a")}}
	remaining := func(c apptest.Call, status, want int) {
		t.Helper()
		equal(t, "remaining", r.want(status, c).Header.Get("X-RateLimit-Remaining"), strconv.Itoa(want))
	}
	remaining(create, 201, 9)
	remaining(apptest.Call{Path: base + "/endpoints", Body: object{"url": "nonsense"}}, 400, 9)
	remaining(apptest.Call{Path: base + "/endpoints", Body: object{}}, 400, 9)
	remaining(apptest.Call{Path: base + "/endpoints", Body: "{"}, 400, 9)
	keyed := create
	keyed.Header = map[string]string{"Idempotency-Key": `"8e03978e-40d5-43e8-bc93-6894a57f9324"`}
	remaining(keyed, 201, 8)
	remaining(keyed, 201, 8)
	remaining(apptest.Call{Method: "PATCH", Path: base + "/endpoints/WEB-X2M8KD-Z", Body: object{"description": "x"}}, 404, 60)
	remaining(apptest.Call{Path: base + "/events/evt_00000000000000000000000000/replay", Body: object{"endpoint_id": r.anyEndpoint()}}, 404, 10)
	_, other := r.NewTenant("other", "manage", "read")
	remaining(apptest.Call{Path: base + "/endpoints", Key: other, Body: create.Body}, 201, 9)
	remaining(create, 201, 7)
}
