package conformance

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestAnyPayload: bytes and media type arrive as they were given, whatever they are.
func TestAnyPayload(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		for _, c := range []struct {
			name, media string
			body        []byte
			rows        []string
		}{
			{"json", "application/json", []byte("{ \"b\": 1.0,\t\"a\" : \"\\u20ac\" }\n"), []string{"EDS-DEF-1", "EDS-MTH-4"}},
			{"xml", "text/xml", []byte("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\r\n<a>\xe9</a>"), []string{"EDS-DEF-1", "EDS-MTH-4"}},
			{"binary", "application/octet-stream", every, []string{"EDS-DEF-1"}},
			{"empty", "application/octet-stream", nil, []string{"EDS-DEF-1"}},
			{"cloudevents", "application/cloudevents+json; charset=utf-8", []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t"}`), []string{"EDS-MTH-4"}},
			{"vendor", "application/vnd.acme.v2+json", []byte(`{}`), []string{"EDS-MTH-5"}},
			{"parameters", `multipart/mixed; boundary="a b; c"`, []byte("--a b; c--"), []string{"EDS-MTH-5"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				trace.Covers(t, c.rows...)
				path := "/" + c.name
				r.sink.Script(path, apptest.Status(503), ok)
				ep := r.Endpoint(r.sink.URL(path), apptest.Fields{"patterns": []string{"payload." + c.name}})
				got := r.post(apptest.Call{Path: eventPath + "payload." + c.name, Body: c.body, Header: map[string]string{"Content-Type": c.media}})
				r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
				envelope := apptest.Fields{"type": "payload." + c.name, "content_type": c.media, "data_base64": base64.StdEncoding.EncodeToString(c.body)}
				r.WaitDelivery(r.Post(apptest.Call{Path: "/v1/events", Body: envelope}), ep, godwit.DeliveryAccepted)
				requests := r.sink.Requests(path)
				if len(requests) != 3 {
					t.Fatalf("%d requests", len(requests))
				}
				for i, req := range requests {
					if !bytes.Equal(req.Body, c.body) || !strings.Contains(req.Head, "\r\nContent-Type: "+c.media+"\r\n") || len(req.Header["Content-Type"]) != 1 {
						t.Errorf("request %d: %q %q", i+1, req.Header["Content-Type"], req.Body)
					}
				}
			})
		}
	})
}

// TestUntypedPayloadIsRefused: the producer must name the media type of the payload.
func TestUntypedPayloadIsRefused(t *testing.T) {
	trace.Covers(t, "EDS-MTH-4")
	r := newRig(t, apptest.Options{})
	r.Endpoint(r.sink.URL("/hook"), apptest.Fields{"patterns": []string{"x"}})
	for _, media := range []string{"", "json", "application/json\x00"} {
		req, err := http.NewRequest(http.MethodPost, r.URL+eventPath+"x", strings.NewReader(eventBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.Key)
		if media != "" {
			req.Header["Content-Type"] = []string{media}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // not even HTTP
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnsupportedMediaType && resp.StatusCode != http.StatusBadRequest {
			t.Errorf("Content-Type %q: %d", media, resp.StatusCode)
		}
	}
	r.cross()
	if n := len(r.sink.Requests("/hook")); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestMethods: POST, or PUT where both sides agreed on it, and nothing else.
func TestMethods(t *testing.T) {
	r := newRig(t, apptest.Options{})
	deliver := func(t *testing.T, path string, fields apptest.Fields) []apptest.Request {
		t.Helper()
		kind := "method." + path[1:]
		r.sink.Script(path, apptest.Status(503), ok)
		ep := r.Endpoint(r.sink.URL(path), apptest.Fields{"patterns": []string{kind}}, fields)
		got := r.post(apptest.Call{Path: eventPath + kind, Body: eventBody})
		r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
		sameEvent(t, got, eventBody, r.sink.Requests(path))
		return r.sink.Requests(path)
	}
	t.Run("POST", func(t *testing.T) {
		trace.Covers(t, "EDS-MTH-1")
		for _, req := range deliver(t, "/post", nil) {
			if req.Method != http.MethodPost {
				t.Errorf("sent %s", req.Method)
			}
		}
	})
	t.Run("PUT", func(t *testing.T) {
		trace.Covers(t, "EDS-MTH-2")
		agreement := apptest.Fields{"document": "https://example.com/agreement", "visible_to_both": true}
		for name, policy := range map[string]apptest.Fields{
			"no agreement": {}, "not written": {"agreement": apptest.Fields{"document": "", "visible_to_both": true}},
			"hidden": {"agreement": apptest.Fields{"document": "https://example.com/agreement", "visible_to_both": false}},
		} {
			if answer := r.Call(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": r.sink.URL("/put"), "method": "PUT", "policy": policy}}); answer.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", name, answer.Status)
			}
		}
		for _, req := range deliver(t, "/put", apptest.Fields{"method": "PUT", "policy": apptest.Fields{"agreement": agreement}}) {
			if req.Method != http.MethodPut {
				t.Errorf("sent %s", req.Method)
			}
		}
	})
	t.Run("others", func(t *testing.T) {
		trace.Covers(t, "EDS-MTH-3")
		fields := agreed("404", "transient")
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "PATCH", "get", "CONNECT", "TRACE"} {
			fields["url"], fields["method"] = r.sink.URL("/other"), method
			if answer := r.Call(apptest.Call{Path: "/v1/endpoints", Body: fields}); answer.Status != http.StatusBadRequest && answer.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", method, answer.Status)
			}
			ep := r.Endpoint(r.sink.URL("/other"), apptest.Fields{"patterns": []string{"nothing"}})
			if answer := r.Call(apptest.Call{Method: "PATCH", Path: "/v1/endpoints/" + ep.ID.String(), Body: apptest.Fields{"method": method}}); answer.Status != http.StatusBadRequest && answer.Status != http.StatusUnprocessableEntity {
				t.Errorf("change to %s: %d", method, answer.Status)
			}
		}
		for _, req := range r.sink.Requests("") {
			if req.Method != http.MethodPost && req.Method != http.MethodPut {
				t.Errorf("%s %s was sent", req.Method, req.Path)
			}
		}
	})
}

// TestPushed: the server sends an event to a consumer and to a relay without a request from them.
func TestPushed(t *testing.T) {
	trace.Covers(t, "EDS-DEF-2")
	r, relay := newRig(t, apptest.Options{}), newRig(t, apptest.Options{})
	consumer := r.Endpoint(r.sink.URL("/consumer"), apptest.Fields{"patterns": []string{"order.*"}})
	viaRelay := r.Endpoint(relay.URL+"/v1/events", apptest.Fields{"patterns": []string{"order.*"},
		"auth": apptest.Fields{"kind": "bearer", "token": relay.Key}})
	behind := relay.Endpoint(relay.sink.URL("/behind"), apptest.Fields{"patterns": []string{"order.*"}})
	got := r.post(apptest.Call{Path: eventPath + "order.paid", Body: eventBody})
	r.WaitDelivery(got.ID, consumer, godwit.DeliveryAccepted)
	r.WaitDelivery(got.ID, viaRelay, godwit.DeliveryAccepted)
	sameEvent(t, got, eventBody, r.sink.WaitOn("/consumer", 1))
	last := relay.sink.WaitOn("/behind", 1)
	if len(last) != 1 || last[0].Key() != quoted(got.Key) || string(last[0].Body) != eventBody {
		t.Errorf("behind the relay %s arrived: %+v", behind.ID, last)
	}
}

// TestOnlyRegisteredEndpoints: an address in payload, type or header is data.
func TestOnlyRegisteredEndpoints(t *testing.T) {
	trace.Covers(t, "EDS-SEC-AZN-1")
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/registered"), apptest.Fields{"patterns": []string{"x"}})
	adhoc := r.sink.URL("/adhoc")
	body := `{"url":"` + adhoc + `","callback_url":"` + adhoc + `","webhook":{"endpoint":"` + adhoc + `"}}`
	ev := r.Post(apptest.Call{Path: eventPath + "x&attr.url=" + adhoc, Body: body, Header: map[string]string{
		"Callback-Url": adhoc, "Link": "<" + adhoc + `>; rel="hub"`, "Webhook-Request-Callback": adhoc, "Reply-To": adhoc, "Location": adhoc, "Origin": adhoc,
	}})
	r.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
	for _, member := range []string{"url", "endpoints", "callback"} {
		if answer := r.Call(apptest.Call{Path: "/v1/events", Body: apptest.Fields{"type": "x", "data": 1, member: adhoc}}); answer.Status != http.StatusBadRequest {
			t.Errorf("member %s: %d", member, answer.Status)
		}
	}
	r.passWindow()
	r.end()
	if n := len(r.sink.Requests("/adhoc")); n != 0 {
		t.Errorf("%d requests to an address that nobody registered", n)
	}
	if n := len(r.sink.Requests("/registered")); n != 1 {
		t.Errorf("%d requests to the registered endpoint", n)
	}
}
