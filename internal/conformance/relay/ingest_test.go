package relay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

type rejection struct {
	Status  int
	Code    string
	Reason  string
	Detail  string
	Remote  string `json:"remote_addr"`
	Headers []string
}

func (r *rig) rejections(s source) []rejection {
	r.t.Helper()
	var list struct{ Items []rejection }
	r.Must(apptest.Call{Path: "/v1/sources/" + s.ID + "/rejections"}, &list)
	return list.Items
}

// TestUpstreamsMeetAConsumer: toward upstreams Godwit is a consumer, with its order of checks and its refusals; toward
// endpoints it is a sender.
func TestUpstreamsMeetAConsumer(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-INT-12")
		o.Configure = func(c *config.Config) { c.MaxBody = 1000 }
		r := newRig(t, o)
		r.sink.Script("/to", apptest.Status(503), apptest.Status(200))
		ep := r.Endpoint(r.sink.URL("/to"), apptest.Fields{"policy": apptest.Fields{"base_seconds": 1, "cap_seconds": 1}})
		s := r.storing("signed", apptest.Fields{"scheme": "eds"})
		sign := r.signEDS(s.Issued.ID, s.Issued.Secret)
		with := func(change func(*httpsig.Params)) func(*http.Request, []byte) {
			return r.signEDS(s.Issued.ID, s.Issued.Secret, change)
		}
		const marker = "marker-5f1c-payload"
		secret := `{"card":"` + marker + `"}`
		refused := []struct {
			name   string
			d      delivery
			status int
			code   string
			reason string
		}{
			{"no signature", delivery{Key: key("a")}, 401, "not-authentic", "missing"},
			{"a stranger's key", delivery{Key: key("a"), Sign: r.signEDS("sec_other", s.Issued.Secret)}, 401, "not-authentic", "unknown-key"},
			{"a wrong secret", delivery{Key: key("a"), Sign: r.signEDS(s.Issued.ID, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")}, 401, "not-authentic", "mismatch"},
			{"too old", delivery{Key: key("a"), Sign: with(func(p *httpsig.Params) { p.Created = r.Clock.Now().Add(-301 * time.Second) })}, 401, "not-authentic", "too-old"},
			{"from the future", delivery{Key: key("a"), Sign: with(func(p *httpsig.Params) { p.Created = r.Clock.Now().Add(301 * time.Second) })}, 401, "not-authentic", "from-future"},
			{"altered", delivery{Key: key("a"), Sign: func(q *http.Request, b []byte) { sign(q, append([]byte(" "), b...)) }}, 401, "not-authentic", "digest-mismatch"},
			{"no key", delivery{Sign: sign}, 400, "idempotency-key-missing", ""},
			{"a bare key", delivery{Header: http.Header{"Idempotency-Key": {"bare-key-of-good-length"}}, Sign: sign}, 400, "idempotency-key-malformed", ""},
			{"a short key", delivery{Key: "short", Sign: sign}, 400, "idempotency-key-too-short", ""},
			{"a long key", delivery{Key: strings.Repeat("k", 1025), Sign: sign}, 400, "idempotency-key-too-long", ""},
			{"PUT without agreement", delivery{Method: "PUT", Key: key("a"), Sign: sign}, 405, "method-not-allowed", ""},
			{"too large", delivery{Key: key("a"), Body: strings.Repeat(" ", 1001), Sign: sign}, 413, "body-too-large", ""},
			{"encoded", delivery{Key: key("a"), Header: http.Header{"Content-Encoding": {"gzip"}}, Sign: sign}, 415, "unsupported-media-type", ""},
			{"early data", delivery{Key: key("a"), Header: http.Header{"Early-Data": {"1"}}, Sign: sign}, 425, "too-early", ""},
		}
		for _, c := range refused {
			if c.d.Body == "" {
				c.d.Body = secret
			}
			c.d.Path = s.Path
			r.Advance(time.Millisecond) // the newest comes first
			a := r.want(r.send(c.d), c.status)
			if a.Code != c.code || a.Status == 401 && a.Header.Get("WWW-Authenticate") != `Signature realm="eds"` {
				t.Errorf("%s: %q, %v", c.name, a.Code, a.Header)
			}
			last := r.rejections(s)[0]
			if last.Status != c.status || last.Code != c.code || last.Reason != c.reason || last.Remote != "127.0.0.1" {
				t.Errorf("%s: recorded as %+v", c.name, last)
			}
		}
		if n := len(r.rejections(s)); n != len(refused) {
			t.Errorf("%d rejections of %d", n, len(refused))
		}
		if n := len(r.sink.Requests("")); n != 0 {
			t.Fatalf("%d requests went on", n)
		}

		// A valid delivery is accepted once, whichever sender repeats it. The same key with another payload is refused, and
		// so is a replay.
		var replay *http.Request
		first := r.want(r.send(delivery{Path: s.Path, Key: key("good"), Body: secret, Sign: func(q *http.Request, b []byte) {
			sign(q, b)
			replay = q.Clone(context.Background())
		}}), 202)
		if again := r.want(r.send(delivery{Path: s.Path, Key: key("good"), Body: secret, Sign: sign}), 202); again.ID != first.ID {
			t.Errorf("a repeat is another event: %s and %s", first.ID, again.ID)
		}
		if other := r.want(r.send(delivery{Path: s.Path, Key: key("good"), Body: `{"other":1}`, Sign: sign}), 422); other.Code != "idempotency-key-reused" {
			t.Errorf("code %q", other.Code)
		}
		r.Advance(time.Millisecond)
		a := r.send(delivery{Path: s.Path, Key: key("good"), Body: secret, Sign: func(q *http.Request, _ []byte) { q.Header = replay.Header.Clone() }})
		if r.want(a, 401); r.rejections(s)[0].Reason != "replayed" {
			t.Errorf("a replayed request is %+v", r.rejections(s)[0])
		}
		// Toward the endpoint: signed, retried later under the same key, then accepted.
		r.WaitAttempts(first.event(t), ep, 1)
		r.Advance(2 * time.Second)
		requests := r.sink.WaitOn("/to", 2)
		for i := range requests {
			if requests[i].Key() != quoted(key("good")) || string(requests[i].Body) != secret {
				t.Errorf("attempt %d: %s %s", i+1, requests[i].Key(), requests[i].Body)
			}
			r.verify(&requests[i], ep.Secret, nil)
		}
		t.Run("nothing of it is in a log", func(t *testing.T) {
			trace.Covers(t, "EDS-SEC-CNF-2")
			list, err := json.Marshal(r.rejections(s))
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"the log": r.Log.String(), "the rejections": string(list)} {
				for _, word := range []string{marker, s.Issued.Secret, "bare-key-of-good-length"} {
					if strings.Contains(text, word) {
						t.Errorf("%q is in %s", word, name)
					}
				}
			}
			if !strings.Contains(r.Log.String(), "level=DEBUG") {
				t.Error("the log is not at debug level")
			}
		})
	})
}

// TestRejectionsAreBounded: unauthenticated senders cannot fill the store, and noise at one source does not hide rejections
// at another.
func TestRejectionsAreBounded(t *testing.T) {
	r := newRig(t, apptest.Options{})
	count := func(s source) int {
		var list struct{ Items []rejection }
		r.Must(apptest.Call{Path: "/v1/sources/" + s.ID + "/rejections?limit=200"}, &list)
		return len(list.Items)
	}
	noisy, quiet := r.Source("noisy"), r.Source("quiet")
	for range 130 {
		r.want(r.send(delivery{Path: noisy.Path, Key: key("a")}), 401)
	}
	r.want(r.send(delivery{Path: quiet.Path, Key: key("a")}), 401)
	if n, m := count(noisy), count(quiet); n != 50 || m != 1 { // the clock stands still: the burst is all there is
		t.Errorf("%d and %d rejections are recorded", n, m)
	}
	for i := range 3 {
		s := r.Source(fmt.Sprint("more-", i))
		for range 60 {
			r.want(r.send(delivery{Path: s.Path, Key: key("a")}), 401)
		}
		if n := count(s); n > 49 { // a hundred over all
			t.Errorf("%d more are recorded", n)
		}
	}
}

// TestUnknownSources: the response reveals neither that a source was deleted nor its tenant.
func TestUnknownSources(t *testing.T) {
	r := newRig(t, apptest.Options{})
	s := r.Source("upstream")
	r.Endpoint(r.sink.URL("/to"))
	r.want(r.send(delivery{Path: s.PublicPath, Key: key("by name"), Sign: bearer(s)}), 200)
	r.Must(apptest.Call{Method: "DELETE", Path: "/v1/sources/" + s.ID}, nil)
	var first answer
	for _, path := range []string{s.Path, s.PublicPath, "/in/src_00000000-0000-7000-8000-000000000000", "/in/nothing", "/in/ACC-AAAAAA-A/upstream", "/in/", "/in/a/b/c"} {
		a := r.want(r.send(delivery{Path: path, Key: key("a"), Sign: bearer(s)}), 404)
		if first.Code == "" {
			first = a
		}
		if a.Code != first.Code {
			t.Errorf("%s: %s, elsewhere %s", path, a.Body, first.Body)
		}
	}
}

// TestVendorsAreAdopted: a vendor sends no key. By default its deliveries are refused. If the source adopts keys, one
// delivery id gives one key, which is stored with the event and forwarded.
func TestVendorsAreAdopted(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.sink.Script("/to", apptest.Status(503), apptest.Status(200))
		r.Endpoint(r.sink.URL("/to"), apptest.Fields{"policy": apptest.Fields{"circuit_after": 0}})
		s := r.Source("github", apptest.Fields{"scheme": "github", "event_type": apptest.Fields{}, "keep_headers": []string{"X-GitHub-Event", "X-GitHub-Delivery"}})
		body := `{"action":"opened"}`
		send := func(id string) answer {
			return r.send(delivery{Path: s.Path, Body: body, Header: http.Header{"X-Github-Delivery": {id}, "X-Github-Event": {"pull_request"}}, Sign: github(s.Issued.Secret)})
		}
		r.want(send("72d3162e-cc78"), 400)
		r.Must(apptest.Call{Method: "PATCH", Path: "/v1/sources/" + s.ID, Body: apptest.Fields{"adopt": true}}, nil)
		r.want(send("72d3162e-cc78"), 502)
		a := r.want(send("72d3162e-cc78"), 200) // GitHub's redelivery
		other := r.want(send("72d3162e-cc79"), 200)
		requests := r.sink.WaitOn("/to", 3)
		if requests[0].Key() != requests[1].Key() || requests[0].Key() != quoted(a.Key) || requests[2].Key() == a.Key || a.Key == other.Key {
			t.Errorf("keys: %s %s %s", requests[0].Key(), requests[1].Key(), requests[2].Key())
		}
		event, err := r.App.Store().Event(context.Background(), r.Tenant, a.event(t))
		if err != nil || event.Key != a.Key || event.Type != "pull_request" {
			t.Errorf("event: %+v, %v", event, err)
		}
		for _, q := range requests {
			if q.Header.Get("X-GitHub-Event") != "pull_request" || q.Header.Get("X-Hub-Signature-256") != "" {
				t.Errorf("went on: %v", q.Header)
			}
		}
		// A vendor that does send a key keeps it.
		r.want(r.send(delivery{Path: s.Path, Key: key("their own"), Body: body, Header: http.Header{"X-Github-Delivery": {"x"}, "X-Github-Event": {"push"}}, Sign: github(s.Issued.Secret)}), 200)
		if got := r.sink.WaitOn("/to", 4)[3]; got.Key() != quoted(key("their own")) {
			t.Errorf("key %s", got.Key())
		}
	})
}

func github(secret string) func(*http.Request, []byte) {
	return func(q *http.Request, body []byte) {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
}

// TestSchemes: sources accept every scheme that Godwit itself delivers with, and those of other senders.
func TestSchemes(t *testing.T) {
	for _, profile := range []string{"eds", "ojs", "cybercube", "standard-webhooks"} {
		t.Run(profile, func(t *testing.T) {
			a, b := apptest.Start(t, apptest.Options{}), apptest.Start(t, apptest.Options{})
			rb := &rig{Server: b, t: t, sink: apptest.NewSink(t)}
			b.Endpoint(rb.sink.URL("/to"))
			s := rb.Source("from-a", apptest.Fields{"scheme": profile, "event_type": apptest.Fields{"fixed": "from.a"}})
			ep := a.Endpoint(b.URL+s.Path, apptest.Fields{"profile": profile})
			b.Must(apptest.Call{Path: "/v1/sources/" + s.ID + "/rotate", Body: apptest.Fields{"overlap_seconds": 0, "credential": apptest.Fields{"id": ep.Secret.ID, "secret": ep.Secret.Value}}}, nil)
			ev := a.PublishKey("order.paid", key("across"), `{"n":1}`)
			a.WaitDelivery(ev, ep, "accepted")
			if got := rb.sink.WaitOn("/to", 1)[0]; got.Key() != quoted(key("across")) {
				t.Errorf("key %s", got.Key())
			}
		})
	}
	t.Run("basic, with a type out of the body", func(t *testing.T) {
		r := newRig(t, apptest.Options{})
		r.Endpoint(r.sink.URL("/to"), apptest.Fields{"patterns": []string{"orders.create"}})
		s := r.Source("basic", apptest.Fields{"scheme": "basic", "credentials": []apptest.Fields{{"id": "ada", "secret": "a long enough password"}},
			"event_type": apptest.Fields{"member": "meta.topic", "fixed": "unknown"}})
		login := func(q *http.Request, _ []byte) { q.SetBasicAuth("ada", "a long enough password") }
		r.want(r.send(delivery{Path: s.Path, Key: key("a"), Body: `{"meta":{"topic":"orders/create"}}`, Sign: login}), 200)
		r.want(r.send(delivery{Path: s.Path, Key: key("b"), Body: `{"meta":{}}`, Sign: login}), 502) // no endpoint subscribes to "unknown"
	})
	t.Run("a credential in the clear", func(t *testing.T) {
		r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowHTTP = false }})
		s := r.Source("bearer")
		r.want(r.send(delivery{Path: s.Path, Key: key("a"), Sign: bearer(s)}), 403)
	})
}
