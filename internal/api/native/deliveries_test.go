package native

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// fast retries at once, a few times.
const fast = `"policy":{"base_seconds":0.001,"cap_seconds":0.001,"max_retries":2,"disable_after":0,"circuit_after":0}`

func TestDeliveryAndItsAttempts(t *testing.T) {
	trace.Covers(t, "EDS-DEF-5", "EDS-DEF-6")
	h := newHarness(t)
	receiver := newSink(t, 503, 200)
	e := h.endpoint(receiver.URL, fast)
	w := h.watch()
	a := h.publish("order.paid", `{}`)
	w.until(godwit.DeliveryAccepted)
	var l list[Delivery]
	h.get("/v1/deliveries?event=" + a.ID).want(200).into(&l)
	if len(l.Items) != 1 || l.Items[0].Status != "accepted" || l.Items[0].EndpointID != e.ID || l.Items[0].Attempts != 2 {
		t.Fatalf("deliveries: %+v", l.Items)
	}
	detail := h.get("/v1/deliveries/" + l.Items[0].ID).want(200)
	var d DeliveryDetail
	detail.into(&d)
	if len(d.AttemptList) != 2 || d.AttemptList[0].Outcome != "transient" || d.AttemptList[0].Status != 503 || d.AttemptList[0].FailureClass != "application" ||
		d.AttemptList[1].Outcome != "accepted" || d.AttemptList[1].N != 2 || d.AttemptList[0].ID == d.AttemptList[1].ID ||
		d.AttemptList[0].EventID != d.AttemptList[1].EventID || d.AttemptList[0].NextAt == nil {
		t.Errorf("attempts: %+v", d.AttemptList)
	}
	for _, claim := range []string{"processed", "completed", "durable", "delivered"} {
		if strings.Contains(string(detail.body), claim) {
			t.Errorf("an accepted delivery is called %q: %s", claim, detail.body)
		}
	}
	var ev EventDetail
	h.get("/v1/events/" + a.ID).want(200).into(&ev)
	if len(ev.Deliveries) != 1 || ev.Deliveries[0].Status != "accepted" || ev.Type != "order.paid" {
		t.Errorf("event: %+v", ev)
	}
}

func TestDeliveryFilters(t *testing.T) {
	h := newHarness(t)
	good, bad := newSink(t), newSink(t, 422)
	e1 := h.endpoint(good.URL)
	e2 := h.endpoint(bad.URL, fast)
	w := h.watch()
	first := h.publish("a.b", `1`)
	for range 2 {
		<-w.items
	}
	second := h.publish("c.d", `2`)
	for range 2 {
		<-w.items
	}
	split := time.Time{}
	{
		var ev EventDetail
		h.get("/v1/events/" + second.ID).want(200).into(&ev)
		split = ev.CreatedAt
	}
	at := url.QueryEscape(split.Format(time.RFC3339Nano))
	for query, want := range map[string]int{
		"": 4, "endpoint=" + e1.ID: 2, "endpoint=" + e2.ID: 2, "event=" + first.ID: 2, "status=accepted": 2, "status=terminal": 2, "status=pending": 0,
		"endpoint=" + e1.ID + "&status=terminal": 0, "since=" + at: 2, "until=" + at: 2, "endpoint=" + e2.ID + "&since=" + at: 1,
	} {
		var l list[Delivery]
		h.get("/v1/deliveries?" + query).want(200).into(&l)
		if len(l.Items) != want {
			t.Errorf("%q: %d deliveries, want %d", query, len(l.Items), want)
		}
	}
	for query, want := range map[string]int{
		"": 2, "type=a.b": 1, "type=c.*": 1, "type=x": 0, "key=" + first.IdempotencyKey: 1, "since=" + at: 1, "until=" + at: 1, "type=*": 2,
	} {
		var l list[Event]
		h.get("/v1/events?" + query).want(200).into(&l)
		if len(l.Items) != want {
			t.Errorf("events %q: %d, want %d", query, len(l.Items), want)
		}
	}
}

func TestRetryAndCancel(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 503, 200)
	e := h.endpoint(receiver.URL, `"policy":{"base_seconds":3600,"cap_seconds":3600,"circuit_after":0}`)
	w := h.watch()
	a := h.publish("a.b", `1`)
	receiver.wait(t)
	<-w.items
	var l list[Delivery]
	h.get("/v1/deliveries?event=" + a.ID).want(200).into(&l)
	id := l.Items[0].ID
	var d Delivery
	gate := make(chan struct{}) // otherwise the delivery may be accepted before the answer is made
	receiver.mu.Lock()
	receiver.gate = gate
	receiver.mu.Unlock()
	h.post("/v1/deliveries/"+id+"/retry", ``).want(202).into(&d)
	if d.Status != "pending" || d.DueAt == nil || d.DueAt.After(h.clock.Now()) {
		t.Errorf("after retry: %+v", d)
	}
	close(gate)
	r := receiver.wait(t)
	if r.header.Get("Idempotency-Key") != `"`+a.IdempotencyKey+`"` {
		t.Errorf("retried with another key: %s", r.header.Get("Idempotency-Key"))
	}
	w.until(godwit.DeliveryAccepted)
	h.post("/v1/deliveries/"+id+"/cancel", ``).refused(409, problem.Conflict, "")
	h.post("/v1/deliveries/"+id+"/retry", ``).want(202).into(&d)
	if d.Run.Trigger != "manual" || d.Run.Actor != h.key.ID.String() {
		t.Errorf("a finished one again: %+v", d)
	}
	w.until(godwit.DeliveryAccepted)
	h.post("/v1/deliveries/del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f/retry", ``).refused(404, problem.NotFound, "")
	h.post("/v1/deliveries/del_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f/cancel", ``).refused(404, problem.NotFound, "")

	h.post("/v1/endpoints/"+e.ID+"/pause", ``).want(200)
	b := h.publish("a.b", `2`)
	h.get("/v1/deliveries?event=" + b.ID).want(200).into(&l)
	h.post("/v1/deliveries/"+l.Items[0].ID+"/cancel", ``).want(200).into(&d)
	if d.Status != "cancelled" {
		t.Errorf("after cancel: %+v", d)
	}
}

func TestReplayEvent(t *testing.T) {
	h := newHarness(t)
	one, two := newSink(t), newSink(t)
	e1 := h.endpoint(one.URL)
	h.endpoint(two.URL)
	w := h.watch()
	a := h.publish("a.b", `1`)
	w.until(godwit.DeliveryAccepted)
	w.until(godwit.DeliveryAccepted)
	one.wait(t)
	two.wait(t)
	var replayed struct{ Items []Delivery }
	h.post("/v1/events/"+a.ID+"/replay", ``).want(202).into(&replayed)
	if len(replayed.Items) != 2 {
		t.Errorf("replayed %+v", replayed.Items)
	}
	for _, s := range []*sink{one, two} {
		if got := s.wait(t).header.Get("Idempotency-Key"); got != `"`+a.IdempotencyKey+`"` {
			t.Errorf("key %s", got)
		}
	}
	w.until(godwit.DeliveryAccepted)
	w.until(godwit.DeliveryAccepted)
	h.post("/v1/events/"+a.ID+"/replay", `{"endpoints":["`+e1.ID+`"]}`).want(202).into(&replayed)
	if len(replayed.Items) != 1 || replayed.Items[0].EndpointID != e1.ID {
		t.Errorf("replayed %+v", replayed.Items)
	}
	one.wait(t)
	h.post("/v1/events/"+a.ID+"/replay", `{"endpoints":["sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"]}`).refused(422, problem.Invalid, "endpoints[0]")
	h.post("/v1/events/"+a.ID+"/replay", `{"endpoints":["`+e1.ID+`","`+e1.ID+`"]}`).refused(422, problem.Invalid, "endpoints[1]")
	h.post("/v1/events/"+a.ID+"/replay", `{"endpoints":["x"]}`).refused(422, problem.Invalid, "endpoints[0]")
	h.post("/v1/events/"+a.ID+"/replay", `{"endpoints":["evt_x"]}`).refused(400, problem.InvalidRequest, "endpoints[0]")
	h.post("/v1/events/"+a.ID+"/replay", `{"endpoints":[]}`).refused(400, problem.InvalidRequest, "endpoints") // none is not all
	h.post("/v1/events/evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f/replay", ``).refused(404, problem.NotFound, "")
}

func TestDeadLetters(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 422)
	flaky := newSink(t, 500)
	e1 := h.endpoint(receiver.URL, `"patterns":["a.*"]`, fast)
	e2 := h.endpoint(flaky.URL, `"patterns":["b.*"]`, fast)
	w := h.watch()
	var events []Accepted
	for i := range 5 {
		events = append(events, h.publish("a.b", fmt.Sprintf(`{"n":%d}`, i)))
		w.until(godwit.DeliveryTerminal)
	}
	binary := h.do(call{method: "POST", path: "/v1/events?type=b.c", body: "\x00\xff", header: []string{"Content-Type", "application/octet-stream"}}).want(202)
	w.until(godwit.DeliveryExhausted)

	for query, want := range map[string]int{
		"": 6, "endpoint=" + e1.ID: 5, "endpoint=" + e2.ID: 1, "type=a.b": 5, "type=b.c": 1, "status=terminal": 5, "status=exhausted": 1,
		"reason=attempts-exhausted": 1, "reason=nothing": 0, "since=2100-01-01T00:00:00Z": 0, "until=2100-01-01T00:00:00Z": 6, "until=2000-01-01T00:00:00Z": 0,
	} {
		var l list[DeadLetter]
		h.get("/v1/dead-letters?" + query).want(200).into(&l)
		if len(l.Items) != want {
			t.Errorf("%q: %d dead letters, want %d", query, len(l.Items), want)
		}
		export := h.get("/v1/dead-letters/export?" + query).want(200)
		if n := strings.Count(string(export.body), "\n"); n != want {
			t.Errorf("export %q: %d lines, want %d", query, n, want)
		}
	}
	var stats EndpointStats
	h.get("/v1/endpoints/" + e1.ID + "/stats").want(200).into(&stats)
	if stats.DeadLetters != 5 || stats.DeadLettersCapped || stats.Health.Terminal != 5 || stats.Pending != 0 {
		t.Errorf("stats: %+v", stats)
	}

	var b Accepted
	binary.into(&b)
	for line := range strings.Lines(string(h.get("/v1/dead-letters/export").want(200).body)) {
		var d ExportedDeadLetter
		must(t, json.Unmarshal([]byte(line), &d))
		body, err := base64.StdEncoding.DecodeString(d.BodyBase64)
		must(t, err)
		if d.Event.ID == b.ID {
			if string(body) != "\x00\xff" || d.BodyText != nil {
				t.Errorf("binary payload: %q, text %v", body, d.BodyText)
			}
		} else if d.BodyText == nil || *d.BodyText != string(body) || !strings.HasPrefix(string(body), `{"n":`) {
			t.Errorf("payload: %q, text %v", body, d.BodyText)
		}
	}

	receiver.answer(200)
	var l list[DeadLetter]
	h.get("/v1/dead-letters?endpoint=" + e1.ID + "&limit=1").want(200).into(&l)
	id := l.Items[0].Delivery.ID
	if l.NextCursor == "" || l.Items[0].Event.ID != events[4].ID || l.Items[0].LastDetail == "" {
		t.Errorf("newest: %+v", l)
	}
	h.get("/v1/dead-letters/" + id).want(200)
	var d Delivery
	h.post("/v1/dead-letters/"+id+"/replay", ``).want(202).into(&d)
	if d.ID != id || d.Run.Trigger != "replay" || d.Run.Actor != h.key.ID.String() {
		t.Errorf("replayed: %+v", d)
	}
	w.until(godwit.DeliveryAccepted)
	h.get("/v1/dead-letters/"+id).refused(404, problem.NotFound, "")
	h.post("/v1/dead-letters/"+id+"/replay", ``).refused(404, problem.NotFound, "")

	// In bulk, in two requests.
	var bulk struct {
		Replayed   int    `json:"replayed"`
		NextCursor string `json:"next_cursor"`
	}
	h.post("/v1/dead-letters/replay", `{"endpoint":"`+e1.ID+`","limit":3}`).want(202).into(&bulk)
	if bulk.Replayed != 3 || bulk.NextCursor == "" {
		t.Errorf("first part: %+v", bulk)
	}
	next := bulk.NextCursor
	bulk.NextCursor = ""
	h.post("/v1/dead-letters/replay", `{"endpoint":"`+e1.ID+`","limit":3,"cursor":"`+next+`"}`).want(202).into(&bulk)
	if bulk.Replayed != 1 || bulk.NextCursor != "" {
		t.Errorf("second part: %+v", bulk)
	}
	for range 4 {
		w.until(godwit.DeliveryAccepted)
	}
	h.get("/v1/dead-letters").want(200).into(&l)
	if len(l.Items) != 1 {
		t.Errorf("%d dead letters are left", len(l.Items))
	}
	// Replayed dead letters are kept and marked.
	replayed := 0
	for cursor := ""; ; cursor = "&cursor=" + l.NextCursor {
		l = list[DeadLetter]{}
		h.get("/v1/dead-letters?replayed=true&limit=2" + cursor).want(200).into(&l)
		for _, d := range l.Items {
			if d.ReplayedAt != nil {
				replayed++
			}
		}
		if l.NextCursor == "" {
			break
		}
	}
	if replayed != 5 {
		t.Errorf("%d dead letters are marked as replayed", replayed)
	}
	if n := strings.Count(string(h.get("/v1/dead-letters/export?replayed=true").want(200).body), "\n"); n != 6 {
		t.Errorf("the export has %d lines", n)
	}
	h.get("/v1/dead-letters/export?replayed=maybe").refused(400, problem.InvalidRequest, "replayed")
	h.post("/v1/dead-letters/replay", `{"status":"lost"}`).refused(400, problem.InvalidRequest, "status")
	h.post("/v1/dead-letters/replay", `{"all":true,"limit":0}`).refused(400, problem.InvalidRequest, "limit")
	h.post("/v1/dead-letters/replay", `{"all":true,"cursor":"zzz"}`).refused(400, problem.InvalidRequest, "cursor")
	h.post("/v1/dead-letters/replay", `{"endpoint":"evt_x"}`).refused(400, problem.InvalidRequest, "endpoint")
}

func TestProblemDetailsOfReceivers(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	receiver.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(422)
		fmt.Fprint(w, `{"type":"https://x.example/p","title":"Bad order","status":503,"detail":"order_id is empty"}`)
	})
	h.endpoint(receiver.URL, fast)
	w := h.watch()
	h.publish("a.b", `{}`)
	item := w.until(godwit.DeliveryTerminal)
	var d DeliveryDetail
	h.get("/v1/deliveries/" + item.Attempt.DeliveryID.String()).want(200).into(&d)
	if p := d.AttemptList[0].Trace.Problem; p == nil || p.Title != "Bad order" || p.Detail != "order_id is empty" {
		t.Errorf("trace: %+v", d.AttemptList[0].Trace)
	}
}

func TestNotices(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 410)
	e := h.endpoint(receiver.URL)
	w := h.watch()
	h.publish("a.b", `{}`)
	w.until(godwit.DeliveryTerminal)
	var l list[Notice]
	h.get("/v1/notices?open=true").want(200).into(&l)
	if len(l.Items) == 0 || l.Items[0].Kind != string(godwit.NoticeEndpointDisabled) || l.Items[0].EndpointID != e.ID {
		t.Fatalf("notices: %+v", l.Items)
	}
	var got Endpoint
	h.get("/v1/endpoints/" + e.ID).want(200).into(&got)
	if got.Status != "disabled" {
		t.Errorf("endpoint is %s", got.Status)
	}
	var n Notice
	h.post("/v1/notices/"+l.Items[0].ID+"/acknowledge", ``).want(200).into(&n)
	if n.AcknowledgedBy != h.key.ID.String() || n.AcknowledgedAt == nil {
		t.Errorf("acknowledged: %+v", n)
	}
	l.Items = nil
	h.get("/v1/notices?open=true").want(200).into(&l)
	if len(l.Items) != 0 {
		t.Errorf("still open: %+v", l.Items)
	}
	h.get("/v1/notices").want(200).into(&l)
	if len(l.Items) != 1 {
		t.Errorf("all: %+v", l.Items)
	}
	h.post("/v1/notices/ntc_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f/acknowledge", ``).refused(404, problem.NotFound, "")
	h.post("/v1/notices/x/acknowledge", ``).refused(400, problem.InvalidRequest, "id")
	h.post("/v1/endpoints/"+e.ID+"/resume", ``).want(200).into(&got)
	if got.Status != "active" {
		t.Errorf("after resume: %s", got.Status)
	}
}

func TestAttemptStream(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t, 503, 200)
	h.endpoint(receiver.URL, fast)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", h.http.URL+"/v1/attempts/stream", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	resp, err := h.http.Client().Do(req)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan() // the stream is open from here on
	a := h.publish("order.paid", `{}`)
	var seen []StreamedAttempt
	for len(seen) < 2 && lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		h.contract.validate(t, "stream", strings.Join([]string{"paths", "/v1/attempts/stream", "get", "responses", "200", "content", "text/event-stream", "schema"}, "\x00"), []byte(data))
		var s StreamedAttempt
		must(t, json.Unmarshal([]byte(data), &s))
		seen = append(seen, s)
	}
	if len(seen) != 2 || seen[0].Outcome != "transient" || seen[1].Outcome != "accepted" || seen[1].DeliveryStatus != "accepted" ||
		seen[0].EventType != "order.paid" || seen[0].EventID != a.ID {
		t.Errorf("seen %+v", seen)
	}
	// Stopping the server ends the stream.
	close(h.done)
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("stream did not end well: %v", err)
	}
	h.do(call{method: "GET", path: "/v1/attempts/stream?x=1"}).refused(400, problem.InvalidRequest, "x")
}

func TestPagesAreStable(t *testing.T) {
	h := newHarness(t)
	for i := range 25 {
		h.publish("a.b", fmt.Sprint(i))
	}
	var got []string
	for cursor := ""; ; {
		var l list[Event]
		h.get("/v1/events?limit=10&cursor=" + cursor).want(200).into(&l)
		for _, e := range l.Items {
			got = append(got, e.ID)
		}
		h.publish("a.b", `"newer"`) // must not disturb the pages that follow
		if cursor = l.NextCursor; cursor == "" {
			break
		}
	}
	all, err := h.store.ListEvents(context.Background(), store.EventFilter{TenantID: h.tenant.ID}, store.Page{Limit: 100})
	must(t, err)
	if len(got) != 25 || len(all) != 28 {
		t.Fatalf("%d on the pages, %d in the store", len(got), len(all))
	}
	for i, id := range got {
		if want := all[i+3].ID.String(); id != want {
			t.Errorf("item %d is %s, want %s", i, id, want)
		}
	}
}
