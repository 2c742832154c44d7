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
	if v.Outcome == godwit.Accepted {
		h.Accepted++
		h.LastAcceptedAt, h.ConsecutiveFailures, h.ConsecutiveTerminal = now, 0, 0
		h.CircuitOpenAt, h.ProbeAt = time.Time{}, time.Time{}
		l.strikes = godwit.EventID{}
		return
	}
	h.LastFailureAt, h.LastReason = now, v.Reason
	if v.Outcome == godwit.Terminal {
		h.Terminal++
		if v.Class == godwit.ClassApplication {
			h.CircuitOpenAt, h.ProbeAt = time.Time{}, time.Time{} // it refuses, but it answers: there is nothing to probe for
		}
		e.strike(l, t, j, decision, now)
	} else {
		h.Transient++
		// What was on the wire when the circuit opened says nothing new. Else many requests that fail together would put
		// the first probe off as if as many probes had failed.
		if h.CircuitOpenAt.IsZero() || !a.StartedAt.Before(h.CircuitOpenAt) {
			h.ConsecutiveFailures++
			l.trip(t, now)
		}
	}
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

// strike counts terminal outcomes over distinct events; too many in a row disable the endpoint until a person looks at it
// (EDS-SEC-DOS-3). A 410 does so at once.
func (e *Engine) strike(l *lane, t *target, j *judgement, decision *godwit.Decision, now time.Time) {
	h, a := &l.health, j.result.Attempt
	if decision.Status == godwit.DeliveryTerminal && l.strikes != a.EventID {
		l.strikes = a.EventID
		h.ConsecutiveTerminal++
	}
	var why string
	switch {
	case a.Verdict.DisableEndpoint:
		why = string(godwit.ReasonGone)
	case t.policy.DisableAfter > 0 && h.ConsecutiveTerminal >= t.policy.DisableAfter:
		why = fmt.Sprintf("%d consecutive terminal outcomes, the last: %s", h.ConsecutiveTerminal, a.Verdict.Reason)
	default:
		return
	}
	if l.target.Load().endpoint.Status != godwit.EndpointActive {
		return
	}
	j.change = &store.EndpointChange{EndpointID: l.id, Disable: why}
	l.setStatus(godwit.EndpointDisabled, why)
	j.notices = append(j.notices, godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: a.TenantID, EndpointID: l.id, DeliveryID: a.DeliveryID,
		EventID: a.EventID, Kind: godwit.NoticeEndpointDisabled, Detail: why, CreatedAt: now,
	})
	e.log.Warn("endpoint disabled", "endpoint", l.id.String(), "tenant", a.TenantID.String(), "reason", why)
}

// setStatus changes the status in memory ahead of the commit, so that nothing more is sent meanwhile.
func (l *lane) setStatus(status godwit.EndpointStatus, why string) {
	for {
		old := l.target.Load()
		next := *old
		next.endpoint.Status, next.endpoint.StatusReason = status, why
		if l.target.CompareAndSwap(old, &next) {
			break
		}
	}
	l.shed()
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
	n := godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: a.TenantID, EndpointID: a.EndpointID, DeliveryID: a.DeliveryID,
		EventID: a.EventID, CreatedAt: now, Link: a.Trace.Link,
	}
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
	return l.health, true
}
