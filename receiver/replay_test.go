package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

func changeInput(pattern, replacement string) func(*http.Request) {
	re := regexp.MustCompile(pattern)
	return func(req *http.Request) {
		before := req.Header.Get("Signature-Input")
		after := re.ReplaceAllString(before, replacement)
		if before == after {
			panic("nothing changed in " + before)
		}
		req.Header.Set("Signature-Input", after)
	}
}

// TestFreshness: 300 seconds either way are good, 301 are not.
func TestFreshness(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-4", "CCW-RCV-2", "CCW-RCV-17", "OJS-SIG-7", "CCW-SIG-11")
	for _, m := range mechanisms() {
		if !m.fresh {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			for i, c := range []struct {
				late   time.Duration
				status int
			}{{300 * time.Second, 2}, {301 * time.Second, 4}, {-300 * time.Second, 2}, {-301 * time.Second, 4}} {
				e := event{id: id(string(rune('a' + i)))}.withDefaults()
				req := g.request(e)
				m.sign(req, e, g.clock.Now().Add(-c.late), true)
				if a := g.do(req); a.Status/100 != c.status {
					t.Errorf("%s late: %d %s", c.late, a.Status, a.Body)
				}
			}
			g.wantCalls(2)
		})
	}
}

func TestTolerance(t *testing.T) {
	for _, c := range []struct {
		tolerance time.Duration
		late      time.Duration
		status    int
	}{
		{10 * time.Second, 10 * time.Second, 204}, {10 * time.Second, 11 * time.Second, 401},
		{receiver.NoTolerance, 0, 204}, {receiver.NoTolerance, time.Second, 401}, {receiver.NoTolerance, -time.Second, 401},
		{time.Hour, 59 * time.Minute, 204},
	} {
		for _, m := range mechanisms() {
			if m.name != "eds" && m.name != "standard-webhooks" {
				continue
			}
			g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.Freshness.Tolerance = c.tolerance })
			e := event{id: id("x")}.withDefaults()
			req := g.request(e)
			m.sign(req, e, g.clock.Now().Add(-c.late), true)
			if a := g.do(req); a.Status != c.status {
				t.Errorf("%s: tolerance %s, %s late: %d", m.name, c.tolerance, c.late, a.Status)
			}
		}
	}
}

// TestReplays: a captured request, sent again as it was, within and after the freshness window, and within and after the
// deduplication window: its effect happens once.
func TestReplays(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-2", "EDS-SEC-RPL-1", "EDS-SEC-RPL-4", "CCW-RCV-17")
	for _, m := range mechanisms() {
		if !m.fresh {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.Dedup.Window = 8 * 24 * time.Hour })
			captured := g.make(m, event{id: id("x")}, true)
			if a := g.do(again(captured)); a.Status/100 != 2 {
				t.Fatal(a)
			}
			for _, wait := range []time.Duration{0, time.Minute, 4 * time.Minute, time.Minute, 24 * time.Hour, 9 * 24 * time.Hour} {
				g.clock.Advance(wait)
				a := g.do(again(captured))
				if old := g.clock.Now().Sub(start) > 300*time.Second; old && a.Status != 401 {
					t.Errorf("after %s: %d", g.clock.Now().Sub(start), a.Status)
				}
			}
			g.wantCalls(1)
		})
	}
}

// TestNonceIsGoodOnce, while an honest retry, which has another, is not refused.
func TestNonceIsGoodOnce(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-4")
	g := newRig(t)
	captured := g.eds(event{id: id("x")})
	g.want(g.do(again(captured)), 204)
	g.want(g.do(again(captured)), 401)
	if a := g.want(g.do(g.eds(event{id: id("x")})), 204); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("the retry was not taken for a repeat")
	}
	g.wantCalls(1)
}

// TestRetryTwoHoursLater: signed anew, it is fresh.
func TestRetryTwoHoursLater(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-4", "EDS-DUP-9")
	for _, m := range mechanisms() {
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			effects := 0
			g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
				if g.calls.Load() == 1 {
					return receiver.RetryAfter{After: 2 * time.Hour}, nil
				}
				effects++
				return nil, nil
			}
			a := g.want(g.do(g.make(m, event{id: id("x")}, true)), 503)
			if a.Header.Get("Retry-After") != "7200" {
				t.Errorf("Retry-After: %q", a.Header.Get("Retry-After"))
			}
			g.clock.Advance(2 * time.Hour)
			if a := g.do(g.make(m, event{id: id("x")}, true)); a.Status/100 != 2 {
				t.Fatal(a)
			}
			if a := g.do(g.make(m, event{id: id("x")}, true)); a.Status/100 != 2 {
				t.Fatal(a)
			}
			if effects != 1 {
				t.Errorf("%d effects", effects)
			}
		})
	}
}

func TestReplayNeedsADefence(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-2", "EDS-SEC-RPL-6", "EDS-SEC-RPL-5")
	off := receiver.Options{Handler: accept, Dedup: receiver.Dedup{Off: true}}
	for _, c := range []struct {
		name      string
		scheme    receiver.Scheme
		freshness receiver.Freshness
		ok        bool
	}{
		{"eds", edsScheme, receiver.Freshness{}, true},
		{"eds without freshness", edsScheme, receiver.Freshness{Off: true}, false},
		{"a scheme without a time", receiver.GitHub{Secrets: []string{"x"}}, receiver.Freshness{}, false},
		{"ojs is always deduplicated", receiver.OJS{Secrets: []string{"x"}}, receiver.Freshness{}, false},
		{"cybercube is always deduplicated", receiver.Cybercube{Secrets: []string{"x"}}, receiver.Freshness{}, false},
	} {
		o := off
		o.Scheme, o.Freshness = c.scheme, c.freshness
		if _, err := receiver.New(o); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	var warnings []string
	g := newRig(t, func(o *receiver.Options) {
		o.Freshness.Off = true
		o.Hooks.OnWarning = func(message string) { warnings = append(warnings, message) }
	})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "only defence") || !strings.Contains(g.log.String(), "only defence") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestDedupOnly: what is sent again after the window is processed again.
func TestDedupOnly(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-3")
	g := newRig(t, func(o *receiver.Options) { o.Freshness.Off = true; o.Dedup.Window = 24 * time.Hour })
	captured := g.eds(event{id: id("x")})
	g.want(g.do(again(captured)), 204)
	g.clock.Advance(24*time.Hour - time.Second)
	g.want(g.do(again(captured)), 204)
	g.wantCalls(1)
	g.clock.Advance(time.Second)
	g.want(g.do(again(captured)), 204)
	g.wantCalls(2)
}

// TestFreshnessOnly: without deduplication an exact replay is refused, and a repeat that is signed anew is processed again.
func TestFreshnessOnly(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-6", "EDS-DUP-1")
	for _, m := range mechanisms() {
		if !m.fresh || m.name == "ojs" || m.name == "cybercube" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.Dedup.Off = true })
			captured := g.make(m, event{id: id("x")}, true)
			if a := g.do(again(captured)); a.Status/100 != 2 {
				t.Fatal(a)
			}
			g.want(g.do(again(captured)), 401)
			g.wantCalls(1)
			g.clock.Advance(time.Second)
			if a := g.do(g.make(m, event{id: id("x")}, true)); a.Status/100 != 2 {
				t.Fatal(a)
			}
			g.wantCalls(2)
		})
	}
}

// failing is a store that is down.
type failing struct{ receiver.Store }

var errDown = errors.New("store is down")

func (failing) Reserve(context.Context, receiver.Reserve) (receiver.Reservation, error) {
	return receiver.Reservation{}, errDown
}
func (failing) Remember(context.Context, receiver.Digest, time.Time, time.Time) (bool, error) {
	return false, errDown
}

func TestStoreIsDown(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-3")
	for _, m := range mechanisms() {
		t.Run(m.name, func(t *testing.T) {
			var failures []string
			g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) {
				o.Store = failing{o.Store}
				o.Hooks.OnError = func(_ error, where string) { failures = append(failures, where) }
			})
			a := g.want(g.do(g.make(m, event{id: id("x")}, true)), 503)
			if a.Header.Get("Retry-After") != "1" || len(failures) != 1 || strings.Contains(a.Body, "down") {
				t.Errorf("%v %s %q", a.Header, a.Body, failures)
			}
			g.wantCalls(0)
		})
	}
}

func TestEarlyData(t *testing.T) {
	trace.Covers(t, "EDS-SEC-RPL-8")
	early := func(req *http.Request) *http.Request { req.Header.Set("Early-Data", "1"); return req }
	g := newRig(t, func(o *receiver.Options) { o.Freshness.Off = true })
	g.wantProblem(g.do(early(g.eds(event{id: id("x")}))), 425, receiver.CodeTooEarly)
	g.wantCalls(0)
	g.want(g.do(g.eds(event{id: id("x")})), 204)

	known := newRig(t, func(o *receiver.Options) {
		o.Freshness.Off = true
		o.EarlyData = func(req *http.Request) bool { return req.Header.Get("X-Early") != "" }
	})
	req := known.eds(event{id: id("x")})
	req.Header.Set("X-Early", "yes")
	known.want(known.do(req), 425)
	known.wantCalls(0)

	fresh := newRig(t)
	captured := early(fresh.eds(event{id: id("x")}))
	fresh.want(fresh.do(again(captured)), 204)
	fresh.want(fresh.do(again(captured)), 401)
	fresh.wantCalls(1)
}
