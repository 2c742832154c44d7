package native

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/trace"
)

const (
	key1 = `"8e03978e-40d5-43e8-bc93-6894a57f9324"`
	key2 = `"clkyoesmbgybucifusbbtdsbohtyuuwz"`
)

func bare(key string) string { return strings.Trim(key, `"`) }

func TestPayloadsGoThroughUntouched(t *testing.T) {
	trace.Covers(t, "EDS-DEF-1", "EDS-MTH-4", "EDS-MTH-5")
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	for _, c := range []struct{ contentType, body string }{
		{"application/json", "{ \"a\" : 1.10,\n \"a\":\"\\u00e9\" }"},
		{"text/xml; charset=iso-8859-1", "<a>\xe9</a>"},
		{"application/octet-stream", "\x00\x01\xff\xfe not text"},
		{"application/cloudevents+json", `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`},
		{"application/vnd.acme.v2+json", `{}`},
		{"text/plain", ""},
	} {
		a := h.do(call{method: "POST", path: "/v1/events?type=order.created", body: c.body, header: []string{"Content-Type", c.contentType}}).want(202)
		var accepted Accepted
		a.into(&accepted)
		if a.header.Get("Location") != "/v1/events/"+accepted.ID || accepted.Deliveries != 1 {
			t.Errorf("%s: %s %+v", c.contentType, a.header.Get("Location"), accepted)
		}
		got := receiver.wait(t)
		if string(got.body) != c.body || got.header.Get("Content-Type") != c.contentType {
			t.Errorf("sent %q as %q, arrived %q as %q", c.body, c.contentType, got.body, got.header.Get("Content-Type"))
		}
		stored := h.get("/v1/events/" + accepted.ID + "/body").want(200)
		if string(stored.body) != c.body || stored.header.Get("Content-Type") != c.contentType ||
			stored.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(stored.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("stored %q with %v", stored.body, stored.header)
		}
	}
	before := h.counts()
	h.do(call{method: "POST", path: "/v1/events?type=order.created", body: "x", noType: true}).refused(415, problem.UnsupportedMediaType, "Content-Type")
	if h.counts() != before {
		t.Error("an event without a media type was stored")
	}
}

func TestEnvelopeKeepsItsDataByteForByte(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	for name, c := range map[string]struct{ envelope, contentType, body string }{
		"spaces":     {`{"type":"a.b", "data" : {"x" : [1, 2.50],   "y":"\u00e9"} }`, "application/json", `{"x" : [1, 2.50],   "y":"\u00e9"}`},
		"string":     {`{"data":"text","type":"a.b"}`, "application/json", `"text"`},
		"null":       {`{"type":"a.b","data":null}`, "application/json", `null`},
		"number":     {`{"type":"a.b","data":12345678901234567890.10}`, "application/json", `12345678901234567890.10`},
		"other type": {`{"type":"a.b","data":{},"content_type":"application/vnd.x+json"}`, "application/vnd.x+json", `{}`},
		"binary":     {`{"type":"a.b","data_base64":"AP/+"}`, "application/octet-stream", "\x00\xff\xfe"},
		"typed":      {`{"type":"a.b","data_base64":"PGEvPg==","content_type":"text/xml"}`, "text/xml", "<a/>"},
	} {
		t.Run(name, func(t *testing.T) {
			h.post("/v1/events", c.envelope).want(202)
			got := receiver.wait(t)
			if string(got.body) != c.body || got.header.Get("Content-Type") != c.contentType {
				t.Errorf("arrived %q as %q, want %q as %q", got.body, got.header.Get("Content-Type"), c.body, c.contentType)
			}
		})
	}
}

func TestTypeAndAttributesSelect(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL, `"patterns":["order.*"]`, `"filter":{"region":["eu","us"]}`)
	for path, want := range map[string]int{
		"/v1/events?type=order.paid&attr.region=eu":             1,
		"/v1/events?type=order.paid&attr.region=us&attr.vip=no": 1,
		"/v1/events?type=order.paid&attr.region=cn":             0,
		"/v1/events?type=order.paid":                            0,
		"/v1/events?type=order&attr.region=eu":                  0,
		"/v1/events?type=invoice.paid&attr.region=eu":           0,
	} {
		var a Accepted
		h.post(path, `{}`).want(202).into(&a)
		if a.Deliveries != want {
			t.Errorf("%s: %d deliveries, want %d", path, a.Deliveries, want)
		}
	}
	var a Accepted
	h.post("/v1/events", `{}`, "Godwit-Event-Type", "order.paid").want(202).into(&a)
	h.post("/v1/events", `{"type":"order.paid","data":1,"attributes":{"region":"eu"}}`).want(202).into(&a)
	if a.Deliveries != 1 {
		t.Errorf("attributes of an envelope: %d deliveries", a.Deliveries)
	}
	var e EventDetail
	h.get("/v1/events/" + a.ID).want(200).into(&e)
	if !e.CreatedAt.Equal(a.CreatedAt) || e.Attributes["region"] != "eu" || e.Type != "order.paid" || e.Size != 1 {
		t.Errorf("event is %+v", e)
	}
}

func TestKeyIsAssignedReturnedAndSent(t *testing.T) {
	trace.Covers(t, "EDS-IDM-1", "EDS-DUP-8")
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	seen := map[string]bool{}
	for range 2 { // the same payload twice is two events
		a := h.publish("a.b", `{"same":true}`)
		if len(a.IdempotencyKey) != 36 || seen[a.IdempotencyKey] {
			t.Errorf("key %q", a.IdempotencyKey)
		}
		seen[a.IdempotencyKey] = true
		if got := receiver.wait(t).header.Get("Idempotency-Key"); got != `"`+a.IdempotencyKey+`"` {
			t.Errorf("sent %s, answered %s", got, a.IdempotencyKey)
		}
	}
	a := h.publish("a.b", `{}`, "Idempotency-Key", `"with \"quotes\" and \\"`)
	if a.IdempotencyKey != `with "quotes" and \` {
		t.Errorf("answered %q", a.IdempotencyKey)
	}
	if got := receiver.wait(t).header.Get("Idempotency-Key"); got != `"with \"quotes\" and \\"` {
		t.Errorf("sent %s", got)
	}
}

func TestEventPostedTwiceIsDeliveredOnce(t *testing.T) {
	trace.Covers(t, "IKH-DEF-3", "IKH-DEF-5", "IKH-SCN-1", "IKH-SCN-3", "IKH-RSP-5")
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	first := h.post("/v1/events?type=a.b", `{"n":1}`, "Idempotency-Key", key1).want(202)
	for range 9 {
		again := h.post("/v1/events?type=a.b", `{"n":1}`, "Idempotency-Key", key1).want(202)
		if !bytes.Equal(again.body, first.body) || !again.replayed() || again.header.Get("Location") != first.header.Get("Location") ||
			again.header.Get("Content-Type") != first.header.Get("Content-Type") {
			t.Fatalf("repeat differs: %s, first %s", again.body, first.body)
		}
	}
	if first.replayed() {
		t.Error("the first answer calls itself replayed")
	}
	other := h.post("/v1/events?type=a.b", `{"n":1}`, "Idempotency-Key", key2).want(202)
	if bytes.Equal(other.body, first.body) {
		t.Error("another key gave the same event")
	}
	for _, want := range []string{key1, key2} {
		if got := receiver.wait(t).header.Get("Idempotency-Key"); got != want {
			t.Errorf("arrived %s, want %s", got, want)
		}
	}
	h.drained()
	if n := len(receiver.arrived); n != 0 {
		t.Errorf("%d more deliveries", n)
	}
	if n := h.counts().events; n != 2 {
		t.Errorf("%d events", n)
	}
}

// drained waits until the engine has nothing in flight. It stops the engine, because a stop drains it.
func (h *harness) drained() { h.stop() }

func TestKeyReusedWithAnotherEvent(t *testing.T) {
	trace.Covers(t, "IKH-SCN-2", "IKH-ERR-3", "IKH-ERR-4", "EDS-DUP-6", "EDS-DUP-7")
	h := newHarness(t)
	first := h.post("/v1/events?type=a.b", `{"n":1}`, "Idempotency-Key", key1).want(202)
	for name, send := range map[string]func() *answer{
		"other body":       func() *answer { return h.post("/v1/events?type=a.b", `{"n":2}`, "Idempotency-Key", key1) },
		"other type":       func() *answer { return h.post("/v1/events?type=a.c", `{"n":1}`, "Idempotency-Key", key1) },
		"other attributes": func() *answer { return h.post("/v1/events?type=a.b&attr.x=1", `{"n":1}`, "Idempotency-Key", key1) },
		"other media type": func() *answer {
			return h.post("/v1/events?type=a.b", `{"n":1}`, "Idempotency-Key", key1, "Content-Type", "text/plain")
		},
		"other envelope": func() *answer { return h.post("/v1/events", `{"type":"a.b","data":{"n":2}}`, "Idempotency-Key", key1) },
	} {
		t.Run(name, func(t *testing.T) { wantDocumented(t, send(), 422, problem.KeyReused) })
	}
	item := h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":{"n":2},"idempotency_key":`+quote(bare(key1))+`}]}`).want(207)
	if !bytes.Contains(item.body, []byte(problem.KeyReused.Code)) {
		t.Errorf("as an item of a batch: %s", item.body)
	}
	h.clock.Advance(23 * time.Hour)
	wantDocumented(t, h.post("/v1/events?type=a.b", `{"n":2}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	if again := h.post("/v1/events", `{"type":"a.b","data":{"n":1}}`, "Idempotency-Key", key1).want(202); !bytes.Equal(again.body, first.body) {
		t.Errorf("the same event in an envelope: %s", again.body)
	}
	if n := h.counts().events; n != 1 {
		t.Errorf("%d events", n)
	}
}

func wantDocumented(t *testing.T, a *answer, status int, kind *problem.Kind) {
	t.Helper()
	a.refused(status, kind, "")
	if p := a.problem(); status == 400 && len(p.Errors) == 0 {
		t.Errorf("no field is named: %s", a.body)
	}
	if got, want := a.header.Get("Link"), `<https://godwit.example/docs/idempotency>; rel="describedby"; type="text/html"`; got != want {
		t.Errorf("Link is %q", got)
	}
	if p := a.problem(); p.Type != "https://godwit.example/docs/idempotency#"+kind.Code {
		t.Errorf("type is %q", p.Type)
	}
}

func TestEventKeyWindow(t *testing.T) {
	trace.Covers(t, "IKH-EXP-2")
	h := newHarness(t)
	first := h.post("/v1/events?type=a.b", `{}`, "Idempotency-Key", key1).want(202)
	h.clock.Advance(24*time.Hour - time.Minute)
	if !h.post("/v1/events?type=a.b", `{}`, "Idempotency-Key", key1).want(202).replayed() {
		t.Error("forgotten inside the window")
	}
	h.clock.Advance(2 * time.Minute)
	after := h.post("/v1/events?type=a.b", `{}`, "Idempotency-Key", key1).want(202)
	if after.replayed() || bytes.Equal(after.body, first.body) {
		t.Error("remembered outside the window")
	}
}

func TestKeyRequiredByTenant(t *testing.T) {
	trace.Covers(t, "IKH-ERR-1", "IKH-ERR-2", "IKH-ERR-7", "IKH-DEF-1", "IKH-REG-1")
	h := newHarness(t)
	h.do(call{method: "PATCH", path: "/v1/tenants/" + h.tenant.ID.String(), body: `{"require_idempotency_key":true}`}).want(200)
	for name, c := range map[string]call{
		"nowhere":        {path: "/v1/events?type=a.b", body: `{}`},
		"in the query":   {path: "/v1/events?type=a.b&idempotency_key=" + bare(key1), body: `{}`},
		"in the body":    {path: "/v1/events", body: `{"type":"a.b","data":1,"idempotency_key":` + quote(bare(key1)) + `}`},
		"vendor header":  {path: "/v1/events?type=a.b", body: `{}`, header: []string{"X-Idempotency-Key", key1}},
		"batch, no keys": {path: "/v1/events/batch", body: `{"events":[{"type":"a.b","data":1}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			c.method = "POST"
			for range 5 {
				wantDocumented(t, h.do(c), 400, problem.KeyMissing)
			}
		})
	}
	if n := h.counts().events; n != 0 {
		t.Errorf("%d events were stored", n)
	}
	h.post("/v1/events?type=a.b", `{}`, "idempotency-KEY", key1).want(202)
	h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":1}]}`, "Idempotency-Key", key1).want(202)
	h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":1,"idempotency_key":"each-item-has-its-own"}]}`).want(202)
	// An unauthenticated caller learns nothing about keys (K-13).
	h.do(call{method: "POST", path: "/v1/events?type=a.b", body: `{}`, token: "-"}).refused(401, problem.Unauthorized, "")
}

func TestBadEventKeys(t *testing.T) {
	trace.Covers(t, "IKH-SYN-3", "IKH-SYN-5", "IKH-SEC-1", "IKH-SEC-5", "EDS-KEY-4")
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	for name, c := range map[string]struct {
		keys []string
		kind *problem.Kind
	}{
		"bare uuid": {[]string{bare(key1)}, problem.KeyMalformed},
		"token":     {[]string{"sometoken-sometoken-sometoken"}, problem.KeyMalformed},
		"empty":     {[]string{`""`}, problem.KeyTooShort},
		"short":     {[]string{`"123456789012345"`}, problem.KeyTooShort},
		"long":      {[]string{`"` + strings.Repeat("k", 256) + `"`}, problem.KeyTooLong},
		"two lines": {[]string{key1, key1}, problem.KeyRepeated},
		"list":      {[]string{key1 + ", " + key2}, problem.KeyMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			for _, k := range c.keys {
				header = append(header, "Idempotency-Key", k)
			}
			wantDocumented(t, h.post("/v1/events?type=a.b", `{}`, header...), 400, c.kind)
			wantDocumented(t, h.post("/v1/endpoints", `{"url":"https://example.com/"}`, header...), 400, c.kind)
			wantDocumented(t, h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":1}]}`, header...), 400, c.kind)
		})
	}
	if n := h.counts(); n.events != 0 || n.endpoints != 1 {
		t.Errorf("something was stored: %+v", n)
	}
	// A key that the server generates is a random UUID.
	a := h.publish("a.b", `{}`)
	if k := a.IdempotencyKey; len(k) != 36 || k[14] != '4' {
		t.Errorf("made the key %q", k)
	}
}

func TestConcurrentDuplicateEvents(t *testing.T) {
	trace.Covers(t, "IKH-DEF-4", "IKH-RSP-7")
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	var wg sync.WaitGroup
	var mu sync.Mutex
	bodies := map[string]int{}
	statuses := map[int]int{}
	for range 100 {
		wg.Go(func() {
			a := h.post("/v1/events?type=payment.made", `{"pay":"100.00"}`, "Idempotency-Key", key1)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
			if a.status == 202 {
				bodies[string(a.body)]++
			} else {
				wantDocumented(t, a, 409, problem.KeyInProgress)
			}
		})
	}
	wg.Wait()
	for range 100 {
		a := h.post("/v1/events?type=payment.made", `{"pay":"100.00"}`, "Idempotency-Key", key1).want(202)
		bodies[string(a.body)]++
	}
	if len(bodies) != 1 || statuses[202] == 0 || statuses[202]+statuses[409] != 100 {
		t.Errorf("answers %v, statuses %v", bodies, statuses)
	}
	receiver.wait(t)
	h.drained()
	if n := len(receiver.arrived); n != 0 || h.counts().events != 1 {
		t.Errorf("%d more deliveries, %d events", n, h.counts().events)
	}
}

func TestBatch(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	var b strings.Builder
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"a.b","data":{"n":%d}}`, i)
	}
	var result BatchResult
	h.post("/v1/events/batch", `{"events":[`+b.String()+`]}`).want(202).into(&result)
	if len(result.Items) != 1000 || result.Items[999].Index != 999 || result.Items[0].Status != "accepted" {
		t.Fatalf("%d items", len(result.Items))
	}
	seen := map[string]bool{}
	for range 1000 {
		seen[string(receiver.wait(t).body)] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d distinct payloads arrived", len(seen))
	}
	h.post("/v1/events/batch", `{"events":[`+b.String()+`,{"type":"a.b","data":1}]}`).refused(400, problem.InvalidRequest, "events")
	if n := h.counts().events; n != 1000 {
		t.Errorf("%d events", n)
	}
}

func TestBatchIsCheckedWhole(t *testing.T) {
	h := newHarness(t)
	before := h.counts()
	a := h.post("/v1/events/batch", `{"events":[{"type":"ok","data":1},{"type":"not ok","data":1},{"type":"x","data":1,"colour":2},{"type":"y"}]}`)
	a.refused(422, problem.Invalid, "events[1].type")
	a.refused(422, problem.Invalid, "events[2].colour")
	a.refused(422, problem.Invalid, "events[3].data")
	if h.counts() != before {
		t.Error("a part of a bad batch was stored")
	}
}

func TestBatchKeys(t *testing.T) {
	h := newHarness(t)
	receiver := newSink(t)
	h.endpoint(receiver.URL)
	const batch = `{"events":[{"type":"a.b","data":1},{"type":"a.b","data":2}]}`
	first := h.post("/v1/events/batch", batch, "Idempotency-Key", key1).want(202)
	again := h.post("/v1/events/batch", batch, "Idempotency-Key", key1).want(202)
	if !again.replayed() || !bytes.Equal(again.body, first.body) {
		t.Errorf("repeat of a batch: %s", again.body)
	}
	wantDocumented(t, h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":1}]}`, "Idempotency-Key", key1), 422, problem.KeyReused)
	// The batch's key is not forwarded: every event has its own key.
	keys := map[string]bool{receiver.wait(t).header.Get("Idempotency-Key"): true, receiver.wait(t).header.Get("Idempotency-Key"): true}
	if len(keys) != 2 || keys[key1] {
		t.Errorf("keys on the wire: %v", keys)
	}
	h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":1,"idempotency_key":"a-key-of-its-own-1"}]}`, "Idempotency-Key", key2).
		refused(422, problem.Invalid, "events[0].idempotency_key")

	item := func(n int, key string) string {
		return fmt.Sprintf(`{"type":"a.b","data":%d,"idempotency_key":%q}`, n, key)
	}
	var result BatchResult
	h.post("/v1/events/batch", `{"events":[`+item(1, "a-key-of-its-own-1")+`,`+item(2, "a-key-of-its-own-2")+`]}`).want(202).into(&result)
	one := result.Items[0]
	h.post("/v1/events/batch", `{"events":[`+item(1, "a-key-of-its-own-1")+`,`+item(9, "a-key-of-its-own-2")+`,`+item(3, "a-key-of-its-own-3")+`]}`).want(207).into(&result)
	if got := result.Items; got[0].Status != "replayed" || got[0].ID != one.ID || got[1].Status != "refused" || got[2].Status != "accepted" {
		t.Errorf("items: %+v", got)
	}
	// The same key on the single route is the same event.
	single := h.post("/v1/events?type=a.b", `3`, "Idempotency-Key", `"a-key-of-its-own-3"`).want(202)
	var a Accepted
	single.into(&a)
	if !single.replayed() || a.ID != result.Items[2].ID {
		t.Errorf("single repeat of an item: %s", single.body)
	}
	h.post("/v1/events/batch", `{"events":[`+item(1, "twice-twice-twice")+`,`+item(2, "twice-twice-twice")+`]}`).
		refused(422, problem.Invalid, "events[1].idempotency_key")
}

func TestBodyLimit(t *testing.T) {
	h := startHarness(t, harnessOptions{maxBody: 1000, limits: management.NoLimits})
	before := h.counts()
	h.post("/v1/events?type=a.b", strings.Repeat("x", 1001), "Content-Type", "text/plain").refused(413, problem.TooLarge, "")
	h.post("/v1/events", `{"type":"a.b","data":"`+strings.Repeat("x", 999)+`"}`).refused(413, problem.TooLarge, "data")
	h.post("/v1/events", `{"type":"a.b","data_base64":"`+base64.StdEncoding.EncodeToString(make([]byte, 1001))+`"}`).refused(413, problem.TooLarge, "data_base64")
	h.post("/v1/events/batch", `{"events":[{"type":"a.b","data":"`+strings.Repeat("x", 999)+`"}]}`).refused(413, problem.TooLarge, "events[0].data")
	if status, _ := h.chunked("/v1/events?type=a.b", 1001); status != 413 {
		t.Errorf("too long without a length: %d", status)
	}
	if h.counts() != before {
		t.Error("something was stored")
	}
	h.post("/v1/events?type=a.b", strings.Repeat("x", 1000), "Content-Type", "text/plain").want(202)
	h.post("/v1/events", `{"type":"a.b","data_base64":"`+base64.StdEncoding.EncodeToString(make([]byte, 1000))+`"}`).want(202)
	if status, body := h.chunked("/v1/events?type=a.b", 1000); status != 202 {
		t.Errorf("just fitting without a length: %d %s", status, body)
	}
	big := startHarness(t, harnessOptions{limits: management.NoLimits})
	big.post("/v1/events?type=a.b", strings.Repeat("x", 1<<20), "Content-Type", "text/plain").want(202)
	big.post("/v1/events?type=a.b", strings.Repeat("x", 1<<20+1), "Content-Type", "text/plain").refused(413, problem.TooLarge, "")
}

// chunked posts n bytes without Content-Length.
func (h *harness) chunked(path string, n int) (int, string) {
	h.t.Helper()
	req, err := http.NewRequest("POST", h.http.URL+path, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", n))})
	must(h.t, err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", "text/plain")
	resp, err := h.http.Client().Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// TestLengthThatLies announces more bytes than it sends, and then disconnects.
func TestLengthThatLies(t *testing.T) {
	h := newHarness(t)
	before := h.counts()
	for _, announced := range []string{"100", "99999999999"} {
		conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
		must(t, err)
		fmt.Fprintf(conn, "POST /v1/events?type=a.b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: %s\r\n\r\nshort", h.token, announced)
		conn.(*net.TCPConn).CloseWrite()
		reply, err := io.ReadAll(conn)
		must(t, err)
		conn.Close()
		if !bytes.HasPrefix(reply, []byte("HTTP/1.1 4")) {
			t.Errorf("announced %s: %s", announced, reply)
		}
	}
	if h.counts() != before {
		t.Error("something was stored")
	}
}

func TestIngestWhileStopping(t *testing.T) {
	h := newHarness(t)
	h.stop()
	a := h.post("/v1/events?type=a.b", `{}`).refused(503, problem.Unavailable, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestPayloadsStayOutOfLogs(t *testing.T) {
	trace.Covers(t, "EDS-SEC-CNF-2", "EDS-SEC-THR-4")
	h := newHarness(t)
	receiver := newSink(t, 500, 200)
	e := h.endpoint(receiver.URL, `"headers":{"X-Secret":"header-marker"}`, `"policy":{"base_seconds":0.001}`)
	w := h.watch()
	a := h.publish("a.b", `{"card":"payload-marker"}`)
	w.until(godwit.DeliveryAccepted)
	h.post("/v1/events", `{"type":"bad type","data":"payload-marker"}`).refused(422, problem.Invalid, "type")
	h.post("/v1/events", `{"type":"a.b","data":"payload-marker"`).refused(400, problem.MalformedJSON, "body")
	other, err := h.management.Tenants.Create(context.Background(), godwit.DefaultEnvironment, management.TenantSpec{Name: "other"})
	must(t, err)
	_, stranger := h.mint(other.ID, godwit.ScopeRead, godwit.ScopeManage)
	for _, path := range []string{"/v1/events/" + a.ID, "/v1/events/" + a.ID + "/body", "/v1/endpoints/" + e.ID} {
		h.do(call{method: "GET", path: path, token: stranger}).refused(404, problem.NotFound, "")
	}
	for _, path := range []string{"/v1/events", "/v1/endpoints", "/v1/deliveries"} {
		var l list[map[string]any]
		h.do(call{method: "GET", path: path, token: stranger}).want(200).into(&l)
		if len(l.Items) != 0 {
			t.Errorf("%s shows another tenant's", path)
		}
	}
	h.stop()
	for _, marker := range []string{"payload-marker", "header-marker", h.token, e.Secret.Value} {
		if strings.Contains(h.log.String(), marker) {
			t.Errorf("%q is in the log", marker)
		}
	}
}
