package dispatch

import (
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A condition is an endpoint's health and the rules by which outcomes change it.
type condition struct {
	godwit.Health
	lastTerminal godwit.EventID // last event that ended terminal: one event counts once
}

// A moment is the time of an outcome.
type moment struct {
	now    time.Time
	scale  godwit.TimeScale
	minute time.Duration
}

// An effect is a change that an outcome causes besides the counters.
type effect struct {
	circuitOpened bool
	degraded      float64               // the failed share, if the endpoint just became degraded; otherwise 0
	disable       *store.EndpointChange // nil: the endpoint is not disabled
}

// take adds the outcome of an attempt to the endpoint's health: counters, hold, circuit, and whether to disable it.
func (c *condition) take(p *godwit.Policy, a *godwit.Attempt, ended godwit.DeliveryStatus, at moment) (e effect) {
	v := &a.Verdict
	c.UpdatedAt = at.now
	if !v.SunsetAt.IsZero() {
		c.SunsetAt = v.SunsetAt
	}
	ms := float64(a.Duration) / float64(time.Millisecond)
	if c.AvgDurationMS == 0 {
		c.AvgDurationMS = ms
	} else {
		c.AvgDurationMS += (ms - c.AvgDurationMS) / 20
	}
	if p.DegradedAbove > 0 || len(p.Windows) > 0 { // another node counts the attempts by it; see recall
		c.Recent.Add(at.now, at.minute, v.Outcome != godwit.Accepted)
	}
	if p.DegradedAbove > 0 {
		e.degraded = c.watch(p, at)
	}
	if v.Outcome == godwit.Accepted {
		c.Accepted++
		c.LastAcceptedAt, c.ConsecutiveFailures, c.ConsecutiveTerminal, c.Streak = at.now, 0, 0, 0
		c.CircuitOpenAt, c.ProbeAt = time.Time{}, time.Time{}
		c.lastTerminal = godwit.EventID{}
		return e
	}
	c.LastFailureAt, c.LastReason = at.now, v.Reason
	c.Streak++
	if v.Outcome == godwit.Terminal {
		c.takeTerminal(a, ended)
	} else {
		e.circuitOpened = c.takeTransient(p, a, at)
	}
	if v.RetryAfter > 0 && p.HoldScope == godwit.HoldEndpoint {
		if hold := at.now.Add(at.scale.Real(min(v.RetryAfter, p.MaxElapsed))); hold.After(c.HoldUntil) {
			c.HoldUntil = hold
		}
	}
	e.disable = c.unfit(p, a, at)
	return e
}

func (c *condition) takeTerminal(a *godwit.Attempt, ended godwit.DeliveryStatus) {
	c.Terminal++
	if a.Verdict.Class == godwit.ClassApplication {
		c.CircuitOpenAt, c.ProbeAt = time.Time{}, time.Time{} // the endpoint refuses but answers, so its circuit closes
	}
	if ended == godwit.DeliveryTerminal && c.lastTerminal != a.EventID {
		c.lastTerminal = a.EventID
		c.ConsecutiveTerminal++
	}
}

// takeTransient reports whether the circuit opened. Failures of requests that were in flight when it opened do not count: many
// of them together would delay the next probe as if as many probes had failed.
func (c *condition) takeTransient(p *godwit.Policy, a *godwit.Attempt, at moment) (opened bool) {
	c.Transient++
	if !c.CircuitOpenAt.IsZero() && a.StartedAt.Before(c.CircuitOpenAt) {
		return false
	}
	c.ConsecutiveFailures++
	return c.trip(p, at)
}

// trip opens the circuit after too many failures in a row. While it is open, one delivery at a time probes the endpoint. The
// interval between probes doubles, up to ten times the first.
func (c *condition) trip(p *godwit.Policy, at moment) (opened bool) {
	over := c.ConsecutiveFailures - p.CircuitAfter
	if p.CircuitAfter == 0 || over < 0 {
		return false
	}
	pause := min(p.ProbeInterval<<min(over, 4), 10*p.ProbeInterval)
	c.ProbeAt = at.now.Add(at.scale.Real(pause))
	if !c.CircuitOpenAt.IsZero() {
		return false
	}
	c.CircuitOpenAt = at.now
	return true
}

// watch returns the failed share of the endpoint's last hour when that first exceeds the limit (CCW-HLT-2), else 0. A degraded
// endpoint still gets deliveries.
func (c *condition) watch(p *godwit.Policy, at moment) float64 {
	share := c.Recent.FailedShare(at.now, at.minute)
	switch degraded := share > p.DegradedAbove; {
	case degraded && c.DegradedAt.IsZero():
		c.DegradedAt = at.now
		return share
	case !degraded:
		c.DegradedAt = time.Time{}
	}
	return 0
}

// unfit returns the change that disables the endpoint, or nil. It disables an endpoint that said it is gone, and one with too
// many terminal events in a row until an operator enables it (EDS-SEC-DOS-3). It disables one with too many failed attempts in
// a row for a limited time (CCW-HLT-3).
func (c *condition) unfit(p *godwit.Policy, a *godwit.Attempt, at moment) *store.EndpointChange {
	change := &store.EndpointChange{EndpointID: c.EndpointID}
	switch {
	case a.Verdict.DisableEndpoint:
		change.Disable = string(godwit.ReasonGone)
	case a.Verdict.Outcome == godwit.Terminal && p.DisableAfter > 0 && c.ConsecutiveTerminal >= p.DisableAfter:
		change.Disable = fmt.Sprintf("%d consecutive terminal outcomes, the last: %s", c.ConsecutiveTerminal, a.Verdict.Reason)
	case p.DisableAfterFailures > 0 && c.Streak >= p.DisableAfterFailures:
		change.Disable = fmt.Sprintf("%d consecutive failures, the last: %s", c.Streak, a.FailureText())
		if p.ReenableAfter > 0 {
			change.ReenableAt = at.now.Add(at.scale.Real(p.ReenableAfter))
		}
	default:
		return nil
	}
	return change
}

// forgive clears the failure counts of an endpoint that an operator enabled, as store.ResetHealth does: results of earlier
// requests may have arrived since.
func (c *condition) forgive() {
	c.ConsecutiveFailures, c.ConsecutiveTerminal, c.Streak = 0, 0, 0
	c.HoldUntil, c.CircuitOpenAt, c.ProbeAt = time.Time{}, time.Time{}, time.Time{}
	c.lastTerminal = godwit.EventID{}
}

// heal adds the outcome of an attempt to the endpoint's health, and adds notices for operators to the record.
func (l *Lane) heal(t *attempt.Target, r *commit.Record, decision *godwit.Decision, now time.Time) {
	a, log := r.Result.Attempt, l.d.cfg.Log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d.wall.note(now)
	e := l.condition.take(t.Policy, a, decision.Status, moment{now, l.d.cfg.TimeScale, l.d.times.minute()})
	if e.degraded > 0 {
		why := fmt.Sprintf("%.0f%% of the attempts of the last hour failed, the last: %s", 100*e.degraded, a.FailureText())
		r.Notices = append(r.Notices, noticeOf(a, godwit.NoticeEndpointDegraded, why, now))
		log.Warn("endpoint degraded", "endpoint", l.id.String(), "tenant", a.TenantID.String(), "failed_share", e.degraded)
	}
	if e.circuitOpened {
		log.Warn("circuit opened", "endpoint", l.id.String(), "failures", l.condition.ConsecutiveFailures)
		l.backlog.shed()
	}
	if e.disable != nil && l.active() {
		r.Change = e.disable
		l.disable(e.disable)
		r.Notices = append(r.Notices, noticeOf(a, godwit.NoticeEndpointDisabled, e.disable.Disable, now))
		log.Warn("endpoint disabled", "endpoint", l.id.String(), "tenant", a.TenantID.String(), "reason", e.disable.Disable)
	}
	if a.Verdict.Outcome != godwit.Accepted && (a.Verdict.Review || a.Verdict.MoveTo != "") {
		r.Notices = append(r.Notices, reviewNotice(t, a, now))
	}
}

func noticeOf(a *godwit.Attempt, kind godwit.NoticeKind, detail string, now time.Time) godwit.Notice {
	return godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: a.TenantID, EndpointID: a.EndpointID, DeliveryID: a.DeliveryID,
		EventID: a.EventID, Kind: kind, Detail: detail, CreatedAt: now,
	}
}

// reviewNotice asks an operator to look at an answer.
func reviewNotice(t *attempt.Target, a *godwit.Attempt, now time.Time) godwit.Notice {
	n := noticeOf(a, godwit.NoticeBlockedAddress, a.Trace.Detail, now)
	n.Link = a.Trace.Link
	switch {
	case a.Verdict.MoveTo != "":
		n.Kind, n.Detail = godwit.NoticeEndpointMoved, fmt.Sprintf("308: moved from %s to %s", t.Endpoint.URL, a.Verdict.MoveTo)
	case a.Verdict.Reason == godwit.ReasonLegal:
		n.Kind, n.Detail = godwit.NoticeLegalReview, "the receiver refuses for legal reasons (451)"
	case a.Verdict.Reason == godwit.ReasonMultiStatus:
		n.Kind, n.Detail = godwit.NoticeMultiStatus, "the receiver answered 207 without an agreement on what it means"
	}
	return n
}
