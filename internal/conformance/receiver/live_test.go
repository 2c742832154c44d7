package receiver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// A dialect is a profile of the server, with an algorithm, and the receiver's scheme for it.
type dialect struct {
	profile, algorithm string
	scheme             func(secrets ...apptest.Secret) receiver.Scheme
}

func (d dialect) String() string { return d.profile + " " + d.algorithm }

func values(secrets []apptest.Secret) (list []string) {
	for _, s := range secrets {
		if s.Value != "" {
			list = append(list, s.Value)
		} else {
			list = append(list, "whpk_"+s.PublicKey)
		}
	}
	return list
}

func edsKeys(secrets ...apptest.Secret) receiver.Scheme {
	var s receiver.EDS
	for _, secret := range secrets {
		k := receiver.EDSKey{ID: secret.ID, Principal: "shop", Secret: secret.Value}
		if secret.Value == "" {
			k.PublicKey = secret.PublicKey
		}
		s.Keys = append(s.Keys, k)
	}
	return s
}

func standard(secrets ...apptest.Secret) receiver.Scheme {
	return receiver.StandardWebhooks{Keys: values(secrets), Principal: "shop"}
}

var dialects = []dialect{
	{"eds", godwit.AlgorithmHMAC, edsKeys},
	{"eds", godwit.AlgorithmEd25519, edsKeys},
	{"ojs", godwit.AlgorithmHMAC, func(s ...apptest.Secret) receiver.Scheme {
		return receiver.OJS{Secrets: values(s), Principal: "shop"}
	}},
	{"cybercube", godwit.AlgorithmHMAC, func(s ...apptest.Secret) receiver.Scheme {
		return receiver.Cybercube{Secrets: values(s), Principal: "shop"}
	}},
	{"standard-webhooks", godwit.AlgorithmHMAC, standard},
	{"standard-webhooks", godwit.AlgorithmEd25519, standard},
}

// A rig is a real server and a receiver behind TLS, which share a clock.
type rig struct {
	*apptest.Server
	t       *testing.T
	dialect dialect
	ep      apptest.Endpoint
	host    *httptest.Server
	store   receiver.Store
	serving atomic.Pointer[http.Handler] // the receiver as it is configured now

	// front stands before the receiver and may drop connections. Defaults to none.
	front  func(w http.ResponseWriter, req *http.Request, next http.Handler)
	handle receiver.Handler // Defaults to accepting.

	mu   sync.Mutex
	seen []receiver.Delivery
}

var start = time.Date(2026, 7, 1, 12, 0, 0, 999, time.UTC)

func newRig(t *testing.T, d dialect) *rig {
	t.Helper()
	ca := apptest.CAFile(t)
	g := &rig{t: t, dialect: d, store: receiver.NewMemory(receiver.MemoryOptions{})}
	g.Server = apptest.Start(t, apptest.Options{
		Clock: clock.NewManual(start), Configure: func(c *config.Config) { c.CAFile = ca },
		Tune: func(c *engine.Config) { c.LeaseTTL = 10000 * time.Hour },
	})
	certificate, key := apptest.ServerCertificate(t, "127.0.0.1")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	g.host = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		next := *g.serving.Load()
		if g.front == nil {
			next.ServeHTTP(w, req)
			return
		}
		g.front(w, req, next)
	}))
	g.host.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	g.host.StartTLS()
	t.Cleanup(g.host.Close)
	g.ep = g.Endpoint(g.host.URL+"/hook?tenant=a%20b", apptest.Fields{"profile": d.profile, "algorithm": d.algorithm, "patterns": []string{"order.*"}})
	g.know(g.ep.Secret)
	return g
}

// know makes the receiver know these secrets and no others.
func (g *rig) know(secrets ...apptest.Secret) {
	g.t.Helper()
	r, err := receiver.New(receiver.Options{
		Scheme: g.dialect.scheme(secrets...), Store: g.store, Clock: g.Clock.Now,
		Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
			g.mu.Lock()
			g.seen = append(g.seen, *d)
			g.mu.Unlock()
			if g.handle == nil {
				return nil, nil
			}
			return g.handle(ctx, d)
		},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	var h http.Handler = r
	g.serving.Store(&h)
}

func (g *rig) handled() []receiver.Delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]receiver.Delivery(nil), g.seen...)
}

// accepted advances the clock from one due time to the next until the delivery is accepted.
func (g *rig) accepted(ev godwit.EventID) godwit.Delivery {
	g.t.Helper()
	for range 200 {
		d := g.Delivery(ev, g.ep)
		if d.Status != godwit.DeliveryPending {
			break
		}
		attempts := d.Attempts
		due := d.DueAt
		health, err := g.App.Store().Health(context.Background(), g.ep.ID)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, at := range []time.Time{health.HoldUntil, health.ProbeAt} {
			if at.After(due) {
				due = at
			}
		}
		if attempts == 0 {
			g.WaitAttempts(ev, g.ep, 1)
			continue
		}
		g.Advance(max(due.Truncate(time.Microsecond).Add(999).Sub(g.Clock.Now()), time.Microsecond))
		g.WaitAttempts(ev, g.ep, attempts+1)
	}
	d := g.Delivery(ev, g.ep)
	if d.Status != godwit.DeliveryAccepted {
		g.t.Fatalf("delivery is %s after %d attempts", d.Status, d.Attempts)
	}
	return d
}

func eachDialect(t *testing.T, test func(t *testing.T, g *rig)) {
	for _, d := range dialects {
		t.Run(d.String(), func(t *testing.T) { test(t, newRig(t, d)) })
	}
}

const payload = `{"order":4711,"text":"é漢😀"}`

// TestLiveDeliveries: the receiver verifies the server's deliveries in every profile, through a rotation of the secret.
func TestLiveDeliveries(t *testing.T) {
	eachDialect(t, func(t *testing.T, g *rig) {
		switch g.dialect.profile {
		case "eds":
			trace.Covers(t, "EDS-SEC-AUT-2", "EDS-KEY-6", "EDS-KEY-8", "EDS-SEC-TLS-1")
		case "ojs":
			trace.Covers(t, "OJS-SIG-6", "OJS-SIG-11", "OJS-ROT-5")
		case "cybercube":
			trace.Covers(t, "CCW-SDK-10", "CCW-SEC-14", "CCW-RCV-3")
		}
		deliver := func(when string, known ...apptest.Secret) {
			t.Helper()
			g.know(known...)
			before := len(g.handled())
			ev := g.Publish("order.paid", payload)
			if d := g.accepted(ev); d.Attempts != 1 {
				t.Errorf("%s: %d attempts", when, d.Attempts)
			}
			seen := g.handled()
			if len(seen) != before+1 {
				t.Fatalf("%s: handled %d times", when, len(seen)-before)
			}
			last := seen[before]
			if last.Scheme != g.dialect.profile || last.Principal != "shop" || last.Key == "" || last.EventID == "" ||
				last.URL != g.host.URL+"/hook?tenant=a%20b" || !strings.Contains(string(last.Body), "é漢😀") {
				t.Errorf("%s: %+v", when, last)
			}
			if kind := g.dialect.profile; kind != "standard-webhooks" && last.EventType != "order.paid" {
				t.Errorf("%s: type %q", when, last.EventType)
			}
		}
		deliver("the first secret", g.ep.Secret)
		var second, third apptest.Secret
		g.EndpointCall(g.ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 3600}).JSON(t, &second)
		deliver("the overlap, receiver has the old one", g.ep.Secret)
		deliver("the overlap, receiver has both", second, g.ep.Secret)
		deliver("the overlap, receiver has the new one", second)
		g.EndpointCall(g.ep, http.MethodPost, "/rotate-secret", apptest.Fields{"overlap_seconds": 0}).JSON(t, &third)
		deliver("the end of the rotation", third)
		g.know(g.ep.Secret) // which is no longer valid
		before := len(g.handled())
		ev := g.Publish("order.paid", payload)
		if a := g.WaitAttempts(ev, g.ep, 1)[0]; a.Status != http.StatusUnauthorized || len(g.handled()) != before {
			t.Errorf("with a revoked secret: %d", a.Status)
		}
	})
}

// TestLostReplies: the event is handled, the response is lost, and the sender retries. The event is handled once.
func TestLostReplies(t *testing.T) {
	eachDialect(t, func(t *testing.T, g *rig) {
		switch g.dialect.profile {
		case "eds":
			trace.Covers(t, "EDS-NET-3", "IKH-DEF-6", "EDS-KEY-6")
		case "ojs":
			trace.Covers(t, "OJS-DLV-19", "OJS-DLV-20")
		case "cybercube":
			trace.Covers(t, "CCW-IDM-11", "CCW-IDM-1", "CCW-IDM-2")
		}
		var requests atomic.Int32
		var replayed atomic.Bool
		g.front = func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if requests.Add(1) <= 3 {
				next.ServeHTTP(httptest.NewRecorder(), req) // the request is handled, and the response is dropped
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, req)
			replayed.Store(w.Header().Get("Idempotency-Replayed") == "true")
		}
		ev := g.Publish("order.paid", payload)
		d := g.accepted(ev)
		if d.Attempts != 4 || requests.Load() != 4 || !replayed.Load() {
			t.Errorf("%d attempts, %d requests, replayed: %t", d.Attempts, requests.Load(), replayed.Load())
		}
		if n := len(g.handled()); n != 1 {
			t.Errorf("handled %d times", n)
		}
		attempts := g.Attempts(ev, g.ep)
		keys := map[string]bool{}
		for _, d := range g.handled() {
			keys[d.Key] = true
		}
		if len(attempts) != 4 || len(keys) != 1 {
			t.Errorf("attempts %d, keys %v", len(attempts), keys)
		}
	})
}

// TestTwoHoursLater: the handler asks for a retry in two hours. The retry has a new signature, so it is fresh, and the key
// is free for it.
func TestTwoHoursLater(t *testing.T) {
	eachDialect(t, func(t *testing.T, g *rig) {
		switch g.dialect.profile {
		case "eds":
			trace.Covers(t, "EDS-SEC-RPL-4", "EDS-DUP-9", "EDS-RTY-2", "EDS-RAF-1")
		case "ojs":
			trace.Covers(t, "OJS-RTY-8", "OJS-SIG-7")
		case "cybercube":
			trace.Covers(t, "CCW-SIG-11", "CCW-IDM-4")
		}
		open := g.Clock.Now().Add(2 * time.Hour)
		var effects atomic.Int32
		g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			if left := open.Sub(g.Clock.Now()); left > 0 {
				return receiver.RetryAfter{After: left, Reason: "closed"}, nil
			}
			effects.Add(1)
			return nil, nil
		}
		ev := g.Publish("order.paid", payload)
		d := g.accepted(ev)
		if d.Attempts < 2 || effects.Load() != 1 || g.Clock.Now().Before(open) {
			t.Errorf("%d attempts, %d effects, at %s", d.Attempts, effects.Load(), g.Clock.Now())
		}
		if g.dialect.profile == "eds" && d.Attempts != 2 {
			t.Errorf("the sender came %d times although it was told when", d.Attempts)
		}
		seen := g.handled()
		if last := seen[len(seen)-1]; !last.SignedAt.After(seen[0].SignedAt) {
			t.Errorf("signed at %s and again at %s", seen[0].SignedAt, last.SignedAt)
		}
	})
}

// TestManyLiveEvents: with replies lost at random, every event is handled once.
func TestManyLiveEvents(t *testing.T) {
	eachDialect(t, func(t *testing.T, g *rig) {
		var n atomic.Int32
		g.front = func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			switch n.Add(1) % 5 {
			case 1: // before the receiver has seen it
				panic(http.ErrAbortHandler)
			case 3: // after it has
				next.ServeHTTP(httptest.NewRecorder(), req)
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, req)
		}
		const events = 12
		for i := range events {
			g.accepted(g.Publish("order.paid", fmt.Sprintf(`{"order":%d}`, i)))
		}
		keys := map[string]int{}
		for _, d := range g.handled() {
			keys[d.Key]++
		}
		for key, times := range keys {
			if times != 1 {
				t.Errorf("%s was handled %d times", key, times)
			}
		}
		if len(keys) != events {
			t.Errorf("%d of %d events were handled", len(keys), events)
		}
	})
}
