package ojs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// sample is the document's own event, with a member that it does not know.
const sample = `{"specversion":"1.0","id":"evt_019539a4-b68c-7def-8000-112233445566","type":"job.completed",` +
	`"source":"ojs://my-service/workers/worker-1","time":"2026-02-15T22:00:00Z","subject":"019539a4-b68c-7def-8000-1a2b3c4d5e6f",` +
	`"data":{"job_type":"payment.process","queue":"payments","duration_ms":1200,"attempt":1,"result":{"transaction_id":"txn_abc123"},"x":{"y":[1.50,null]}}}`

var (
	deliveryID     = regexp.MustCompile(`^del_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	signatureField = regexp.MustCompile(`^sha256=[0-9a-f]{64}(,sha256=[0-9a-f]{64})*$`)
	wholeSeconds   = regexp.MustCompile(`^[0-9]+$`)
)

func TestPayload(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		s := r.subscribe("/hook/in?tenant=7&x=%2F", []string{"job.completed"})
		r.Must(apptest.Call{Path: eventsPath, Body: sample}, nil)
		requests := r.requests(s)
		if len(requests) != 1 {
			t.Fatalf("%d requests", len(requests))
		}
		req, body := requests[0], decoded(t, requests[0])
		t.Run("one envelope to the whole URL", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-1")
			if req.Method != "POST" || req.Path != "/hook/in?tenant=7&x=%2F" || string(req.Body) != sample {
				t.Errorf("%s %s\n%s", req.Method, req.Path, req.Body)
			}
		})
		t.Run("envelope", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-2")
			checkEnvelope(t, body)
			own := r.subscribe("/own", []string{"job.started"})
			r.Must(apptest.Call{Path: eventsPath, Body: envelope("job.started")}, nil)
			native := r.subscribe("/native", []string{"order.paid"})
			r.Publish("order.paid", `{"n":1}`)
			for _, s := range []sub{own, native} { // completed by the server, and told in another form
				checkEnvelope(t, decoded(t, r.requests(s)[0]))
			}
		})
		t.Run("data", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-3")
			data := body["data"].(object)
			if data["job_type"] != "payment.process" || data["queue"] != "payments" || data["duration_ms"] != 1200.0 || data["attempt"] != 1.0 ||
				!reflect.DeepEqual(data["result"], object{"transaction_id": "txn_abc123"}) || !reflect.DeepEqual(data["x"], object{"y": []any{1.5, nil}}) {
				t.Errorf("data %v", data)
			}
		})
		t.Run("content type", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-4")
			if got := req.Header["Content-Type"]; !reflect.DeepEqual(got, []string{"application/json"}) {
				t.Errorf("%q", got)
			}
		})
		t.Run("user agent", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-5")
			if got := req.Header.Get("User-Agent"); !strings.HasPrefix(got, "OJS-Webhook/1.0") {
				t.Errorf("%q", got)
			}
		})
		t.Run("delivery id", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-7")
			if got := req.Header["X-Ojs-Delivery-Id"]; len(got) != 1 || !deliveryID.MatchString(got[0]) {
				t.Errorf("%q", got)
			}
		})
		t.Run("subscription id", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-8")
			if got := req.Header["X-Ojs-Subscription-Id"]; len(got) != 1 || got[0] != s.id {
				t.Errorf("%q, want %s", got, s.id)
			}
		})
		t.Run("signature", func(t *testing.T) {
			trace.Covers(t, "OJS-PAY-9")
			if got := req.Header["X-Ojs-Signature"]; len(got) != 1 || !signatureField.MatchString(got[0]) {
				t.Errorf("%q", got)
			}
			verify(t, req, s.secret, r.Clock.Now())
		})
	})
}

// checkEnvelope holds an event against the specification's envelope.
func checkEnvelope(t *testing.T, e object) {
	t.Helper()
	id, _ := e["id"].(string)
	kind, _ := e["type"].(string)
	source, _ := e["source"].(string)
	at, _ := e["time"].(string)
	_, err := time.Parse(time.RFC3339, at)
	if e["specversion"] != "1.0" || !regexp.MustCompile(`^evt_[0-9a-f-]{36}$`).MatchString(id) || kind == "" ||
		!strings.Contains(source, "://") || err != nil || !strings.HasSuffix(at, "Z") {
		t.Errorf("envelope %v", e)
	}
	if _, ok := e["data"].(object); !ok {
		t.Errorf("data %v", e["data"])
	}
	if subject, given := e["subject"]; given {
		if _, ok := subject.(string); !ok {
			t.Errorf("subject %v", subject)
		}
	}
}

func TestTypeHeader(t *testing.T) {
	trace.Covers(t, "OJS-PAY-6")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*", "workflow.*", "order.*"})
	r.publish("job.completed")
	r.publish("workflow.step_completed")
	r.Publish("order.paid", `[1]`)
	requests := r.requests(s)
	if len(requests) != 3 {
		t.Fatalf("%d requests", len(requests))
	}
	for _, req := range requests {
		if got := req.Header["X-Ojs-Event-Type"]; len(got) != 1 || got[0] != decoded(t, req)["type"] {
			t.Errorf("header %q, body %s", got, req.Body)
		}
	}
}

// TestEveryAttemptIsComplete: first attempt, retry, test and manual retry carry the same event, the seven headers and their
// own timestamp.
func TestEveryAttemptIsComplete(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-PAY-10", "OJS-PAY-11", "OJS-PAY-12")
		r := newRig(t, o)
		s := r.subscribe("/hook", []string{"job.*"})
		r.sink.Script("/hook", reply(500, 500, 404, 500, 200)...)
		ev := r.publish("job.failed")
		r.settle()
		var sent []time.Time
		sent = append(sent, r.Clock.Now())
		for _, wait := range []time.Duration{schedule[0], schedule[1]} {
			r.pass(wait)
			sent = append(sent, r.Clock.Now())
		}
		r.pass(5 * time.Hour)
		r.retry(t, 202, r.delivery(ev, s).ID)
		r.settle()
		sent = append(sent, r.Clock.Now())
		r.Advance(7 * time.Second)
		r.send(t, 200, apptest.Call{Method: "POST", Path: s.at("/test")})
		sent = append(sent, r.Clock.Now())
		requests := r.requests(s)
		if len(requests) != 5 {
			t.Fatalf("%d requests", len(requests))
		}
		for i, req := range requests {
			for name, want := range map[string]string{
				"Content-Type": `^application/json$`, "User-Agent": `^OJS-Webhook/1\.0`, "X-OJS-Event-Type": `^(job\.failed|webhook\.test)$`,
				"X-OJS-Delivery-ID": deliveryID.String(), "X-OJS-Subscription-ID": `^` + s.id + `$`,
				"X-OJS-Signature": signatureField.String(), "X-OJS-Timestamp": wholeSeconds.String(),
			} {
				if got := req.Header.Values(name); len(got) != 1 || !regexp.MustCompile(want).MatchString(got[0]) {
					t.Errorf("request %d: %s is %q", i+1, name, got)
				}
			}
			seconds, err := strconv.ParseInt(req.Header.Get("X-OJS-Timestamp"), 10, 64)
			if err != nil || math.Abs(float64(sent[i].Unix()-seconds)) > 2 {
				t.Errorf("request %d has the time %d, it was %d", i+1, seconds, sent[i].Unix())
			}
			verify(t, req, s.secret, sent[i])
			if i < 4 && !bytes.Equal(req.Body, requests[0].Body) {
				t.Errorf("request %d has the body %s, the first %s", i+1, req.Body, requests[0].Body)
			}
		}
	})
}

func TestBodyIsUTF8(t *testing.T) {
	trace.Covers(t, "OJS-PAY-13")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"})
	const text = "é漢😀"
	r.Must(apptest.Call{Path: eventsPath, Body: `{"type":"job.done","source":"ojs://s","data":{"s":"` + text + `","e":"\u00e9\u6f22\ud83d\ude00"}}`}, nil)
	r.Must(apptest.Call{Method: "POST", Path: "/v1/events?type=job.latin", Body: []byte("{\"s\":\"\xe9\"}")}, nil)
	requests := r.requests(s)
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for _, req := range requests {
		if !utf8.Valid(req.Body) || !json.Valid(req.Body) {
			t.Errorf("body %q", req.Body)
		}
		verify(t, req, s.secret, r.Clock.Now())
		if data := decoded(t, req)["data"].(object); decoded(t, req)["type"] == "job.done" && (data["s"] != text || data["e"] != text || !bytes.Contains(req.Body, []byte(text))) {
			t.Errorf("data %v", data)
		}
	}
}

func TestCustomHeaders(t *testing.T) {
	trace.Covers(t, "OJS-PAY-14")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"}, object{"headers": object{"X-Env": "p", "x-team": "billing"}})
	r.publish("job.done")
	req := r.requests(s)[0]
	if req.Header.Get("X-Env") != "p" || req.Header.Get("X-Team") != "billing" {
		t.Errorf("headers %v", req.Header)
	}
	verify(t, req, s.secret, r.Clock.Now())
	for _, name := range []string{
		"Content-Type", "User-Agent", "X-OJS-Event-Type", "X-OJS-Delivery-ID", "X-OJS-Subscription-ID", "X-OJS-Signature", "X-OJS-Timestamp",
		"x-ojs-signature", "Host", "Content-Length",
	} {
		body := object{"url": "https://example.com/", "events": []string{"*"}, "headers": object{"X-Env": "p", name: "x"}}
		if got := r.send(t, 400, apptest.Call{Path: subscriptionsPath, Body: body}); !occurs(got, "headers."+name) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNoBatching(t *testing.T) {
	trace.Covers(t, "OJS-PAY-15")
	r := newRig(t, apptest.Options{})
	s := r.subscribe("/hook", []string{"job.*"})
	const n = 50
	var list []object
	for i := range n {
		list = append(list, envelope("job.done", object{"subject": fmt.Sprint(i)}))
	}
	r.Must(apptest.Call{Path: eventsPath + "/batch", Body: object{"events": list}}, nil)
	seen := map[any]bool{}
	requests := r.requests(s)
	for _, req := range requests {
		seen[decoded(t, req)["subject"]] = true
	}
	if len(requests) != n || len(seen) != n {
		t.Errorf("%d requests with %d events", len(requests), len(seen))
	}
}
