package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

var healthStart = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func outcomeAt(at time.Time, outcome godwit.Outcome) *godwit.Attempt {
	return &godwit.Attempt{
		EventID: godwit.NewEventID(at), StartedAt: at, Duration: 10 * time.Millisecond, Status: 500,
		Verdict: godwit.Verdict{Outcome: outcome, Class: godwit.ClassApplication, Reason: "server-error"},
	}
}

func take(c *condition, p *godwit.Policy, a *godwit.Attempt, now time.Time) effect {
	ended := godwit.DeliveryPending
	if a.Verdict.Outcome == godwit.Terminal {
		ended = godwit.DeliveryTerminal
	}
	return c.take(p, a, ended, moment{now: now, scale: 1, minute: time.Minute})
}

// The circuit opens after a number of failures in a row. Requests in flight at that time do not delay the next probe.
func TestCircuit(t *testing.T) {
	p := &godwit.Policy{CircuitAfter: 3, ProbeInterval: time.Minute}
	var c condition
	now := healthStart
	for i := range 3 {
		now = now.Add(time.Second)
		if e := take(&c, p, outcomeAt(now, godwit.Transient), now); e.circuitOpened != (i == 2) {
			t.Fatalf("failure %d: %+v", i+1, e)
		}
	}
	first := now.Add(time.Minute)
	if !c.ProbeAt.Equal(first) {
		t.Errorf("next try at %s, want %s", c.ProbeAt, first)
	}
	take(&c, p, outcomeAt(now.Add(-time.Second), godwit.Transient), now.Add(time.Second))
	if !c.ProbeAt.Equal(first) || c.ConsecutiveFailures != 3 {
		t.Error("a request that was on the wire when the circuit opened counts")
	}
	take(&c, p, outcomeAt(first, godwit.Transient), first)
	if !c.ProbeAt.Equal(first.Add(2 * time.Minute)) {
		t.Errorf("after a failed try the next is at %s", c.ProbeAt)
	}
	take(&c, p, outcomeAt(c.ProbeAt, godwit.Accepted), c.ProbeAt)
	if !c.CircuitOpenAt.IsZero() || !c.ProbeAt.IsZero() || c.ConsecutiveFailures != 0 {
		t.Errorf("a success leaves %+v", c.Health)
	}
}

// Each reason to disable an endpoint, with the time at which it is enabled again.
func TestUnfitEndpoints(t *testing.T) {
	p := &godwit.Policy{DisableAfter: 2, DisableAfterFailures: 3, ReenableAfter: time.Hour}
	for name, c := range map[string]struct {
		outcomes []godwit.Outcome
		gone     bool
		reason   string
		again    bool
	}{
		"gone":                       {[]godwit.Outcome{godwit.Terminal}, true, "gone", false},
		"terminal outcomes in a row": {[]godwit.Outcome{godwit.Terminal, godwit.Terminal}, false, "2 consecutive terminal outcomes", false},
		"failures in a row":          {[]godwit.Outcome{godwit.Transient, godwit.Transient, godwit.Transient}, false, "3 consecutive failures, the last: HTTP 500", true},
		"a success between":          {[]godwit.Outcome{godwit.Transient, godwit.Transient, godwit.Accepted, godwit.Transient}, false, "", false},
	} {
		var health condition
		var last effect
		now := healthStart
		for _, outcome := range c.outcomes {
			now = now.Add(time.Second)
			a := outcomeAt(now, outcome)
			a.Verdict.DisableEndpoint = c.gone
			last = take(&health, p, a, now)
		}
		switch {
		case c.reason == "":
			if last.disable != nil {
				t.Errorf("%s: disabled for %q", name, last.disable.Disable)
			}
		case last.disable == nil || !strings.Contains(last.disable.Disable, c.reason):
			t.Errorf("%s: %+v, want %q", name, last.disable, c.reason)
		case c.again != last.disable.ReenableAt.Equal(now.Add(time.Hour)):
			t.Errorf("%s: enabled again at %s", name, last.disable.ReenableAt)
		}
	}
}

// Retry-After holds the whole endpoint if its policy says so, at most as long as a delivery may take.
func TestHoldOfAnEndpoint(t *testing.T) {
	for _, scope := range []string{godwit.HoldEndpoint, godwit.HoldEvent} {
		var c condition
		a := outcomeAt(healthStart, godwit.Transient)
		a.Verdict.RetryAfter = 48 * time.Hour
		take(&c, &godwit.Policy{HoldScope: scope, MaxElapsed: 24 * time.Hour}, a, healthStart)
		want := time.Time{}
		if scope == godwit.HoldEndpoint {
			want = healthStart.Add(24 * time.Hour)
		}
		if !c.HoldUntil.Equal(want) {
			t.Errorf("%s: held until %s, want %s", scope, c.HoldUntil, want)
		}
	}
}
