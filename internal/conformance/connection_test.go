package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestMisdirectedTakesANewConnection: an ordinary retry reuses the connection; a retry after 421 asks DNS again and opens a
// new one.
func TestMisdirectedTakesANewConnection(t *testing.T) {
	secure := apptest.WithTLS(apptest.SinkTLS{Names: []string{"receiver.test"}})
	for name, options := range map[string][]apptest.SinkOption{
		"plain": nil, "HTTP 1.1": {secure}, "HTTP 2": {secure, apptest.WithHTTP2()},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, "EDS-STA-421")
			n := newNames(t)
			n.set("receiver.test", "127.0.0.1")
			r := namedRig(t, n)
			sink := newSink(t, options...)
			ep := r.Endpoint(sink.HostURL("receiver.test", "/hook"), apptest.Fields{"patterns": []string{"x"}})
			failOnce(t, r, n, sink, ep, 500)
			if conns, lookups := failOnce(t, r, n, sink, ep, 500); conns[0] != conns[1] || lookups != 0 {
				t.Errorf("after 500: connections %v, %d lookups", conns, lookups)
			}
			if conns, lookups := failOnce(t, r, n, sink, ep, 421); conns[0] == conns[1] || lookups == 0 {
				t.Errorf("after 421: connections %v, %d lookups", conns, lookups)
			}
		})
	}
}

// failOnce delivers an event that is accepted at the second attempt; it tells the connections used and the names looked up.
func failOnce(t *testing.T, r *rig, n *names, sink *apptest.Sink, ep apptest.Endpoint, code int) (conns []int, lookups int32) {
	t.Helper()
	before, asked := len(sink.Requests("/hook")), n.lookups.Load()
	sink.Script("/hook", apptest.Status(code), ok)
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
	requests := sink.Requests("/hook")[before:]
	sameEvent(t, got, eventBody, requests)
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	return []int{requests[0].Conn, requests[1].Conn}, n.lookups.Load() - asked
}

// TestTooEarlyIsRetriedAfterTheHandshake: the retry is not sent as early data and has no Early-Data field.
func TestTooEarlyIsRetriedAfterTheHandshake(t *testing.T) {
	for name, options := range map[string][]apptest.SinkOption{
		"HTTP 1.1": {apptest.WithTLS(apptest.SinkTLS{})}, "HTTP 2": {apptest.WithHTTP2()},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, "EDS-STA-425")
			r := newRig(t, apptest.Options{Configure: trusting(t)})
			sink := newSink(t, options...)
			play(t, r, []scenario{{name: "425", rows: []string{"EDS-STA-425"}, sink: sink, script: afterwardOK(apptest.Status(425).ThenClose()),
				want: thenAccepted, status: "accepted", check: func(t *testing.T, h *history) {
					inBackoff(t, h)
					for i, req := range h.requests {
						if req.TLS == nil || !req.TLS.HandshakeComplete || req.Header.Get("Early-Data") != "" {
							t.Errorf("request %d came with TLS %+v, Early-Data %q", i+1, req.TLS, req.Header.Get("Early-Data"))
						}
					}
				}}})
		})
	}
}

// TestChannelIsConfidential: only https is allowed, unless the operator explicitly allows http.
func TestChannelIsConfidential(t *testing.T) {
	trace.Covers(t, "EDS-SEC-CNF-1")
	trust := trusting(t)
	r := newRigWithoutFence(t, apptest.Options{Configure: func(c *config.Config) { trust(c); c.AllowHTTP = false }})
	for _, url := range []string{"http://example.com/hook", "HTTP://example.com/hook", r.sink.URL("/plain")} {
		if answer := r.Call(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": url}}); answer.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", url, answer.Status)
		}
	}
	secure := newSink(t, apptest.WithTLS(apptest.SinkTLS{}))
	ep := r.Endpoint(secure.URL("/secure"))
	secure.Script("/secure", apptest.Redirect(307, strings.Replace(secure.URL("/secure"), "https", "http", 1)))
	down := r.Publish("x", eventBody)
	r.WaitDelivery(down, ep, godwit.DeliveryTerminal)
	secure.Script("/secure", ok)
	r.WaitDelivery(r.Publish("x", eventBody), ep, godwit.DeliveryAccepted)
	for _, req := range secure.Requests("") {
		if req.TLS == nil || req.TLS.Version < 0x0303 {
			t.Errorf("request over %+v", req.TLS)
		}
	}
	if n := len(r.sink.Requests("")); n != 0 {
		t.Errorf("%d requests in the clear", n)
	}
}
