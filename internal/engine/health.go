package engine

import (
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// sunset is when the endpoint said it ends: by this answer, or by an earlier one.
func (l *lane) sunset(v *godwit.Verdict) time.Time {
	if !v.SunsetAt.IsZero() {
		return v.SunsetAt
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health.SunsetAt
}

// heal takes an outcome into the endpoint's health: counters, hold, circuit, and whether it is to be disabled.
func (e *Engine) heal(l *lane, t *target, j *judgement, decision *godwit.Decision, now time.Time) {
	a := j.result.Attempt
	v := &a.Verdict
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &l.health
	h.UpdatedAt = now
	if !v.SunsetAt.IsZero() {
		h.SunsetAt = v.SunsetAt
	}
	ms := float64(a.Duration) / float64(time.Millisecond)
	if h.AvgDurationMS == 0 {
		h.AvgDurationMS = ms
	} else {
		h.AvgDurationMS += (ms - h.AvgDurationMS) / 20
	}
	if t.policy.DegradedAbove > 0 {
		e.watch(l, t, j, now)
	}
	if v.Outcome == godwit.Accepted {
		h.Accepted++
		h.LastAcceptedAt, h.ConsecutiveFailures, h.ConsecutiveTerminal, h.Streak = now, 0, 0, 0
		h.CircuitOpenAt, h.ProbeAt = time.Time{}, time.Time{}
		l.strikes = godwit.EventID{}
		return
	}
	h.LastFailureAt, h.LastReason = now, v.Reason
	h.Streak++
	if v.Outcome == godwit.Terminal {
		h.Terminal++
		if v.Class == godwit.ClassApplication {
			h.CircuitOpenAt, h.ProbeAt = time.Time{}, time.Time{} // it refuses, but it answers: there is nothing to probe for
		}
		if decision.Status == godwit.DeliveryTerminal && l.strikes != a.EventID {
			l.strikes = a.EventID
			h.ConsecutiveTerminal++
		}
	} else {
		h.Transient++
		// What was on the wire when the circuit opened says nothing new. Else many requests that fail together would put
		// the first probe off as if as many probes had failed.
		if h.CircuitOpenAt.IsZero() || !a.StartedAt.Before(h.CircuitOpenAt) {
			h.ConsecutiveFailures++
			l.trip(t, now)
		}
	}
	e.disableIfUnfit(l, t, j, now)
	if v.RetryAfter > 0 && t.policy.HoldScope == godwit.HoldEndpoint {
		hold := now.Add(e.cfg.TimeScale.Real(min(v.RetryAfter, t.policy.MaxElapsed)))
		if hold.After(h.HoldUntil) {
			h.HoldUntil = hold
		}
	}
	if v.Review || v.MoveTo != "" {
		j.notices = append(j.notices, e.notice(t, a, now))
	}
}

// disableIfUnfit disables the endpoint when it said that it is gone, when too many events in a row ended terminal, until a
// person looks at it (EDS-SEC-DOS-3), or when too many attempts in a row failed, until it has rested (CCW-HLT-3).
func (e *Engine) disableIfUnfit(l *lane, t *target, j *judgement, now time.Time) {
	h, a := &l.health, j.result.Attempt
	change := store.EndpointChange{EndpointID: l.id}
	switch {
	case a.Verdict.DisableEndpoint:
		change.Disable = string(godwit.ReasonGone)
	case a.Verdict.Outcome == godwit.Terminal && t.policy.DisableAfter > 0 && h.ConsecutiveTerminal >= t.policy.DisableAfter:
		change.Disable = fmt.Sprintf("%d consecutive terminal outcomes, the last: %s", h.ConsecutiveTerminal, a.Verdict.Reason)
	case t.policy.DisableAfterFailures > 0 && h.Streak >= t.policy.DisableAfterFailures:
		change.Disable = fmt.Sprintf("%d consecutive failures, the last: %s", h.Streak, failureText(a.Status, &a.Verdict))
		if t.policy.ReenableAfter > 0 {
			change.ReenableAt = now.Add(e.cfg.TimeScale.Real(t.policy.ReenableAfter))
		}
	default:
		return
	}
	if l.target.Load().endpoint.Status != godwit.EndpointActive {
		return
	}
	j.change = &change
	l.disable(&change)
	j.notices = append(j.notices, aboutAttempt(a, godwit.NoticeEndpointDisabled, change.Disable, now))
	e.log.Warn("endpoint disabled", "endpoint", l.id.String(), "tenant", a.TenantID.String(), "reason", change.Disable)
}

// disable changes the status in memory ahead of the commit, so that nothing more is sent meanwhile.
func (l *lane) disable(c *store.EndpointChange) {
	for {
		old := l.target.Load()
		next := *old
		next.endpoint.Status, next.endpoint.StatusReason, next.endpoint.ReenableAt = godwit.EndpointDisabled, c.Disable, c.ReenableAt
		if l.target.CompareAndSwap(old, &next) {
			break
		}
	}
	l.shed()
}

// failureText says in a few words why an attempt failed. Nothing that a receiver wrote is in it.
func failureText(status int, v *godwit.Verdict) string {
	if v.Class == godwit.ClassApplication && status != 0 {
		return fmt.Sprintf("HTTP %d", status)
	}
	return string(v.Reason)
}

func aboutAttempt(a *godwit.Attempt, kind godwit.NoticeKind, detail string, now time.Time) godwit.Notice {
	return godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: a.TenantID, EndpointID: a.EndpointID, DeliveryID: a.DeliveryID,
		EventID: a.EventID, Kind: kind, Detail: detail, CreatedAt: now,
	}
}

// trip opens the circuit after too many failures in a row; while open, one delivery at a time probes the endpoint, each
// probe twice as long after the last, up to ten intervals.
func (l *lane) trip(t *target, now time.Time) {
	h := &l.health
	over := h.ConsecutiveFailures - t.policy.CircuitAfter
	if t.policy.CircuitAfter == 0 || over < 0 {
		return
	}
	pause := min(t.policy.ProbeInterval<<min(over, 4), 10*t.policy.ProbeInterval)
	h.ProbeAt = now.Add(l.engine.cfg.TimeScale.Real(pause))
	if h.CircuitOpenAt.IsZero() {
		h.CircuitOpenAt = now
		l.engine.log.Warn("circuit opened", "endpoint", l.id.String(), "failures", h.ConsecutiveFailures)
		l.shed()
	}
}

func (e *Engine) notice(t *target, a *godwit.Attempt, now time.Time) godwit.Notice {
	n := aboutAttempt(a, "", "", now)
	n.Link = a.Trace.Link
	switch {
	case a.Verdict.MoveTo != "":
		n.Kind, n.Detail = godwit.NoticeEndpointMoved, fmt.Sprintf("308: moved from %s to %s", t.endpoint.URL, a.Verdict.MoveTo)
	case a.Verdict.Reason == godwit.ReasonLegal:
		n.Kind, n.Detail = godwit.NoticeLegalReview, "the receiver refuses for legal reasons (451)"
	case a.Verdict.Reason == godwit.ReasonMultiStatus:
		n.Kind, n.Detail = godwit.NoticeMultiStatus, "the receiver answered 207 without an agreement on what it means"
	default:
		n.Kind, n.Detail = godwit.NoticeBlockedAddress, a.Trace.Detail
	}
	return n
}

// Health is the live state of an endpoint this node delivers to.
func (e *Engine) Health(id godwit.EndpointID) (godwit.Health, bool) {
	l := e.index.lane(id)
	if l == nil {
		return godwit.Health{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.health.DegradedAt.IsZero() {
		l.recoverIfDue(e.clock.Now())
	}
	return l.health, true
}
