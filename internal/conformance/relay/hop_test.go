package relay

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// oddKeys are valid and hard to carry unchanged.
var oddKeys = []string{
	`spaces  and "quotes" inside`, `back\slash \" and \\ more`, "  leading and trailing  ", "'; DROP TABLE events; --",
	"%41%42%43 + &=#/?@:~!$*()<>[]{}|^`", strings.Repeat("k", 1024), "sixteen-letters.",
}

// TestKeysGoOnUnchanged in both modes, to every endpoint, on the first attempt, on retries, and after a restart.
func TestKeysGoOnUnchanged(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-INT-1", "EDS-INT-2")
		o.Data = t.TempDir()
		r := newRig(t, o)
		r.sink.ReplyFunc("/b", func(q *apptest.Request) apptest.Reply {
			if q.N <= 2*len(oddKeys) {
				return apptest.Status(503)
			}
			return apptest.Status(200)
		})
		for _, path := range []string{"/a", "/b", "/c"} {
			r.Endpoint(r.sink.URL(path), apptest.Fields{"policy": apptest.Fields{"circuit_after": 0, "base_seconds": 1, "cap_seconds": 1}})
		}
		through, stored := r.Source("through", apptest.Fields{"mode": "pass-through"}), r.storing("stored")
		for _, k := range oddKeys {
			r.want(r.send(delivery{Path: through.Path, Key: k, Sign: bearer(through)}), 502)
			r.want(r.send(delivery{Path: stored.Path, Key: k, Sign: bearer(stored)}), 202)
		}
		r.sink.WaitOn("/b", 2*len(oddKeys))
		again := r.restart(o)
		again.Advance(10 * time.Second)
		all := r.sink.WaitOn("/b", 4*len(oddKeys))
		for _, path := range []string{"/a", "/c"} {
			all = append(all, r.sink.WaitOn(path, 2*len(oddKeys))...)
		}
		seen := map[string]int{}
		for _, q := range all {
			seen[q.Key()]++
		}
		for _, k := range oddKeys {
			// Two sources, three endpoints, one of which was asked twice.
			if seen[quoted(k)] != 8 {
				t.Errorf("key %s arrived %d times, want 8", quoted(k), seen[quoted(k)])
			}
		}
		if len(seen) != len(oddKeys) {
			t.Errorf("%d keys arrived, %d were sent: %v", len(seen), len(oddKeys), seen)
		}
	})
}

// restart stops the server and starts one on what it left.
func (r *rig) restart(o apptest.Options) *rig {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Fatal(err)
	}
	next := newRig(r.t, apptest.Options{Data: r.Config.Data, Store: r.Config.Store, Clock: r.Clock})
	next.sink = r.sink
	return next
}

// TestCredentialsStayOnTheirHop: the upstream's credentials are not forwarded; Godwit signs what it forwards.
func TestCredentialsStayOnTheirHop(t *testing.T) {
	trace.Covers(t, "EDS-INT-7", "EDS-MTH-4")
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/to"))
	s := r.Source("signed", apptest.Fields{"scheme": "eds", "keep_headers": []string{"X-Tenant", "X-Absent"}})
	const body = "<paid  n='1'/>\n"
	r.want(r.send(delivery{Path: s.Path, Key: key("xml"), Body: body, Sign: r.signEDS(s.Issued.ID, s.Issued.Secret), Header: http.Header{
		"Content-Type": {"text/xml; charset=utf-8"}, "X-Tenant": {"acme"}, "X-Other": {"stays"}, "Authorization": {"Bearer upstream-credential"}, "Cookie": {"a=b"},
	}}), 200)
	got := r.sink.WaitOn("/to", 1)[0]
	sameBody(t, &got, "text/xml; charset=utf-8", body)
	if got.Header.Get("X-Tenant") != "acme" || got.Header["X-Other"] != nil || got.Header["X-Absent"] != nil {
		t.Errorf("kept: %v", got.Header)
	}
	for _, secret := range []string{"upstream-credential", s.Issued.ID, "Cookie"} {
		if strings.Contains(got.Head, secret) {
			t.Errorf("%q of the upstream's hop went on:\n%s", secret, got.Head)
		}
	}
	verified := r.verify(&got, ep.Secret, nil)
	if verified.KeyID != ep.Secret.ID+s.Suffix {
		t.Errorf("signed as %s, want %s", verified.KeyID, ep.Secret.ID+s.Suffix)
	}
	a := r.send(delivery{Path: s.Path, Key: key("untyped"), Header: http.Header{"Content-Type": nil}, Sign: func(q *http.Request, b []byte) {
		q.Header.Set("Content-Type", "application/json")
		r.signEDS(s.Issued.ID, s.Issued.Secret)(q, b)
		q.Header.Del("Content-Type")
	}})
	if a.Status < 400 || a.Status > 499 {
		t.Errorf("a body without a type is answered with %d", a.Status)
	}
}

// verify checks an attempt as a receiver does, under any id of the endpoint's key.
func (r *rig) verify(q *apptest.Request, secret apptest.Secret, components []string) httpsig.Verified {
	r.t.Helper()
	v, err := httpsig.Verify(request(q), q.Body, httpsig.Options{
		RequiredComponents: components, Now: r.Clock.Now,
		KeyByID: func(_ context.Context, id string) (httpsig.Key, error) {
			if base, _, _ := strings.Cut(id, "/"); base != secret.ID {
				return httpsig.Key{}, httpsig.ErrUnknownKey
			}
			return httpsig.NewHMACKey(id, decode(r.t, secret.Value))
		},
	})
	if err != nil {
		r.t.Fatalf("verify attempt: %v\n%s", err, q.Head)
	}
	return v
}

// request makes of an arrival the request that it was.
func request(q *apptest.Request) *http.Request {
	req := httptest.NewRequest(q.Method, "http://"+q.Host+q.Path, bytes.NewReader(q.Body))
	req.Header, req.Host, req.RequestURI = q.Header, q.Host, q.Path
	return req
}

// TestOriginSignatureSurvivesTheRelay: with an end-to-end label the origin's signature arrives unchanged and proves the body
// to the receiver. Godwit's signature replaces that of the hop.
func TestOriginSignatureSurvivesTheRelay(t *testing.T) {
	trace.Covers(t, "EDS-INT-7", "EDS-SEC-ITG-2")
	r := newRig(t, apptest.Options{})
	ep := r.Endpoint(r.sink.URL("/to"))
	s := r.Source("signed", apptest.Fields{"scheme": "eds", "settings": apptest.Fields{"end_to_end": "origin"}})
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := httpsig.NewEd25519Signer("the-origin", private)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"content-digest", "content-type", "idempotency-key"}
	signer, err := httpsig.NewSigner(parts...)
	if err != nil {
		t.Fatal(err)
	}
	var sent http.Header
	r.want(r.send(delivery{Path: s.Path, Key: key("e2e"), Sign: func(q *http.Request, body []byte) {
		q.Header.Set("Content-Digest", httpsig.ContentDigest(body))
		// Made long ago: it proves the origin, the hop proves freshness (EDS T-19).
		if err := signer.SignRequest(q, httpsig.Params{Keys: []httpsig.Key{origin}, Created: r.Clock.Now().Add(-48 * time.Hour), Label: "origin"}); err != nil {
			t.Fatal(err)
		}
		sent = q.Header.Clone()
		r.signEDS(s.Issued.ID, s.Issued.Secret)(q, body)
	}}), 200)
	got := r.sink.WaitOn("/to", 1)[0]
	for _, name := range []string{"Signature", "Signature-Input"} {
		if !strings.Contains(got.Header.Get(name), sent.Get(name)) {
			t.Errorf("%s was %s, arrived as %s", name, sent.Get(name), got.Header.Get(name))
		}
		if strings.Contains(got.Header.Get(name), s.Issued.ID) {
			t.Errorf("the hop's signature went on: %s", got.Header.Get(name))
		}
	}
	if got.Header.Get("Content-Digest") != sent.Get("Content-Digest") {
		t.Errorf("Content-Digest was %s, arrived as %s", sent.Get("Content-Digest"), got.Header.Get("Content-Digest"))
	}
	endToEnd := httpsig.Options{RequiredComponents: parts, MaxAge: -1, Now: r.Clock.Now, KeyByID: func(_ context.Context, id string) (httpsig.Key, error) {
		if id != "the-origin" {
			return httpsig.Key{}, httpsig.ErrUnknownKey
		}
		return httpsig.NewEd25519Verifier(id, public)
	}}
	if _, err := httpsig.Verify(request(&got), got.Body, endToEnd); err != nil {
		t.Errorf("the origin's signature does not verify at the end: %v", err)
	}
	altered := append(bytes.Clone(got.Body), ' ')
	if _, err := httpsig.Verify(request(&got), altered, endToEnd); httpsig.ReasonOf(err) != httpsig.ReasonDigestMismatch {
		t.Errorf("an altered body gives %v", err)
	}
	resigned := request(&got)
	resigned.Header = resigned.Header.Clone()
	resigned.Header.Set("Content-Digest", httpsig.ContentDigest(altered))
	if _, err := httpsig.Verify(resigned, altered, endToEnd); httpsig.ReasonOf(err) != httpsig.ReasonBadSignature {
		t.Errorf("a relay that alters body and digest gives %v", err)
	}
	r.verify(&got, ep.Secret, nil) // ours is beside it
}

// A consumer is a real receiver that counts what it handles.
type consumer struct {
	*httptest.Server
	mu   sync.Mutex
	runs []receiver.Delivery
	raw  []http.Header
}

func newConsumer(t testing.TB, now func() time.Time, keys func() []receiver.EDSKey) *consumer {
	c := &consumer{}
	var made http.Handler
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		c.mu.Lock()
		if made == nil {
			r, err := receiver.New(receiver.Options{
				Scheme: receiver.EDS{Keys: keys()}, Clock: now, Log: slog.New(slog.DiscardHandler),
				Handler: func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.runs = append(c.runs, *d)
					return receiver.Accepted{}, nil
				},
			})
			if err != nil {
				t.Error(err)
				c.mu.Unlock()
				w.WriteHeader(500)
				return
			}
			made = r
		}
		c.raw = append(c.raw, q.Header.Clone())
		c.mu.Unlock()
		made.ServeHTTP(w, q)
	}))
	t.Cleanup(c.Close)
	return c
}

// TestTwoUpstreamsMayUseOneKey: the receiver keeps the events of two producers apart, and neither producer can suppress the
// other's event.
func TestTwoUpstreamsMayUseOneKey(t *testing.T) {
	r := newRig(t, apptest.Options{})
	var ep apptest.Endpoint
	c := newConsumer(t, r.Clock.Now, func() []receiver.EDSKey {
		return []receiver.EDSKey{{ID: ep.Secret.ID, Principal: "godwit", Secret: ep.Secret.Value}}
	})
	ep = r.Endpoint(c.URL)
	one, two := r.Source("one"), r.Source("two")
	first := r.want(r.send(delivery{Path: one.Path, Key: key("shared"), Sign: bearer(one), Body: `{"of":"one"}`}), 200)
	second := r.want(r.send(delivery{Path: two.Path, Key: key("shared"), Sign: bearer(two), Body: `{"of":"two"}`}), 200)
	if first.ID == second.ID {
		t.Error("one event for two upstreams")
	}
	if len(c.runs) != 2 || c.runs[0].Principal == c.runs[1].Principal || c.runs[0].Key != c.runs[1].Key {
		t.Fatalf("handled: %+v", c.runs)
	}
	for i, s := range []source{one, two} {
		if want := "godwit" + s.Suffix; c.runs[i].Principal != want {
			t.Errorf("principal %q, want %q", c.runs[i].Principal, want)
		}
	}
}

// TestChain: producer, two relays, consumer. One key from end to end; every hop has its own credential, log and outcome.
func TestChain(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-DEF-4", "EDS-INT-1", "EDS-INT-7")
		a, b := apptest.Start(t, o), apptest.Start(t, o)
		ra, rb := &rig{Server: a, t: t}, &rig{Server: b, t: t}
		var atB apptest.Endpoint
		c := newConsumer(t, time.Now, func() []receiver.EDSKey {
			return []receiver.EDSKey{{ID: atB.Secret.ID, Principal: "b", Secret: atB.Secret.Value}}
		})
		atB = b.Endpoint(c.URL)
		fromA := rb.Source("from-a", apptest.Fields{"scheme": "eds", "event_type": apptest.Fields{}})
		atA := a.Endpoint(b.URL + fromA.Path)
		// B trusts the key that A signs with toward it.
		b.Must(apptest.Call{Path: "/v1/sources/" + fromA.ID + "/rotate", Body: apptest.Fields{
			"overlap_seconds": 0, "credential": apptest.Fields{"id": atA.Secret.ID, "secret": atA.Secret.Value}}}, nil)
		producer := ra.Source("producer", apptest.Fields{"event_type": apptest.Fields{"fixed": "order.paid"}})

		k := `one key, "end to end" \ unchanged`
		const body = `{"n": 1,  "exact":"bytes"}`
		got := ra.want(ra.send(delivery{Path: producer.Path, Key: k, Body: body, Sign: bearer(producer)}), 200)
		if len(c.runs) != 1 || c.runs[0].Key != k || string(c.runs[0].Body) != body || c.runs[0].EventType != "order.paid" {
			t.Fatalf("the consumer handled %+v", c.runs)
		}
		// The events on both servers carry the key; the attempts were signed with another key each.
		eventA, err := a.App.Store().Event(context.Background(), a.Tenant, got.event(t))
		if err != nil || eventA.Key != k || eventA.Origin.Source.String() != producer.ID {
			t.Fatalf("at A: %+v, %v", eventA, err)
		}
		onA := a.WaitAttempts(eventA.ID, atA, 1)
		var list struct{ Items []struct{ ID string } }
		b.Must(apptest.Call{Path: "/v1/events?type=order.paid"}, &list)
		if len(list.Items) != 1 {
			t.Fatalf("%d events at B", len(list.Items))
		}
		id, err := godwit.ParseEventID(list.Items[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		eventB, err := b.App.Store().Event(context.Background(), b.Tenant, id)
		if err != nil || eventB.Key != k || eventB.Origin.Source.String() != fromA.ID || eventB.Origin.Principal != producer.ID {
			t.Fatalf("at B: %+v, %v", eventB, err)
		}
		onB := b.WaitAttempts(eventB.ID, atB, 1)
		if want := atA.Secret.ID + "/" + producer.ID; onA[0].Trace.SignedWith[0] != want || onA[0].Verdict.Outcome != godwit.Accepted {
			t.Errorf("A signed with %v, want %s; outcome %s", onA[0].Trace.SignedWith, want, onA[0].Verdict.Outcome)
		}
		if signed := onB[0].Trace.SignedWith[0]; !strings.HasPrefix(signed, atB.Secret.ID+"/"+fromA.ID+".") || onB[0].Verdict.Outcome != godwit.Accepted {
			t.Errorf("B signed with %s; outcome %s", signed, onB[0].Verdict.Outcome)
		}
		for _, h := range c.raw {
			if h.Get("Idempotency-Key") != quoted(k) || strings.Contains(h.Get("Signature-Input"), atA.Secret.ID) || h.Get("Authorization") != "" {
				t.Errorf("the consumer saw %v", h)
			}
		}
		// A repeat of the producer's ends at A: it was accepted.
		ra.want(ra.send(delivery{Path: producer.Path, Key: k, Body: body, Sign: bearer(producer)}), 200)
		if len(c.runs) != 1 {
			t.Errorf("handled %d times", len(c.runs))
		}
	})
}
