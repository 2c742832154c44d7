package relay

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestStoreAndForwardNeedsBothConditions: without description and acknowledgment the upstream gets no success before the
// endpoint's.
func TestStoreAndForwardNeedsBothConditions(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.sink.ReplyFunc("/down", func(*apptest.Request) apptest.Reply { return apptest.Status(503) })
		r.Endpoint(r.sink.URL("/down"), apptest.Fields{"policy": apptest.Fields{"circuit_after": 0}})
		s := r.Source("upstream")
		deliver := func(name string, want int) answer {
			t.Helper()
			return r.want(r.send(delivery{Path: s.Path, Key: key(name), Sign: bearer(s)}), want)
		}
		acknowledge := func(version string) *apptest.Response {
			return r.Call(apptest.Call{Path: "/v1/sources/" + s.ID + "/acknowledgments", Body: apptest.Fields{"version": version, "by": "Ada"}})
		}
		t.Run("neither", func(t *testing.T) {
			trace.Covers(t, "EDS-INT-8", "EDS-INT-11")
			deliver("neither", 502)
		})
		t.Run("acknowledged but not described", func(t *testing.T) {
			trace.Covers(t, "EDS-INT-8", "EDS-INT-10")
			if a := acknowledge("v1-0000000000000000"); a.Status != 409 {
				t.Errorf("a description that nobody can read is acknowledged: %d", a.Status)
			}
			deliver("not described", 502)
		})
		t.Run("described but not acknowledged", func(t *testing.T) {
			trace.Covers(t, "EDS-INT-8", "EDS-INT-10", "EDS-INT-11")
			if v := r.version(); v == "" {
				t.Fatal("no version")
			}
			a := r.send(delivery{Path: s.Path, Key: key("by header"), Sign: bearer(s), Header: http.Header{
				"Godwit-Acknowledge": {r.version()}, "Acknowledgment": {r.version()}, "Prefer": {"respond-async"}}})
			r.want(a, 502) // no header makes an acknowledgment
		})
		t.Run("both", func(t *testing.T) {
			trace.Covers(t, "EDS-INT-8", "EDS-INT-10", "EDS-INT-5")
			r.acknowledge(s)
			a := deliver("both", 202)
			if a.Mode != string(godwit.StoreAndForward) {
				t.Errorf("answered in mode %q", a.Mode)
			}
			var list struct {
				Items []struct{ Version, By, Actor, At string }
			}
			r.Must(apptest.Call{Path: "/v1/sources/" + s.ID + "/acknowledgments"}, &list)
			if len(list.Items) != 1 || list.Items[0].Version != r.version() || list.Items[0].By != "Ada, Upstream Inc." ||
				!strings.HasPrefix(list.Items[0].Actor, "key_") || !strings.HasPrefix(list.Items[0].At, "2026-07-01T12:00:00") {
				t.Errorf("recorded: %+v", list.Items)
			}
			// The hop behind has an outcome of its own.
			r.WaitRecorded("an attempt", func() bool {
				d := r.only(a.event(t))
				return d.Attempts > 0 && d.LastStatus == 503
			}, func() string { return "none" })
		})
		t.Run("acknowledged, but pass-through is wanted", func(t *testing.T) {
			trace.Covers(t, "EDS-INT-11")
			r.Must(apptest.Call{Method: "PATCH", Path: "/v1/sources/" + s.ID, Body: apptest.Fields{"mode": "pass-through"}}, nil)
			deliver("wanted", 502)
		})
	})
}

// only is the one delivery of an event.
func (r *rig) only(ev godwit.EventID) godwit.Delivery {
	r.t.Helper()
	list, err := r.App.Store().ListDeliveries(context.Background(), store.DeliveryFilter{TenantID: r.Tenant, EventID: ev}, store.Page{Limit: 5})
	if err != nil || len(list) != 1 {
		r.t.Fatalf("%d deliveries, %v", len(list), err)
	}
	return list[0]
}

// TestDescriptionIsTheRunningConfiguration: a weaker configuration needs a new acknowledgment.
func TestDescriptionIsTheRunningConfiguration(t *testing.T) {
	data := t.TempDir()
	hands := clock.NewManual(start)
	retention := 30 * 24 * time.Hour
	boot := func(t *testing.T) *rig {
		hands.Advance(time.Second)
		return newRig(t, apptest.Options{Data: data, Clock: hands, Configure: func(c *config.Config) {
			c.Retention.Events = config.Duration(retention)
			c.RelayDeadline = config.Duration(17 * time.Second)
		}})
	}
	r := boot(t)
	s := r.storing("upstream")
	t.Run("values", func(t *testing.T) {
		trace.Covers(t, "EDS-INT-9")
		var d struct {
			Version string
			Terms   struct {
				Durability string
				Retention  float64 `json:"retention_seconds"`
			}
			Modes []struct {
				Name     string
				Deadline float64 `json:"deadline_seconds"`
			}
			Retries []struct {
				Profile    string
				Base       float64 `json:"base_seconds"`
				Cap        float64 `json:"cap_seconds"`
				MaxRetries int     `json:"max_retries"`
				MaxElapsed float64 `json:"max_elapsed_seconds"`
			} `json:"retry_policies"`
		}
		r.Must(apptest.Call{Path: "/.well-known/webhook-service", Key: "none"}, &d) // public
		stored, err := r.App.Store().Describe(context.Background())
		if err != nil || d.Terms.Durability != stored.Durability || !strings.Contains(d.Terms.Durability, "synced") || d.Terms.Retention != retention.Seconds() {
			t.Errorf("terms: %+v, the store says %q", d.Terms, stored.Durability)
		}
		if len(d.Modes) != 2 || d.Modes[0].Name != "store-and-forward" || d.Modes[1].Deadline != 17 {
			t.Errorf("modes: %+v", d.Modes)
		}
		seen := 0
		for _, p := range d.Retries {
			own, err := profile.Lookup(p.Profile)
			if err != nil {
				t.Fatal(err)
			}
			want := own.Defaults()
			if p.MaxRetries != want.MaxRetries || p.MaxElapsed != want.MaxElapsed.Seconds() {
				t.Errorf("%s: %+v, want %+v", p.Profile, p, want)
			}
			if p.Profile == "eds" && (p.Base != want.Base.Seconds() || p.Cap != want.Cap.Seconds()) {
				t.Errorf("eds: %+v", p)
			}
			seen++
		}
		if seen != len(profile.Names()) {
			t.Errorf("%d profiles are described", seen)
		}
	})
	t.Run("as a page", func(t *testing.T) {
		page := r.Must(apptest.Call{Path: "/.well-known/webhook-service", Header: map[string]string{"Accept": "text/html,*/*;q=0.8"}}, nil)
		if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(page.Body), r.version()) {
			t.Errorf("%s\n%s", page.Header.Get("Content-Type"), page.Body)
		}
	})
	mode := func(r *rig) string {
		var v source
		r.Must(apptest.Call{Path: "/v1/sources/" + s.ID}, &v)
		return v.Mode
	}
	t.Run("a weaker one", func(t *testing.T) {
		trace.Covers(t, "EDS-INT-10")
		restart := func(keep time.Duration) {
			t.Helper()
			if err := r.Stop(); err != nil {
				t.Fatal(err)
			}
			retention = keep
			r = boot(t)
		}
		was := r.version()
		restart(40 * 24 * time.Hour)
		if r.version() == was || mode(r) != "store-and-forward" {
			t.Errorf("more is promised: version %s, mode %s", r.version(), mode(r))
		}
		restart(20 * 24 * time.Hour)
		if r.version() == was || mode(r) != "pass-through" {
			t.Errorf("less is promised: version %s, mode %s", r.version(), mode(r))
		}
		r.acknowledge(s)
		if mode(r) != "store-and-forward" {
			t.Errorf("acknowledged anew: mode %s", mode(r))
		}
		// An upstream that has agreed to stronger terms since relies on them: the earlier acknowledgment does not become
		// valid again.
		restart(40 * 24 * time.Hour)
		r.acknowledge(s)
		restart(20 * 24 * time.Hour)
		if mode(r) != "pass-through" {
			t.Errorf("less than was acknowledged last: mode %s", mode(r))
		}
	})
}

// TestPassThroughAnswers: the response to the upstream follows from the outcome, and copies no status of an endpoint.
func TestPassThroughAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply apptest.Reply
		want  int
	}{
		{"200", apptest.Status(200), 200},
		{"202", apptest.Status(202), 200},
		{"204", apptest.Status(204), 200},
		{"207", apptest.Status(207).Body("application/json", `[]`), 422},
		{"302", apptest.Redirect(302, "https://elsewhere.example/"), 422},
		{"400", apptest.Status(400), 422},
		{"401", apptest.Status(401), 422},
		{"403", apptest.Status(403), 422},
		{"404", apptest.Status(404), 422},
		{"405", apptest.Status(405), 422},
		{"410", apptest.Status(410), 422},
		{"422", apptest.Status(422), 422},
		{"408", apptest.Status(408), 504},
		{"504", apptest.Status(504), 504},
		{"429 with Retry-After", apptest.RetryAfter(429, "77"), 502},
		{"500", apptest.Status(500), 502},
		{"503 with Retry-After", apptest.RetryAfter(503, "77"), 502},
		{"reset", apptest.Reset(), 504},
		{"cut off 200", apptest.Truncated(200, 100, "half"), 504},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace.Covers(t, "EDS-INT-3", "EDS-INT-6", "EDS-INT-11")
			r := newRig(t, apptest.Options{})
			r.sink.ReplyFunc("/to", func(*apptest.Request) apptest.Reply { return c.reply })
			r.Endpoint(r.sink.URL("/to"))
			s := r.Source("upstream")
			a := r.want(r.send(delivery{Path: s.Path, Key: key("one"), Sign: bearer(s)}), c.want)
			if v := a.Header.Values("Retry-After"); v != nil {
				t.Errorf("Retry-After %q went up", v)
			}
			if c.want == 200 {
				if at := r.sink.Requests("/to")[0].At; a.At.Before(at) {
					t.Errorf("answered at %s, delivered at %s", a.At, at)
				}
				return
			}
			if len(a.Downstream) != 1 {
				t.Fatalf("downstream is told as %s", a.Body)
			}
			if told, status := a.Downstream[0].Status, 0; c.want == 422 {
				fmt.Sscan(c.name, &status)
				if told != status || a.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("downstream status %d is told as %d in %s", status, told, a.Header.Get("Content-Type"))
				}
			}
		})
	}
}

// TestPassThroughHasADeadline: an endpoint that hangs causes a timeout, not a success. The upstream may disconnect
// meanwhile.
func TestPassThroughHasADeadline(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-INT-11", "EDS-INT-6")
		r := newRig(t, o)
		open := make(chan struct{})
		r.sink.Script("/slow", apptest.Status(200).Until(open))
		ep := r.Endpoint(r.sink.URL("/slow"))
		s := r.Source("upstream")
		first := r.begin(delivery{Path: s.Path, Key: key("slow"), Sign: bearer(s)})
		r.sink.WaitOn("/slow", 1)
		r.timer(start.Add(20 * time.Second))
		r.Advance(20*time.Second - 1)
		select {
		case a := <-first:
			t.Fatalf("answered %d before the endpoint and before the deadline", a.Status)
		default:
		}
		r.Advance(1)
		r.want(r.await(first), 504)
		again := r.begin(delivery{Path: s.Path, Key: key("slow"), Sign: bearer(s)})
		close(open)
		a := r.want(r.await(again), 200)
		r.WaitDelivery(a.event(t), ep, godwit.DeliveryAccepted)
		if n := len(r.sink.Requests("/slow")); n != 1 {
			t.Errorf("%d requests: the one under way was enough", n)
		}
	})
}

// TestWaitOutlastsTheTimeForReading: the server's deadline for reading a request does not end the wait for the endpoints.
func TestWaitOutlastsTheTimeForReading(t *testing.T) {
	r := &rig{Server: apptest.Start(t, apptest.Options{}), t: t, sink: apptest.NewSink(t)}
	r.Endpoint(r.sink.URL("/slow"))
	s := r.Source("upstream")
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	apptest.DoubleTimeout(t, func(timeout time.Duration) error {
		limited := apptest.Options{Data: r.Config.Data, Timeouts: app.Timeouts{Read: timeout, Write: timeout}}
		r := &rig{Server: apptest.Start(t, limited), t: t, sink: r.sink}
		defer r.Stop()
		arrived, open := make(chan struct{}, 1), make(chan struct{})
		answer := sync.OnceFunc(func() { close(open) })
		defer answer()
		r.sink.ReplyFunc("/slow", func(*apptest.Request) apptest.Reply {
			select {
			case arrived <- struct{}{}:
			default: // a retry of an earlier event
			}
			return apptest.Status(200).Until(open)
		})
		waits := r.begin(delivery{Path: s.Path, Key: key(timeout.String()), Sign: bearer(s)})
		select {
		case a := <-waits:
			return fmt.Errorf("answered %d before the endpoint had the event: %v", a.Status, a.Err)
		case <-arrived:
		}
		<-time.After(3 * timeout)
		answer()
		if a := r.await(waits); a.Err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("answered %d: %v", a.Status, a.Err)
		}
		return nil
	})
}

// TestRepeatGoesToTheRest: an endpoint that has accepted is not asked again, whatever the other endpoint does.
func TestRepeatGoesToTheRest(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.sink.Script("/b", apptest.Status(503), apptest.Status(422), apptest.Status(422), apptest.Status(200))
		r.sink.Script("/c", apptest.Status(503), apptest.Status(503), apptest.Status(200))
		for _, path := range []string{"/a", "/b", "/c"} {
			r.Endpoint(r.sink.URL(path), apptest.Fields{"policy": apptest.Fields{"circuit_after": 0}})
		}
		s := r.Source("upstream")
		send := func(want int) answer {
			t.Helper()
			return r.want(r.send(delivery{Path: s.Path, Key: key("three"), Sign: bearer(s)}), want)
		}
		counts := func(a, b, c int) {
			t.Helper()
			for path, want := range map[string]int{"/a": a, "/b": b, "/c": c} {
				if got := len(r.sink.Requests(path)); got != want {
					t.Errorf("%s got %d requests, want %d", path, got, want)
				}
			}
		}
		send(502)
		counts(1, 1, 1)
		send(502) // b refuses for good, c still fails
		counts(1, 2, 2)
		send(422) // c accepts; b's refusal is not tried again for c's sake
		counts(1, 2, 3)
		send(422) // only b is left, and the upstream was told so: it asks again all the same
		counts(1, 3, 3)
		send(200)
		counts(1, 4, 3)
		a := send(200)
		counts(1, 4, 3)
		if a.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("a repeat is not marked")
		}
		for _, path := range []string{"/a", "/b", "/c"} {
			for _, got := range r.sink.Requests(path) {
				if got.Key() != quoted(key("three")) {
					t.Errorf("%s got the key %s", path, got.Key())
				}
			}
		}
	})
}

// TestNobodyToPassTo: without an endpoint the event is not accepted. Once there is an endpoint, a repeat reaches it.
func TestNobodyToPassTo(t *testing.T) {
	trace.Covers(t, "EDS-INT-11")
	r := newRig(t, apptest.Options{})
	s := r.Source("upstream")
	d := delivery{Path: s.Path, Key: key("nobody"), Sign: bearer(s)}
	if a := r.want(r.send(d), 502); a.Code != "no-downstream" {
		t.Errorf("code %q", a.Code)
	}
	ep := r.Endpoint(r.sink.URL("/new"), apptest.Fields{"patterns": []string{"other"}})
	r.want(r.send(d), 502)
	r.Must(apptest.Call{Method: "PATCH", Path: "/v1/endpoints/" + ep.ID.String(), Body: apptest.Fields{"patterns": []string{"relayed.*"}}}, nil)
	r.want(r.send(d), 200)
	r.EndpointCall(ep, "POST", "/pause", nil)
	if a := r.want(r.send(delivery{Path: s.Path, Key: key("held"), Sign: bearer(s)}), 502); a.Code != "downstream-failed" {
		t.Errorf("a paused endpoint gives %q", a.Code)
	}
}

// TestRetryAfterStaysOnItsHop: an endpoint's Retry-After is honoured toward that endpoint and not passed to the upstream.
func TestRetryAfterStaysOnItsHop(t *testing.T) {
	trace.Covers(t, "EDS-INT-4")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/to", apptest.RetryAfter(503, "5"), apptest.Status(200))
	ep := r.Endpoint(r.sink.URL("/to"))
	s := r.storing("upstream")
	a := r.want(r.send(delivery{Path: s.Path, Key: key("one"), Sign: bearer(s)}), 202)
	attempts := r.WaitAttempts(a.event(t), ep, 1)
	if wait := attempts[0].NextAt.Sub(attempts[0].StartedAt); wait < 5*time.Second {
		t.Errorf("tried again after %s, 5 s were asked for", wait)
	}
	r.Must(apptest.Call{Method: "POST", Path: "/v1/sources/" + s.ID + "/pause"}, nil)
	own := r.want(r.send(delivery{Path: s.Path, Key: key("two"), Sign: bearer(s)}), 503)
	if own.Header.Get("Retry-After") == "" {
		t.Error("a paused source does not tell when to come again")
	}
}

// full is a store that can be told to report a full disk.
type full struct {
	engine.Store
	now chan bool
}

func (s *full) Commit(ctx context.Context, b *store.Batch) (*store.Committed, error) {
	full := <-s.now
	s.now <- full
	if full && len(b.Accepts) > 0 {
		return nil, fmt.Errorf("write: %w: no space left on device", store.ErrUnavailable)
	}
	return s.Store.Commit(ctx, b)
}

// TestUnstoredIsUnacknowledged: a full disk is no success.
func TestUnstoredIsUnacknowledged(t *testing.T) {
	trace.Covers(t, "EDS-INT-6")
	disk := &full{now: make(chan bool, 1)}
	disk.now <- false
	r := newRig(t, apptest.Options{Tune: func(c *engine.Config) { disk.Store, c.Store = c.Store, disk }})
	s := r.storing("upstream")
	<-disk.now
	disk.now <- true
	d := delivery{Path: s.Path, Key: key("one"), Sign: bearer(s)}
	a := r.want(r.send(d), 503)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After of our own")
	}
	<-disk.now
	disk.now <- false
	r.want(r.send(d), 202)
}

// TestUpstreamsThatLeave: an upstream that disconnects changes nothing, because the event is stored. Two concurrent requests
// wait for the same outcome.
func TestUpstreamsThatLeave(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		open := make(chan struct{})
		r.sink.Script("/slow", apptest.Status(200).Until(open))
		ep := r.Endpoint(r.sink.URL("/slow"))
		s := r.Source("upstream")
		d := delivery{Path: s.Path, Key: key("slow"), Sign: bearer(s)}
		ctx, leave := context.WithCancel(context.Background())
		gone := d
		gone.Context = ctx
		first := r.begin(gone)
		r.sink.WaitOn("/slow", 1)
		leave()
		if a := r.await(first); a.Err == nil {
			t.Fatalf("answered %d", a.Status)
		}
		second, third := r.begin(d), r.begin(d)
		close(open)
		a, b := r.await(second), r.await(third)
		for _, one := range []*answer{&a, &b} {
			for one.Status == 503 { // looked up at the same moment: it is told to retry
				*one = r.send(d)
			}
			r.want(*one, 200)
		}
		r.WaitDelivery(a.event(t), ep, godwit.DeliveryAccepted)
		if a.ID != b.ID || len(r.sink.Requests("/slow")) != 1 {
			t.Errorf("%s and %s, %d requests", a.ID, b.ID, len(r.sink.Requests("/slow")))
		}
	})
}
