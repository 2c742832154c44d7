package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// thing is a CloudEvent with every kind of attribute.
func thing(t testing.TB, id, from string) ce.Event {
	t.Helper()
	e := ce.NewEvent()
	e.SetID(id)
	e.SetSource(from)
	e.SetType("com.example.thing")
	e.SetSubject("an \"odd\" subject / ü")
	e.SetTime(time.Date(2026, 7, 1, 11, 59, 58, 123456789, time.UTC))
	e.SetDataSchema("https://example.com/schema")
	e.SetExtension("comexampleextension", "value")
	if err := e.SetData("application/json", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	return e
}

// ceRequest is what the SDK puts on the wire for an event.
func ceRequest(t testing.TB, e ce.Event, structured bool) (http.Header, string) {
	t.Helper()
	req, err := http.NewRequest("POST", "http://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := binding.WithForceBinary(context.Background())
	if structured {
		ctx = binding.WithForceStructured(context.Background())
	}
	if err := cehttp.WriteRequest(ctx, binding.ToMessage(&e), req); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	return req.Header, string(body)
}

// ceReceived is what the SDK reads out of an attempt.
func ceReceived(t testing.TB, q *apptest.Request) *ce.Event {
	t.Helper()
	e, err := ce.NewEventFromHTTPRequest(request(q))
	if err != nil {
		t.Fatalf("the SDK does not read it: %v\n%s", err, q.Head)
	}
	return e
}

// TestCloudEventsGoThrough producer and relay, in both modes, with all attributes unchanged.
func TestCloudEventsGoThrough(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		for _, structured := range []bool{true, false} {
			t.Run(fmt.Sprintf("structured %t", structured), func(t *testing.T) {
				trace.Covers(t, "EDS-CE-1")
				r := newRig(t, o)
				ep := r.Endpoint(r.sink.URL("/to"), apptest.Fields{"patterns": []string{"com.example.*"}})
				s := r.Source("upstream", apptest.Fields{"event_type": apptest.Fields{}})
				sent := thing(t, "A234-1234", "/mycontext/4")
				header, body := ceRequest(t, sent, structured)
				flat := map[string]string{}
				for name := range header {
					flat[name] = header.Get(name)
				}
				posted := r.Post(apptest.Call{Path: "/v1/events", Body: body, Header: flat})
				r.WaitDelivery(posted, ep, "accepted")
				r.want(r.send(delivery{Path: s.Path, Key: key("relayed"), Body: body, Header: header, Sign: bearer(s)}), 200)
				for i, q := range r.sink.WaitOn("/to", 2) {
					if got := ceReceived(t, &q); got.String() != sent.String() {
						t.Errorf("%d arrived as\n%s\nwas sent as\n%s", i, got, sent)
					}
					sameBody(t, &q, header.Get("Content-Type"), body)
					for name, values := range header {
						if strings.HasPrefix(name, "Ce-") && q.Header.Get(name) != values[0] {
							t.Errorf("%s was %q, arrived as %q", name, values[0], q.Header[name])
						}
					}
					verified := r.verify(&q, ep.Secret, nil)
					if !structured && !strings.Contains(strings.Join(verified.Components, " "), `"ce-source"`) {
						t.Errorf("attributes are not signed: %v", verified.Components)
					}
				}
			})
		}
	})
}

// TestCloudEventsIDIsNoKey: two sources may use one id; one id may come under two keys, and two ids under one.
func TestCloudEventsIDIsNoKey(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.Endpoint(r.sink.URL("/to"))
	s := r.Source("upstream", apptest.Fields{"event_type": apptest.Fields{}})
	send := func(k, id, from string, structured bool) answer {
		header, body := ceRequest(t, thing(t, id, from), structured)
		return r.send(delivery{Path: s.Path, Key: k, Body: body, Header: header, Sign: bearer(s)})
	}
	t.Run("equal ids of two sources", func(t *testing.T) {
		trace.Covers(t, "EDS-CE-3")
		one, two := r.want(send(key("one"), "1", "/a", false), 200), r.want(send(key("two"), "1", "/b", false), 200)
		if one.ID == two.ID || one.Key == two.Key || len(r.sink.Requests("/to")) != 2 {
			t.Errorf("%s and %s, %d requests", one.ID, two.ID, len(r.sink.Requests("/to")))
		}
	})
	t.Run("one key, another id beside the body", func(t *testing.T) {
		first, again := r.want(send(key("three"), "3", "/a", false), 200), r.want(send(key("three"), "4", "/a", false), 200)
		if first.ID != again.ID {
			t.Error("the id made another event of it")
		}
	})
	t.Run("one key, another id in the body", func(t *testing.T) {
		r.want(send(key("five"), "5", "/a", true), 200)
		r.want(send(key("five"), "6", "/a", true), 422)
	})
}

// TestCloudEventsThatAreNone: invalid CloudEvents are refused.
func TestCloudEventsThatAreNone(t *testing.T) {
	r := newRig(t, apptest.Options{})
	s := r.Source("upstream", apptest.Fields{"event_type": apptest.Fields{}})
	good, body := ceRequest(t, thing(t, "1", "/a"), false)
	for name, change := range map[string]func(http.Header){
		"another version": func(h http.Header) { h.Set("Ce-Specversion", "0.3") },
		"no id":           func(h http.Header) { h.Del("Ce-Id") },
		"no source":       func(h http.Header) { h.Del("Ce-Source") },
		"no type":         func(h http.Header) { h.Del("Ce-Type") },
		"two ids":         func(h http.Header) { h["Ce-Id"] = []string{"1", "2"} },
		"a type with odd characters": func(h http.Header) {
			h.Set("Ce-Type", url.PathEscape("com.exämple"))
		},
	} {
		h := good.Clone()
		change(h)
		r.want(r.send(delivery{Path: s.Path, Key: key("a"), Body: body, Header: h, Sign: bearer(s)}), 400)
		a := r.send(delivery{Path: "/v1/events", Body: body, Header: h, Sign: func(q *http.Request, _ []byte) { q.Header.Set("Authorization", "Bearer "+r.Key) }})
		if a.Status != 422 {
			t.Errorf("%s: posted, it is answered with %d %s", name, a.Status, a.Body)
		}
	}
}
