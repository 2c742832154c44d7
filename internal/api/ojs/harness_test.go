package ojs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

const (
	subscriptions = "/ojs/v1/webhooks/subscriptions"
	deliveries    = "/ojs/v1/webhooks/deliveries"
	events        = "/ojs/v1/events"
)

// A rig is a server and a receiver.
type rig struct {
	*apptest.Server
	t    *testing.T
	sink *apptest.Sink
}

func newRig(t *testing.T, o apptest.Options) *rig {
	t.Helper()
	return &rig{t: t, sink: apptest.NewSink(t), Server: apptest.Start(t, o)}
}

// object is decoded JSON.
type object = map[string]any

// send makes a request and decodes the answer, which must have the status.
func (r *rig) send(t *testing.T, status int, c apptest.Call) object {
	t.Helper()
	resp := r.Call(c)
	if resp.Status != status {
		t.Fatalf("%s %s: %d, want %d\n%s", c.Method, c.Path, resp.Status, status, resp.Body)
	}
	if len(resp.Body) == 0 {
		return nil
	}
	var got object
	resp.JSON(t, &got)
	if status >= 400 {
		checkError(t, resp, got)
	}
	return got
}

// checkError checks that an error has the one shape of all errors.
func checkError(t *testing.T, resp *apptest.Response, got object) {
	t.Helper()
	e, ok := got["error"].(object)
	if !ok || len(got) != 1 {
		t.Fatalf("not an error object: %s", resp.Body)
	}
	for _, name := range []string{"code", "message", "request_id"} {
		if text, _ := e[name].(string); text == "" {
			t.Errorf("error without %s: %s", name, resp.Body)
		}
	}
	if _, ok := e["retryable"].(bool); !ok {
		t.Errorf("retryable is %v", e["retryable"])
	}
	if _, ok := e["details"].(object); !ok {
		t.Errorf("details are %v", e["details"])
	}
	if e["request_id"] != resp.Header.Get("Request-Id") {
		t.Errorf("request_id %v, header %q", e["request_id"], resp.Header.Get("Request-Id"))
	}
	if resp.Header.Get("Content-Type") != "application/openjobspec+json" {
		t.Errorf("Content-Type %q", resp.Header.Get("Content-Type"))
	}
	if resp.Header.Get("X-Request-Id") != resp.Header.Get("Request-Id") || resp.Header.Get("OJS-Version") != "1.0" {
		t.Errorf("headers of an error: %v", resp.Header)
	}
}

// code is the code of an error.
func code(got object) string {
	e, _ := got["error"].(object)
	text, _ := e["code"].(string)
	return text
}

// fields are the names of the fields that an error is about.
func fields(got object) []string {
	e, _ := got["error"].(object)
	details, _ := e["details"].(object)
	list, _ := details["fields"].([]any)
	var names []string
	for _, item := range list {
		f, _ := item.(object)
		names = append(names, fmt.Sprint(f["field"]))
	}
	return names
}

// subscribe makes a subscription of all events at a path of the sink.
func (r *rig) subscribe(path string, more ...object) object {
	r.t.Helper()
	body := object{"url": r.sink.URL(path), "events": []string{"*"}}
	for _, m := range more {
		for name, value := range m {
			body[name] = value
		}
	}
	return r.send(r.t, http.StatusCreated, apptest.Call{Path: subscriptions, Body: body})
}

// count is how many subscriptions the tenant has.
func (r *rig) count() int {
	r.t.Helper()
	return int(r.send(r.t, http.StatusOK, apptest.Call{Path: subscriptions})["total"].(float64))
}

// event writes an envelope with these members over the usual ones; nil leaves one out.
func event(more ...object) string {
	body := object{"type": "job.completed", "source": "ojs://test/workers/1", "data": object{"queue": "payments", "job_type": "payment.process"}}
	for _, m := range more {
		for name, value := range m {
			if value == nil {
				delete(body, name)
			} else {
				body[name] = value
			}
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func pathOf(sub object, suffix string) string {
	return subscriptions + "/" + sub["id"].(string) + suffix
}

// holds reports whether text occurs anywhere in a JSON value.
func holds(v any, text string) bool {
	b, err := json.Marshal(v)
	return err != nil || strings.Contains(string(b), text)
}
