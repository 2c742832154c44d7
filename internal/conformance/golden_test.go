package conformance

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// The draft's worked examples, byte for byte except for values that differ in each run. The draft prints keys without
// quotes; on the wire they have them, as its own rules require.
const (
	exampleKey  = "018f9b6e-2d3c-7a41-9c55-0b6f3e2a7d10"
	exampleBody = `{"event":"order.created","order_id":"A-1001"}`
	exampleHead = "POST /webhooks/orders HTTP/1.1\r\n" +
		"Host: ADDRESS\r\n" +
		"Content-Digest: sha-256=:BASE64:\r\n" +
		"Content-Type: application/json\r\n" +
		"Godwit-Attempt: N\r\n" +
		"Godwit-Delivery-Id: del_UUID\r\n" +
		"Godwit-Event-Id: evt_UUID\r\n" +
		"Godwit-Event-Type: order.created\r\n" +
		`Idempotency-Key: "` + exampleKey + "\"\r\n" +
		"Signature: SIGNATURE\r\n" +
		"Signature-Input: INPUT\r\n" +
		"User-Agent: Godwit\r\n" +
		"Content-Length: LENGTH\r\n" +
		"\r\n"
)

var variable = []struct{ pattern, name string }{
	{`Host: 127\.0\.0\.1:\d+`, "Host: ADDRESS"},
	{`Content-Length: \d+`, "Content-Length: LENGTH"},
	{`sha-256=:[A-Za-z0-9+/=]+:`, "sha-256=:BASE64:"},
	{`Godwit-Attempt: \d+`, "Godwit-Attempt: N"},
	{`del_[0-9a-f-]{36}`, "del_UUID"},
	{`evt_[0-9a-f-]{36}`, "evt_UUID"},
	{`Signature: [^\r]+`, "Signature: SIGNATURE"},
	{`Signature-Input: [^\r]+`, "Signature-Input: INPUT"},
}

// wantGolden compares the head of a request with the example, and its body.
func wantGolden(t *testing.T, req apptest.Request, body string) {
	t.Helper()
	head := req.Head
	for _, v := range variable {
		head = regexp.MustCompile(v.pattern).ReplaceAllString(head, v.name)
	}
	if head != exampleHead {
		t.Errorf("on the wire:\n%s\nwant:\n%s", head, exampleHead)
	}
	if string(req.Body) != body {
		t.Errorf("body %q, want %q", req.Body, body)
	}
}

// example sends the example's event to a receiver that plays a script.
func example(t *testing.T, body string, script ...apptest.Reply) (*rig, godwit.EventID, apptest.Endpoint) {
	t.Helper()
	r := newRig(t, apptest.Options{})
	r.sink.Script("/webhooks/orders", script...)
	ep := r.Endpoint(r.sink.URL("/webhooks/orders"), apptest.Fields{"patterns": []string{"order.*"}})
	ev := r.PublishKey("order.created", exampleKey, body)
	r.WaitAttempts(ev, ep, 1)
	return r, ev, ep
}

func TestExampleAccepted(t *testing.T) {
	trace.Covers(t, "EDS-EX-1")
	r, ev, ep := example(t, exampleBody, apptest.Status(200))
	r.passWindow()
	d := r.delivery(ev, ep)
	r.end()
	requests := r.sink.Requests("/webhooks/orders")
	if len(requests) != 1 || d.Status != "accepted" || !slices.Equal(d.outcomes(), accepted) {
		t.Fatalf("%d requests, %s by %v", len(requests), d.Status, d.outcomes())
	}
	wantGolden(t, requests[0], exampleBody)
}

func TestExampleRetryAfter(t *testing.T) {
	trace.Covers(t, "EDS-EX-2")
	r, ev, ep := example(t, exampleBody, apptest.RetryAfter(503, "30"), apptest.Status(200))
	for range 59 {
		r.pass(500 * time.Millisecond)
	}
	r.pass(499 * time.Millisecond)
	r.cross()
	if n := len(r.sink.Requests("/webhooks/orders")); n != 1 {
		t.Errorf("%d requests before 30 s were over", n)
	}
	r.passWindow()
	d := r.delivery(ev, ep)
	r.end()
	requests := r.sink.Requests("/webhooks/orders")
	if len(requests) != 2 || d.Status != "accepted" || !slices.Equal(d.outcomes(), thenAccepted) || d.gap(1) < 30*time.Second {
		t.Fatalf("%d requests, %s by %v", len(requests), d.Status, d.outcomes())
	}
	for i, req := range requests {
		wantGolden(t, req, exampleBody)
		if want := []string{"1", "2"}[i]; req.Header.Get("Godwit-Attempt") != want {
			t.Errorf("attempt %s, want %s", req.Header.Get("Godwit-Attempt"), want)
		}
	}
}

func TestExampleRefused(t *testing.T) {
	trace.Covers(t, "EDS-EX-3")
	empty := strings.Replace(exampleBody, "A-1001", "", 1)
	r, ev, ep := example(t, empty, apptest.Status(422).Body("application/problem+json", problemBody), apptest.Status(200))
	r.passWindow()
	d := r.delivery(ev, ep)
	r.end()
	requests := r.sink.Requests("/webhooks/orders")
	if len(requests) != 1 || d.Status != "terminal" || !slices.Equal(d.outcomes(), terminal) {
		t.Fatalf("%d requests, %s by %v", len(requests), d.Status, d.outcomes())
	}
	wantGolden(t, requests[0], empty)
	want := godwit.Problem{Type: "https://example.com/problems/order", Title: "Order is not valid", Status: 422, Detail: "order_id is empty"}
	if p := d.Attempts[0].Trace.Problem; p == nil || *p != want {
		t.Errorf("the operator reads %+v", p)
	}
}
