package engine

import (
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// watch counts an attempt into the endpoint's last hour, and tells when more of them fail than may (CCW-HLT-2). It goes on
// being sent to. Called with the lane locked.
func (e *Engine) watch(l *lane, t *target, j *judgement, now time.Time) {
	h, a := &l.health, j.result.Attempt
	h.Recent.Add(now, e.minute(), a.Verdict.Outcome != godwit.Accepted)
	share := h.Recent.FailedShare(now, e.minute())
	switch degraded := share > t.policy.DegradedAbove; {
	case degraded && h.DegradedAt.IsZero():
		h.DegradedAt = now
		why := fmt.Sprintf("%.0f%% of the attempts of the last hour failed, the last: %s", 100*share, failureText(a.Status, &a.Verdict))
		j.notices = append(j.notices, aboutAttempt(a, godwit.NoticeEndpointDegraded, why, now))
		e.log.Warn("endpoint degraded", "endpoint", l.id.String(), "tenant", a.TenantID.String(), "failed_share", share)
	case !degraded:
		h.DegradedAt = time.Time{}
	}
}

// attend sees to what changes about an endpoint with time alone. Called with the lane locked.
func (l *lane) attend(now time.Time) {
	if !l.health.DegradedAt.IsZero() {
		l.recoverIfDue(now)
	}
	if l.target.Load().endpoint.Status == godwit.EndpointDisabled {
		l.enableIfDue(now)
	}
}

// recoverIfDue ends the endpoint's being degraded when the failures have fallen out of the last hour.
func (l *lane) recoverIfDue(now time.Time) {
	h := &l.health
	limit := l.target.Load().policy.DegradedAbove
	minute := l.engine.minute()
	if limit == 0 || h.Recent.FailedShare(now, minute) <= limit {
		h.DegradedAt = time.Time{}
		return
	}
	l.wakeAt(time.Unix(0, (now.UnixNano()/int64(minute)+1)*int64(minute))) // when the oldest minute may leave
}

// enableIfDue sets an endpoint free again that was disabled for its failures and has rested (CCW-HLT-5). The node that owns
// it does so, also after a restart.
func (l *lane) enableIfDue(now time.Time) {
	t := l.target.Load()
	at := t.endpoint.ReenableAt
	switch {
	case at.IsZero() || l.enabling != nil:
		return
	case now.Before(at):
		l.wakeAt(at)
		return
	case l.engine.leases.epochOf(l.id.Shard(), now) == 0:
		return
	}
	l.enabling = &godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: t.endpoint.TenantID, EndpointID: l.id, Kind: godwit.NoticeEndpointEnabled,
		Detail: "it is tried again after its time of rest; it was disabled for: " + t.endpoint.StatusReason, CreatedAt: now,
	}
	l.engine.task(l.enable)
}

// enable stores that the endpoint is active, and reads it again: someone else may have changed it between. Repeating it is
// safe, and leaves one notice.
func (l *lane) enable() {
	e := l.engine
	for {
		err := e.commits.change(store.EndpointChange{EndpointID: l.id, Enable: true}, *l.enabling)
		if err == nil {
			break
		}
		e.log.Error("enable endpoint", "endpoint", l.id.String(), "error", err)
		if !wait(e.base, e.clock, storeRetry) {
			return
		}
	}
	err := e.Changed(e.base, l.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enabling = nil
	switch {
	case err != nil:
		e.log.Error("read enabled endpoint", "endpoint", l.id.String(), "error", err) // it is read again later
	case l.target.Load().endpoint.Status == godwit.EndpointActive:
		e.log.Info("endpoint enabled after its time of rest", "endpoint", l.id.String())
	default:
		l.pump() // it rests on: somebody has disabled it anew, or the clock was set back
	}
}
