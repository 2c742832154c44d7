package cybercube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

func TestFilterThereAndBack(t *testing.T) {
	for text, want := range map[string]godwit.Filter{
		`{"resource_ids":["A","B"]}`:                        {"resource_id": {"A", "B"}},
		`{"attributes":{"status":"active"}}`:                {"object.status": {"active"}},
		`{"attributes":{"a.b":["x","y"]},"livemode":false}`: {"object.a.b": {"x", "y"}, "livemode": {"false"}},
		`{"livemode":true,"attributes":{"n":"5"}}`:          {"livemode": {"true"}, "object.n": {"5"}},
		`{}`: {},
		`{"resource_ids":["A"],"attributes":{"id":"A","t":"x"}}`: {"resource_id": {"A"}, "object.id": {"A"}, "object.t": {"x"}},
	} {
		f := &form{members: map[string]json.RawMessage{"filter": json.RawMessage(text)}}
		got := f.filter()
		if err := f.err(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		shown := viewFilter(got)
		if text == `{}` {
			if shown != nil {
				t.Errorf("nothing is shown as %+v", shown)
			}
			continue
		}
		again, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal(again, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s is shown as %s", text, again)
		}
	}
}

func TestFilterKeepsWhatOthersSet(t *testing.T) {
	old := godwit.Filter{"queue": {"q"}, "resource_id": {"A"}, "object.status": {"x"}, "livemode": {"true"}}
	got := refilter(old, godwit.Filter{"object.name": {"n"}})
	if want := (godwit.Filter{"queue": {"q"}, "object.name": {"n"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("filter %v", got)
	}
	if v := viewFilter(godwit.Filter{"queue": {"q"}}); v != nil {
		t.Errorf("shown %+v", v)
	}
}

func TestAttributesOfAResource(t *testing.T) {
	got := attributesOf(json.RawMessage(`{"id":"P","object":"project","n":1.50,"yes":true,"none":null,"list":[1],"owner":{"id":"U","deep":{"er":{"est":{"no":1}}}},
		"long":"`+strings.Repeat("x", 257)+`","bad name":1,"tab":"a\tb"}`), true)
	want := map[string]string{
		"livemode": "true", "resource_id": "P", "resource_type": "project", "object.id": "P", "object.object": "project", "object.n": "1.50",
		"object.yes": "true", "object.owner.id": "U",
	}
	if !maps.Equal(got, want) {
		t.Errorf("attributes %v", got)
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `,"m%03d":%d`, i, i)
	}
	got = attributesOf(json.RawMessage(`{"id":"P","object":"o","a":{"b":1}`+many.String()+`}`), false)
	if len(got) != godwit.MaxAttributes || got["resource_id"] != "P" || got["livemode"] != "false" || got["object.m000"] != "0" || got["object.a.b"] != "" {
		t.Errorf("%d attributes: %v", len(got), got)
	}
}

// The name of a nested member includes the names above it: one long name over many members must not be repeated for each.
func TestAttributesOfLongNames(t *testing.T) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"m%03d":{"n":1}`, i)
	}
	long := strings.Repeat("k", 100_000)
	object := json.RawMessage(`{"id":"P","object":"o","short":{"n":1},"` + long + `":{"a":1` + many.String() + `},"s":{"` + long + `":{"a":1` + many.String() + `}}}`)
	var got map[string]string
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			got = attributesOf(object, true)
		}
	})
	if got["object.short.n"] != "1" || len(got) != 6 {
		t.Errorf("attributes %v", got)
	}
	if n := result.AllocedBytesPerOp(); n > 10*int64(len(object)) {
		t.Errorf("%d bytes for an object of %d", n, len(object))
	}
}

func TestRedact(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"id":"WEB-1","secret":"whsec_x","status":"active"}}`: `{"data":{"id":"WEB-1","secret_redacted":true,"status":"active"}}`,
		`{"data":{"secret":"whsec_x"}}`:                                `{"data":{"secret_redacted":true}}`,
		`{"data":{"id":1}}`:                                            `{"data":{"id":1}}`,
		`{"data":[1]}`:                                                 `{"data":[1]}`,
		`{"error":{}}`:                                                 `{"error":{}}`,
		`nonsense`:                                                     `nonsense`,
	} {
		if got := strings.TrimSpace(string(Redact([]byte(body)))); got != want {
			t.Errorf("%s becomes %s", body, got)
		}
	}
}

func TestReasonsOfDeath(t *testing.T) {
	status := func(code int, o godwit.Outcome) *godwit.Attempt {
		return &godwit.Attempt{Status: code, Verdict: godwit.Verdict{Outcome: o, Class: godwit.ClassApplication, Reason: godwit.ReasonStatus}}
	}
	broken := &godwit.Attempt{Status: 200, Verdict: godwit.Verdict{Outcome: godwit.Transient, Class: godwit.ClassTransport, Reason: "truncated-response"}}
	for want, c := range map[string]struct {
		d      godwit.Delivery
		detail string
		final  *godwit.Attempt
	}{
		"HTTP 500 after 7 attempts":                          {godwit.Delivery{Status: godwit.DeliveryExhausted, Run: godwit.Run{Attempts: 7}}, "", status(500, godwit.Transient)},
		"HTTP 503 after 1 attempt":                           {godwit.Delivery{Status: godwit.DeliveryExhausted, Run: godwit.Run{Attempts: 1}}, "", status(503, godwit.Transient)},
		"HTTP 404 (not retryable)":                           {godwit.Delivery{Status: godwit.DeliveryTerminal, Run: godwit.Run{Attempts: 1}}, "", status(404, godwit.Terminal)},
		"truncated-response after 7 attempts":                {godwit.Delivery{Status: godwit.DeliveryExhausted, LastStatus: 200, Run: godwit.Run{Attempts: 7}}, "", broken},
		"HTTP 502 after 3 attempts":                          {godwit.Delivery{Status: godwit.DeliveryExhausted, LastStatus: 502, Run: godwit.Run{Attempts: 3}}, "", nil},
		"gone away after 2 attempts":                         {godwit.Delivery{Status: godwit.DeliveryExhausted, Run: godwit.Run{Attempts: 2}}, "gone away", nil},
		"sunset (not retryable)":                             {godwit.Delivery{Status: godwit.DeliveryTerminal, Reason: godwit.ReasonSunset}, "", nil},
		"not delivered within the time that events are kept": {godwit.Delivery{Status: godwit.DeliveryExhausted, Reason: godwit.ReasonRetention}, "", nil},
	} {
		if got := failureReason(&godwit.DeadLetter{Delivery: c.d, LastDetail: c.detail}, c.final); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestStatesOfAttempts(t *testing.T) {
	next := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		outcome godwit.Outcome
		next    time.Time
		trigger godwit.Trigger
		want    string
	}{
		{godwit.Accepted, time.Time{}, godwit.TriggerAccept, "success"},
		{godwit.Transient, next, godwit.TriggerRetry, "failed"},
		{godwit.Transient, time.Time{}, godwit.TriggerRetry, "exhausted"},
		{godwit.Terminal, time.Time{}, godwit.TriggerAccept, "failed"},
		{godwit.Transient, time.Time{}, godwit.TriggerTest, "failed"},
	} {
		if got := statusOf(&godwit.Attempt{Verdict: godwit.Verdict{Outcome: c.outcome}, NextAt: c.next, Trigger: c.trigger}); got != c.want {
			t.Errorf("%+v is %s", c, got)
		}
	}
}

func TestWhatWentWrong(t *testing.T) {
	transport := godwit.Verdict{Outcome: godwit.Transient, Class: godwit.ClassTransport, Reason: "timeout"}
	limit := godwit.Verdict{Outcome: godwit.Transient, Class: godwit.ClassApplication, Reason: godwit.Reason(godwit.FailureRedirectLimit)}
	answered := godwit.Verdict{Outcome: godwit.Transient, Class: godwit.ClassApplication, Reason: godwit.ReasonStatus}
	for _, c := range []struct {
		attempt        godwit.Attempt
		short, message string
	}{
		{godwit.Attempt{Status: 500, Verdict: answered}, "HTTP 500", "Internal Server Error"},
		{godwit.Attempt{Status: 599, Verdict: answered}, "HTTP 599", "HTTP 599"},
		{godwit.Attempt{Verdict: transport}, "timeout", "timeout"},
		{godwit.Attempt{Verdict: transport, Trace: godwit.Trace{Detail: "after 30 s"}}, "timeout: after 30 s", "timeout: after 30 s"},
		{godwit.Attempt{Status: 302, Verdict: limit}, "redirect-limit", "redirect-limit"},
		{godwit.Attempt{Status: 500, Verdict: answered, Trace: godwit.Trace{Detail: "the response could not be stored"}}, "HTTP 500", "Internal Server Error"},
	} {
		if a, b := errorOf(&c.attempt), errorMessage(&c.attempt); a != c.short || b != c.message {
			t.Errorf("%+v: %q and %q", c.attempt.Verdict, a, b)
		}
	}
}

// A tenant cannot take all exports: another tenant still gets one.
func TestOneExportTooMany(t *testing.T) {
	x := &failureExport{running: httpapi.NewQuota(maxExports, maxExportsOfAll)}
	call := &httpapi.Call{Caller: &management.Caller{Tenant: &godwit.Tenant{ID: godwit.TenantID{1}}}}
	for range maxExports {
		if err := x.running.Acquire(call.Tenant(), "exports"); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.serve(call, &godwit.Endpoint{}); !errors.Is(err, problem.TooManyRequests) {
		t.Errorf("one more: %v", err)
	}
	if err := x.running.Acquire(godwit.TenantID{2}, "exports"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// The response to a request with very many errors must not be longer than the request.
func TestErrorsAreBounded(t *testing.T) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"m%d":0`, i)
	}
	f, err := readForm([]byte(`{"url":1` + many.String() + `}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.errs); n != maxWrong {
		t.Errorf("%d errors", n)
	}
}
