package cybercube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A reading is a receiver's response and the sender's reaction to it.
type reading struct {
	rows    []string
	reply   apptest.Reply
	status  string        // of the first attempt in the log
	retried time.Duration // delay until the next attempt; 0 if there is none
}

// TestResponses plays every response to a separate endpoint, lets two days pass and checks the result.
func TestResponses(t *testing.T) {
	r := newRig(t, apptest.Options{})
	played := map[string]reading{}
	endpoints := map[string]endpoint{}
	for name, a := range readings(r.sink) {
		path := "/" + strings.ReplaceAll(name, " ", "-")
		r.sink.Script(path, a.reply, ok)
		played[name], endpoints[name] = a, r.endpoint(path)
	}
	r.publish("project.created")
	r.settle()
	r.pass(59 * time.Second)
	early := map[string]int{}
	for name, ep := range endpoints {
		early[name] = len(r.logs(ep, ""))
	}
	r.pass(time.Second)
	for range 48 {
		r.pass(time.Hour)
	}
	for name, a := range played {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, a.rows...)
			ep := endpoints[name]
			log := r.logs(ep, "")
			equal(t, "attempts within a minute", early[name], 1)
			if first := log[len(log)-1]; first["status"] != a.status {
				t.Errorf("first attempt %v", first)
			}
			if a.retried == 0 {
				equal(t, "attempts", len(log), 1)
				if log[0]["next_retry_at"] != nil {
					t.Errorf("there is a next attempt: %v", log[0])
				}
				letters := 0
				if a.status == "failed" {
					letters = 1
				}
				equal(t, "dead letters", len(r.failures(ep)), letters)
				return
			}
			if len(log) != 2 || log[0]["status"] != "success" {
				t.Fatalf("log %v", log)
			}
			at := start.Add(a.retried).Truncate(time.Second).Format("2006-01-02T15:04:05Z")
			equal(t, "next_retry_at", log[1]["next_retry_at"].(string), at)
		})
	}
}

func readings(sink *apptest.Sink) map[string]reading {
	all := map[string]reading{}
	for _, code := range []int{200, 201, 202, 204, 226, 299} {
		all[fmt.Sprint(code)] = reading{[]string{"CCW-RSP-1", "CCW-RTY-4"}, apptest.Status(code), "success", 0}
	}
	for code, row := range map[int]string{400: "CCW-RSP-4", 401: "CCW-RSP-5", 403: "CCW-RSP-6", 404: "CCW-RSP-7", 410: "CCW-RSP-8"} {
		all[fmt.Sprint(code)] = reading{[]string{row, "CCW-RTY-4", "CCW-RSP-15"}, apptest.Status(code), "failed", 0}
	}
	for _, code := range []int{402, 405, 406, 408, 409, 411, 418, 421, 422, 425, 426, 451, 499} {
		all[fmt.Sprint(code)] = reading{[]string{"CCW-RSP-10", "CCW-RTY-4", "CCW-RSP-15"}, apptest.Status(code), "failed", 0}
	}
	for _, code := range []int{500, 501, 502, 503, 504, 511, 599} {
		all[fmt.Sprint(code)] = reading{[]string{"CCW-RSP-11", "CCW-RTY-3"}, apptest.Status(code), "failed", time.Minute}
	}
	all["429"] = reading{[]string{"CCW-RSP-9", "CCW-RTY-3"}, apptest.Status(429), "failed", time.Minute}
	all["429 in five minutes"] = reading{[]string{"CCW-RSP-9"}, apptest.RetryAfter(429, "300"), "failed", 5 * time.Minute}
	all["429 in ten seconds"] = reading{[]string{"CCW-RSP-9"}, apptest.RetryAfter(429, "10"), "failed", time.Minute}
	for _, code := range []int{300, 304, 305, 399} {
		all[fmt.Sprint(code)] = reading{[]string{"CCW-RSP-3"}, apptest.Status(code), "failed", time.Minute}
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		all[fmt.Sprintf("%d to nowhere", code)] = reading{[]string{"CCW-RSP-3"}, apptest.Status(code), "failed", time.Minute}
		sink.Script(fmt.Sprintf("/loop-%d", code), apptest.Redirect(code, fmt.Sprintf("/loop-%d", code)))
		all[fmt.Sprintf("%d round and round", code)] = reading{[]string{"CCW-RSP-3"}, apptest.Redirect(code, fmt.Sprintf("/loop-%d", code)), "failed", time.Minute}
	}
	all["hangup"] = reading{[]string{"CCW-RSP-13", "CCW-RTY-3"}, apptest.Hangup(), "failed", time.Minute}
	all["reset"] = reading{[]string{"CCW-RSP-13", "CCW-RTY-3"}, apptest.Reset(), "failed", time.Minute}
	all["cut off"] = reading{[]string{"CCW-RSP-13"}, apptest.Truncated(200, 100, "abc"), "failed", time.Minute}
	return all
}

// TestRedirectsKeepTheRequest: three redirects are followed with the same request, a fourth is not.
func TestRedirectsKeepTheRequest(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			if code <= 302 {
				trace.Covers(t, "CCW-RSP-2")
			} else {
				trace.Covers(t, "CCW-RSP-3")
			}
			r := newRig(t, apptest.Options{})
			for i := range 4 {
				r.sink.Script(fmt.Sprintf("/%d", i), apptest.Redirect(code, fmt.Sprintf("/%d", i+1)))
			}
			three, four := r.endpoint("/1"), r.endpoint("/0")
			r.patch(four, object{"status": "paused"})
			r.publish("project.created")
			r.settle()
			log := r.logs(three, "")
			if len(log) != 1 || log[0]["status"] != "success" {
				t.Fatalf("three hops: %v", log)
			}
			first, last := r.sink.Requests("/1")[0], r.sink.Requests("/4")[0]
			equal(t, "method", last.Method, "POST")
			equal(t, "body", string(last.Body), string(first.Body))
			for _, name := range []string{"X-Webhook-Id", "X-Webhook-Signature", "X-Webhook-Timestamp", "X-Webhook-Event-Type", "X-Webhook-Delivery-Attempt", "Content-Type", "User-Agent"} {
				equal(t, name, last.Header.Get(name), first.Header.Get(name))
			}
			verify(t, last, three)
			r.patch(four, object{"status": "active"})
			r.settle()
			log = r.logs(four, "")
			if len(log) != 1 || log[0]["status"] != "failed" || log[0]["next_retry_at"] != "2026-07-01T12:01:00Z" {
				t.Errorf("four hops: %v", log)
			}
			equal(t, "requests after the third hop", len(r.sink.Requests("/4")), 1)
		})
	}
}

// TestGoneDisables: 410 ends the delivery and disables the endpoint at once.
func TestGoneDisables(t *testing.T) {
	trace.Covers(t, "CCW-RSP-8")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(410), ok)
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	equal(t, "status", r.show(ep)["status"].(string), "disabled")
	r.publish("project.created")
	r.pass(48 * time.Hour)
	equal(t, "requests", len(r.sink.Requests("/a")), 1)
	if got := r.failures(ep); len(got) != 1 || got[0]["failure_reason"] != "HTTP 410 (not retryable)" {
		t.Errorf("failures %v", got)
	}
}

// TestTransportFailuresAreRetried: each cause of the standard's list.
func TestTransportFailuresAreRetried(t *testing.T) {
	m := clock.NewManual(start)
	s, err := sender.New(sender.Config{
		Clock: m.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no name server") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r := newRig(t, apptest.Options{Clock: m, Tune: func(c *engine.Config) { c.Sender = s }})
	r.sink.Script("/stall", apptest.Stall())
	causes := map[string]endpoint{
		"connection-refused": r.register(apptest.DeadURL(t, "/")),
		"name-resolution":    r.register("http://nowhere.invalid/"),
		"tls-handshake":      r.register("https://" + notTLS(t) + "/"),
		"timeout":            r.endpoint("/stall"),
	}
	r.policy(causes["timeout"], object{"timeout_seconds": 0.2})
	r.publish("project.created")
	r.settle()
	r.pass(time.Minute)
	for cause, ep := range causes {
		t.Run(cause, func(t *testing.T) {
			trace.Covers(t, "CCW-RTY-3")
			if cause == "connection-refused" || cause == "tls-handshake" {
				trace.Covers(t, "CCW-RSP-13")
			}
			log := r.logs(ep, "")
			if len(log) != 2 || log[0]["attempt"] != 2.0 || log[1]["next_retry_at"] != "2026-07-01T12:01:00Z" {
				t.Fatalf("log %v", log)
			}
			if why := log[0]["error_message"].(string); !strings.HasPrefix(why, cause) {
				t.Errorf("error %q", why)
			}
			if _, has := log[0]["http_status"]; has {
				t.Errorf("a status without an answer: %v", log[0])
			}
		})
	}
}

// notTLS is an address that answers every connection with bytes that are not a handshake.
func notTLS(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("this is not TLS"))
			c.Close()
		}
	}()
	return l.Addr().String()
}
