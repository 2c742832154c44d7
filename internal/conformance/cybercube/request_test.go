package cybercube

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

var ok = apptest.Status(200)

// trusting makes a server trust the certificates of TLS receivers.
func trusting(t testing.TB) func(*config.Config) {
	file := apptest.CAFile(t)
	return func(c *config.Config) { c.CAFile = file }
}

func TestRequest(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-1", "CCW-HTTP-2", "CCW-HTTP-3", "CCW-HTTP-5", "CCW-HTTP-6", "CCW-HTTP-7", "CCW-EVT-9")
	r := newRig(t, apptest.Options{Configure: trusting(t)})
	r.sink = apptest.NewSink(t, apptest.WithTLS(apptest.SinkTLS{}))
	ep := r.endpoint("/hook?token=1")
	r.publish("project.created")
	got := r.sink.Wait(1)[0]
	equal(t, "method", got.Method, "POST")
	equal(t, "target", got.Path, "/hook?token=1")
	if got.TLS == nil || got.TLS.Version < tls.VersionTLS12 {
		t.Errorf("TLS %+v", got.TLS)
	}
	equal(t, "Content-Type", got.Header.Get("Content-Type"), "application/json")
	equal(t, "User-Agent", got.Header.Get("User-Agent"), "CYBERCUBE-Webhook/1.0")
	equal(t, "event type", got.Header.Get("X-Webhook-Event-Type"), body(t, got)["type"].(string))
	if !regexp.MustCompile(`^[0-9]{10}$`).MatchString(got.Header.Get("X-Webhook-Timestamp")) {
		t.Errorf("timestamp %q", got.Header.Get("X-Webhook-Timestamp"))
	}
	verify(t, got, ep)
	for name := range body(t, got) {
		if strings.Contains(name, "attempt") || strings.Contains(name, "timestamp") || strings.Contains(name, "delivery") {
			t.Errorf("the body has %s", name)
		}
	}
	if strings.Contains(string(got.Body), got.Header.Get("X-Webhook-ID")) {
		t.Errorf("the attempt's id is in the body: %s", got.Body)
	}
}

func TestHeadersOfRetries(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-4", "CCW-HTTP-8", "CCW-HTTP-9", "CCW-HTTP-10", "CCW-SIG-5", "CCW-SIG-6", "CCW-RTY-7", "CCW-RTY-8")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500), apptest.Status(500), ok)
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	r.pass(time.Minute)
	r.pass(5 * time.Minute)
	r.pass(48 * time.Hour)
	got := r.sink.Requests("/a")
	if len(got) != 3 {
		t.Fatalf("%d requests", len(got))
	}
	at := []time.Duration{0, time.Minute, 6 * time.Minute}
	ids, signatures := map[string]bool{}, map[string]bool{}
	logged := r.logs(ep, "")
	for i, q := range got {
		h := q.Header
		equal(t, "attempt", h.Get("X-Webhook-Delivery-Attempt"), strconv.Itoa(i+1))
		equal(t, "timestamp", h.Get("X-Webhook-Timestamp"), strconv.FormatInt(start.Add(at[i]).Unix(), 10))
		equal(t, "body", string(q.Body), string(got[0].Body))
		verify(t, q, ep)
		if id := h.Get("X-Webhook-ID"); !regexp.MustCompile(`^wh_[0-9a-f]{24}$`).MatchString(id) || ids[id] {
			t.Errorf("id %q", id)
		}
		equal(t, "id in the log", logged[len(logged)-1-i]["id"].(string), h.Get("X-Webhook-ID"))
		ids[h.Get("X-Webhook-ID")], signatures[h.Get("X-Webhook-Signature")] = true, true
		first, retries := h["X-Webhook-First-Attempt-At"], h["X-Webhook-Retry-Count"]
		if i == 0 {
			if first != nil || retries != nil {
				t.Errorf("the first attempt has %v and %v", first, retries)
			}
			continue
		}
		equal(t, "first attempt", h.Get("X-Webhook-First-Attempt-At"), "2026-07-01T12:00:00Z")
		equal(t, "retries", h.Get("X-Webhook-Retry-Count"), strconv.Itoa(i))
	}
	equal(t, "signatures", len(signatures), 3)
}

func TestPlainHTTPIsRefused(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-11", "CCW-API-8")
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowHTTP = false }})
	named(t, r.want(400, apptest.Call{Path: base + "/endpoints", Body: object{"url": "http://example.com/hook"}}), "url")
	ep := r.register("https://example.com/hook")
	named(t, r.want(400, apptest.Call{Method: "PATCH", Path: base + "/endpoints/" + ep.ID, Body: object{"url": "http://example.com/hook"}}), "url")
	equal(t, "url", r.show(ep)["url"].(string), "https://example.com/hook")
}

// named checks that an error names a field.
func named(t testing.TB, r *apptest.Response, fields ...string) {
	t.Helper()
	var e struct {
		Error struct {
			Code      string
			Message   string
			Details   struct{ Fields map[string][]string }
			RequestID string `json:"request_id"`
			Timestamp string
		}
	}
	r.JSON(t, &e)
	if e.Error.Code != "VALIDATION_ERROR" || e.Error.Message == "" || e.Error.RequestID == "" || e.Error.Timestamp == "" {
		t.Errorf("error %s", r.Body)
	}
	for _, f := range fields {
		if len(e.Error.Details.Fields[f]) == 0 || e.Error.Details.Fields[f][0] == "" {
			t.Errorf("%s is not named by %s", f, r.Body)
		}
	}
}

// TestTLS: old versions and untrusted certificates are failures, and are retried.
func TestTLS(t *testing.T) {
	old := func(t *testing.T) string {
		certPEM, keyPEM := apptest.ServerCertificate(t, "127.0.0.1")
		pair, err := tls.X509KeyPair([]byte(certPEM), []byte(keyPEM))
		if err != nil {
			t.Fatal(err)
		}
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came over TLS 1.1") }), ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
		return "https://" + l.Addr().String() + "/"
	}
	for name, url := range map[string]func(*testing.T) string{
		"TLS 1.1": old,
		"untrusted": func(t *testing.T) string {
			return apptest.NewSink(t, apptest.WithTLS(apptest.SinkTLS{Untrusted: true})).URL("/")
		},
		"other name": func(t *testing.T) string {
			return apptest.NewSink(t, apptest.WithTLS(apptest.SinkTLS{Names: []string{"elsewhere.test"}})).URL("/")
		},
		"expired": func(t *testing.T) string {
			return apptest.NewSink(t, apptest.WithTLS(apptest.SinkTLS{Expired: true})).URL("/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, "CCW-HTTP-12", "CCW-RTY-3")
			r := newRig(t, apptest.Options{Configure: trusting(t)})
			ep := r.register(url(t))
			r.publish("project.created")
			r.settle()
			r.pass(time.Minute)
			got := r.logs(ep, "")
			if len(got) != 2 || got[0]["attempt"] != 2.0 || got[1]["status"] != "failed" || got[1]["http_status"] != nil {
				t.Fatalf("log %v", got)
			}
			if e := got[0]["error_message"].(string); !strings.HasPrefix(e, "tls-") {
				t.Errorf("error %q", e)
			}
		})
	}
}

func TestPrivateTargets(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		trace.Covers(t, "CCW-HTTP-13", "CCW-API-8")
		r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowAddress = nil }})
		for _, url := range []string{"https://127.0.0.1/", "https://[::1]/", "https://10.1.2.3/", "https://192.168.1.1/", "https://169.254.169.254/latest"} {
			named(t, r.want(400, apptest.Call{Path: base + "/endpoints", Body: object{"url": url}}), "url")
		}
		equal(t, "endpoints", len(r.list("/endpoints")), 0)
	})
	t.Run("allowed, but for where a redirect leads", func(t *testing.T) {
		trace.Covers(t, "CCW-HTTP-13")
		r := newRig(t, apptest.Options{})
		r.sink.Script("/moved", apptest.Redirect(302, "http://10.255.255.1/"))
		fine, moved := r.endpoint("/fine"), r.endpoint("/moved")
		r.publish("project.created")
		r.settle()
		equal(t, "log of the allowed one", r.logs(fine, "")[0]["status"].(string), "success")
		if got := r.logs(moved, "")[0]; got["status"] == "success" || got["http_status"] != nil {
			t.Errorf("log %v", got)
		}
	})
}

// TestTimeout: a response after 29 s is in time, one after 30 s is not. The limit ends by the rig's clock.
func TestTimeout(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-14", "CCW-RSP-12")
	r := newRig(t, apptest.Options{ClockTimeouts: true})
	gate := make(chan struct{})
	r.sink.Script("/in-time", ok.Until(gate))
	r.sink.Script("/late", apptest.Stall())
	inTime, late := r.endpoint("/in-time"), r.endpoint("/late")
	r.publish("project.created")
	r.sink.WaitOn("/in-time", 1)
	r.sink.WaitOn("/late", 1)
	recorded := func(ep endpoint) (got []object) {
		t.Helper()
		r.WaitRecorded("the attempt", func() bool { got = r.logs(ep, ""); return len(got) == 1 }, func() string { return "" })
		return got
	}
	r.Advance(29 * time.Second)
	close(gate)
	equal(t, "in time", recorded(inTime)[0]["status"].(string), "success")
	r.Advance(time.Second)
	got := recorded(late)[0]
	equal(t, "late", got["status"].(string), "failed")
	if !strings.HasPrefix(got["error_message"].(string), "timeout") || got["next_retry_at"] == nil {
		t.Errorf("late: %v", got)
	}
	equal(t, "time until it was cut off, in ms", got["response_time_ms"].(float64), 30_000)
}

func TestResponseBodyDecidesNothing(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-15")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/no", ok.Body("application/json", `{"received":false,"error":"no"}`))
	r.sink.Script("/big", ok.Body("text/plain", strings.Repeat("x", 5<<20)))
	for _, path := range []string{"/no", "/big"} {
		ep := r.endpoint(path)
		r.publish("project.created")
		r.settle()
		got := r.logs(ep, "")
		if len(got) != 1 || got[0]["status"] != "success" {
			t.Errorf("%s: %v", path, got)
		}
		for _, a := range r.attempts(ep) {
			if n := len(a.Trace.Body); n == 0 || n > 4096 {
				t.Errorf("%s: %d bytes of the response are kept", path, n)
			}
		}
	}
}

// TestAttemptIsRecorded lets time pass while the receiver has the request, so that there is a response time to record.
func TestAttemptIsRecorded(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-18", "CCW-API-26")
	r := newRig(t, apptest.Options{})
	gate := make(chan struct{})
	r.sink.Script("/slow", apptest.Status(500).Until(gate))
	ep := r.endpoint("/slow")
	id := r.publish("project.created")
	got := r.sink.WaitOn("/slow", 1)[0]
	r.Advance(100 * time.Millisecond)
	close(gate)
	var log []object
	r.WaitRecorded("the attempt", func() bool { log = r.logs(ep, ""); return len(log) == 1 }, func() string { return "" })
	e := log[0]
	at, err := time.Parse(time.RFC3339, e["created_at"].(string))
	if err != nil || at.Before(start.Add(-time.Second)) || at.After(r.Clock.Now()) {
		t.Errorf("created_at %v", e["created_at"])
	}
	equal(t, "response_time_ms", e["response_time_ms"].(float64), 100)
	if e["next_retry_at"] == nil {
		t.Errorf("no next_retry_at: %v", e)
	}
	for _, name := range []string{"created_at", "response_time_ms", "next_retry_at"} {
		delete(e, name)
	}
	sameJSON(t, "entry", e, object{
		"id": got.Header.Get("X-Webhook-ID"), "event_id": id, "event_type": "project.created", "endpoint_id": ep.ID, "attempt": 1,
		"status": "failed", "http_status": 500, "error_message": "Internal Server Error",
	})
}

func TestSourceAddressesArePublished(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-16")
	r := newRig(t, apptest.Options{})
	get := func(r *rig, accept string) *apptest.Response {
		return r.want(200, apptest.Call{Path: "/.well-known/webhook-ips", Key: "none", Header: map[string]string{"Accept": accept}})
	}
	sameJSON(t, "document", decode(t, get(r, "application/json")), object{
		"production": []string{"203.0.113.0/24", "198.51.100.0/24"}, "updated_at": "2026-07-01T12:00:00Z",
	})
	equal(t, "text", string(get(r, "text/plain").Body), "# Production\n203.0.113.0/24\n198.51.100.0/24\n")
	own := newRig(t, apptest.Options{Configure: func(c *config.Config) {
		c.WebhookIPs = c.WebhookIPs[:1]
		if err := c.WebhookIPs[0].UnmarshalText([]byte("192.0.2.7")); err != nil {
			t.Fatal(err)
		}
	}})
	equal(t, "own list", string(get(own, "text/plain").Body), "# Production\n192.0.2.7/32\n")
}

func TestDeliveriesTellTheBudget(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-19", "CCW-LIM-6")
	r := newRig(t, apptest.Options{})
	r.endpoint("/a")
	for i := range 3 {
		r.publish("project.created")
		r.settle()
		h := r.sink.Requests("/a")[i].Header
		equal(t, "limit", h.Get("X-RateLimit-Limit"), "1000")
		equal(t, "remaining", h.Get("X-RateLimit-Remaining"), strconv.Itoa(999-i))
		equal(t, "reset", h.Get("X-RateLimit-Reset"), strconv.FormatInt(start.Add(time.Minute).Unix(), 10))
		r.pass(time.Second)
	}
	r.pass(57 * time.Second) // the first one is a minute ago
	r.publish("project.created")
	r.settle()
	equal(t, "remaining", r.sink.Requests("/a")[3].Header.Get("X-RateLimit-Remaining"), "997")
}
