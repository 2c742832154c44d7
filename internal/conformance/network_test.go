package conformance

import (
	"bufio"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A failing receiver: how it fails first, and how it recovers.
type failing struct {
	name, reason string
	unknown      bool // whether bytes of the request may have arrived
	url          string
	fields       apptest.Fields
	repair       func() func() []apptest.Request // returns what the healthy receiver got
}

// TestNetworkFailures: without a complete status line the only outcome is transient; the retry has the same key.
func TestNetworkFailures(t *testing.T) {
	n := newNames(t)
	r := namedRig(t, n)
	for _, f := range brokenReceivers(t, r, n) {
		t.Run(f.name, func(t *testing.T) {
			trace.Covers(t, "EDS-NET-1", "EDS-CLS-1")
			kind := "net." + f.name
			ep := r.Endpoint(f.url, apptest.Fields{"patterns": []string{kind}}, f.fields)
			got := r.post(apptest.Call{Path: eventPath + kind, Body: eventBody})
			r.WaitAttempts(got.ID, ep, 1)
			received := f.repair()
			r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
			d := r.delivery(got.ID, ep)
			if !slices.Equal(d.outcomes(), thenAccepted) {
				t.Fatalf("outcomes %v", d.outcomes())
			}
			a := d.Attempts[0]
			if a.FailureClass != "transport" || a.Reason != f.reason || a.Status != 0 || (a.ReceiverState == "unknown") != f.unknown {
				t.Errorf("recorded %+v", a)
			}
			requests := received()
			sameEvent(t, got, eventBody, requests)
			if last := requests[len(requests)-1]; last.Header.Get("Godwit-Attempt") != "2" {
				t.Errorf("the last request is attempt %s", last.Header.Get("Godwit-Attempt"))
			}
		})
	}
}

func brokenReceivers(t *testing.T, r *rig, n *names) []failing {
	scripted := func(name, reason string, reply apptest.Reply, fields apptest.Fields) failing {
		path := "/net-" + name
		r.sink.Script(path, reply, ok)
		return failing{name: name, reason: reason, unknown: true, url: r.sink.URL(path), fields: fields,
			repair: func() func() []apptest.Request { return func() []apptest.Request { return r.sink.Requests(path) } }}
	}
	takeOver := func(addr, path string, options ...apptest.SinkOption) func() []apptest.Request {
		s := newSink(t, append(options, apptest.At(addr))...)
		return func() []apptest.Request { return s.Requests(path) }
	}
	dead := apptest.NewSink(t)
	dead.Close()
	mute := newTCPReceiver(t, nil, func(c net.Conn) { _, _ = io.WriteString(c, "this is not TLS") })
	return []failing{
		{name: "refused", reason: "connection-refused", url: dead.URL("/refused"),
			repair: func() func() []apptest.Request { return takeOver(dead.Addr(), "/refused") }},
		{name: "tls", reason: "tls-handshake", url: "https://" + mute.addr + "/tls", repair: func() func() []apptest.Request {
			mute.close()
			return takeOver(mute.addr, "/tls", apptest.WithTLS(apptest.SinkTLS{}))
		}},
		{name: "name", reason: "name-resolution", url: r.sink.HostURL("receiver.test", "/net-name"), repair: func() func() []apptest.Request {
			n.set("receiver.test", "127.0.0.1")
			return func() []apptest.Request { return r.sink.Requests("/net-name") }
		}},
		scripted("reset", "connection-reset", apptest.Reset(), nil),
		scripted("hangup", "connection-reset", apptest.Hangup(), nil),
		scripted("timeout", "timeout", apptest.Stall(), apptest.Fields{"policy": apptest.Fields{"timeout_seconds": 0.3}}),
		scripted("partial", "connection-reset", apptest.Raw("HTTP/1.1 20"), nil),
		scripted("foreign", "protocol", apptest.Raw("SSH-2.0-OpenSSH_9.7\r\n"), nil),
	}
}

// TestResponsesCutShort: a status line, even a 200, is no outcome before the response is complete.
func TestResponsesCutShort(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		var scenarios []scenario
		for name, reply := range map[string]apptest.Reply{
			"body":         apptest.Truncated(200, 100, "abc"),
			"chunk":        apptest.Raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nabc"),
			"header":       apptest.Raw("HTTP/1.1 200 OK\r\nContent-Le"),
			"after header": apptest.Raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
			"error body":   apptest.Truncated(422, 100, "abc"),
		} {
			scenarios = append(scenarios, scenario{name: name, rows: []string{"EDS-NET-2", "EDS-CLS-4"}, script: afterwardOK(reply),
				want: thenAccepted, status: "accepted", check: cutShort})
		}
		play(t, r, scenarios)
	})
}

func cutShort(t *testing.T, h *history) {
	unknownEffect(t, h)
	if a := h.Attempts[0]; a.FailureClass != "transport" || a.Reason != "truncated-response" {
		t.Errorf("recorded %+v", a)
	}
}

// TestUnknownEffectIsSafe: the receiver processes the event, its reply is lost, the retry is recognised as the same event.
func TestUnknownEffectIsSafe(t *testing.T) {
	var scenarios []scenario
	processed := make([]atomic.Int32, 3)
	for i, second := range []apptest.Reply{
		ok, apptest.Status(208), apptest.Status(201, "Idempotency-Replayed", "true").Body("application/json", `{"id":7}`),
	} {
		scenarios = append(scenarios, scenario{
			name: []string{"200", "208", "replayed"}[i], rows: []string{"EDS-NET-3", "EDS-DUP-2"},
			answer: forgetsToReply(&processed[i], second), want: thenAccepted, status: "accepted",
			check: func(t *testing.T, h *history) {
				unknownEffect(t, h)
				if n := processed[i].Load(); n != 1 || h.endpoint.Status != "active" {
					t.Errorf("processed %d times; the endpoint is %s", n, h.endpoint.Status)
				}
			},
		})
	}
	play(t, newRig(t, apptest.Options{}), scenarios)
}

// forgetsToReply is a receiver that deduplicates by key, and whose first reply is lost.
func forgetsToReply(processed *atomic.Int32, second apptest.Reply) func(*apptest.Request) apptest.Reply {
	var seen sync.Map
	return func(req *apptest.Request) apptest.Reply {
		if _, known := seen.LoadOrStore(req.Key(), true); known {
			return second
		}
		processed.Add(1)
		return apptest.Hangup()
	}
}

// TestVanishedAttempts: at whichever stage the connection is lost, the event is neither lost nor shown as accepted.
func TestVanishedAttempts(t *testing.T) {
	r := newRig(t, apptest.Options{})
	for name, stage := range map[string]func(net.Conn){
		"on accept":    func(net.Conn) {},
		"after header": readHead,
		"after body":   func(c net.Conn) { _, _ = readWhole(bufio.NewReader(c)) },
		"mid response": func(c net.Conn) { _, _ = readWhole(bufio.NewReader(c)); _, _ = io.WriteString(c, "HTTP/1.1 2") },
		"after headers": func(c net.Conn) {
			_, _ = readWhole(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, "EDS-ATT-3")
			v := newTCPReceiver(t, nil, stage, stage)
			kind := "vanish." + v.addr[len("127.0.0.1:"):]
			ep := r.Endpoint("http://"+v.addr+"/", apptest.Fields{"patterns": []string{kind}})
			got := r.post(apptest.Call{Path: eventPath + kind, Body: eventBody})
			for n := 1; n <= 2; n++ {
				r.WaitAttempts(got.ID, ep, n)
				if d := r.delivery(got.ID, ep); d.Status != "pending" || d.Attempts[n-1].Outcome != "transient" || d.DueAt == nil {
					t.Errorf("after attempt %d: %+v", n, d)
				}
				r.pass(2 * time.Second)
			}
			r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
			sameEvent(t, got, eventBody, v.received())
			if n := len(v.received()); n != 1 {
				t.Errorf("%d requests reached the healthy receiver", n)
			}
		})
	}
}

// TestSilence: the connection is up and the request sent completely, but no response comes.
func TestSilence(t *testing.T) {
	trace.Covers(t, "EDS-ATT-4", "EDS-NET-4", "EDS-EX-4")
	r := newRig(t, apptest.Options{Configure: trusting(t), ClockTimeouts: true})
	sent, left := make(chan apptest.Request, 1), make(chan error, 1)
	v := newTCPReceiver(t, serverTLS(t, "127.0.0.1"), func(c net.Conn) {
		br := bufio.NewReader(c)
		req, err := readWhole(br)
		if err != nil {
			left <- err
			return
		}
		sent <- *req
		_, err = br.ReadByte() // until the sender closes
		left <- err
	})
	ep := r.Endpoint("https://"+v.addr+"/webhooks/orders", apptest.Fields{"patterns": []string{"order.*"}, "policy": apptest.Fields{"timeout_seconds": 5}})
	got := r.post(apptest.Call{Path: eventPath + "order.paid", Body: eventBody})
	first := <-sent
	if d := r.delivery(got.ID, ep); d.Status != "pending" || d.Count != 0 {
		t.Errorf("while the receiver is silent the delivery is %s with %d attempts", d.Status, d.Count)
	}
	r.Advance(5 * time.Second) // by policy; the default is 30 s
	if err := <-left; err != io.EOF {
		t.Errorf("the sender did not close the connection: %v", err)
	}
	r.WaitAttempts(got.ID, ep, 1)
	d := r.delivery(got.ID, ep)
	a := d.Attempts[0]
	if d.Status != "pending" || a.Outcome != "transient" || a.Reason != "timeout" || a.ReceiverState != "unknown" || a.FailureClass != "transport" {
		t.Errorf("after the timeout: %s, %+v", d.Status, a)
	}
	if wait := a.NextAt.Sub(a.ended()); wait < 0 || wait > time.Second {
		t.Errorf("the retry is due after %v, want a delay out of the back-off", wait)
	}
	r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
	sameEvent(t, got, eventBody, append([]apptest.Request{first}, v.received()...))
}

// TestUnknownIsShownAsUnknown: an operator reads that the receiver may have the event, never that it does not.
func TestUnknownIsShownAsUnknown(t *testing.T) {
	trace.Covers(t, "EDS-CLS-4")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/gone", apptest.Hangup())
	sent := r.Endpoint(r.sink.URL("/gone"), apptest.Fields{"patterns": []string{"x"}})
	never := r.Endpoint(apptest.DeadURL(t, "/"), apptest.Fields{"patterns": []string{"x"}})
	ev := r.Publish("x", eventBody)
	for ep, want := range map[apptest.Endpoint]string{sent: "unknown", never: ""} {
		r.WaitAttempts(ev, ep, 1)
		if got := r.delivery(ev, ep).Attempts[0].ReceiverState; got != want {
			t.Errorf("receiver_state %q, want %q", got, want)
		}
		raw := r.Call(apptest.Call{Path: "/v1/deliveries/" + r.Delivery(ev, ep).ID.String()})
		if mentions(string(raw.Body), "not received", "not_received", "not-received", "undelivered") {
			t.Errorf("the API claims to know what the receiver got: %s", raw.Body)
		}
	}
}
