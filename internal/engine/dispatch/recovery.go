package dispatch

import (
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// attend changes what changes about an endpoint with time alone. Called with the lane locked.
func (l *Lane) attend(now time.Time) {
	l.recoverIfDue(now)
	if l.Target().Endpoint.Status == godwit.EndpointDisabled {
		l.enableIfDue(now)
	}
}

// recoverIfDue ends the endpoint's being degraded when the failures have fallen out of the last hour.
func (l *Lane) recoverIfDue(now time.Time) {
	c := &l.condition
	if c.DegradedAt.IsZero() {
		return
	}
	limit, minute := l.Target().Policy.DegradedAbove, l.d.times.minute()
	if limit == 0 || c.Recent.FailedShare(now, minute) <= limit {
		c.DegradedAt = time.Time{}
		return
	}
	l.wakeAt(time.Unix(0, (now.UnixNano()/int64(minute)+1)*int64(minute))) // when the oldest minute may leave
}

// enableIfDue enables an endpoint that was disabled for its failures once its time is over (CCW-HLT-5). The node that owns it
// does so, also after a restart.
func (l *Lane) enableIfDue(now time.Time) {
	endpoint := &l.Target().Endpoint
	at := endpoint.ReenableAt
	switch {
	case at.IsZero() || l.enabling != nil:
		return
	case now.Before(at):
		l.wakeAt(at)
		return
	case l.epoch(now) == 0:
		return
	}
	l.enabling = &godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: endpoint.TenantID, EndpointID: l.id, Kind: godwit.NoticeEndpointEnabled,
		Detail: "it is tried again after its time of rest; it was disabled for: " + endpoint.StatusReason, CreatedAt: now,
	}
	l.d.Go(l.enable)
}

// enable stores that the endpoint is active, and reads it again: an operator may have changed it meanwhile. Repeating it is
// safe, and leaves one notice.
func (l *Lane) enable() {
	d, log := l.d, l.d.cfg.Log
	for {
		answer := d.cfg.Commits.Do(commit.Request{
			Tenant: l.enabling.TenantID,
			Change: &store.EndpointChange{EndpointID: l.id, Enable: true}, Notices: []godwit.Notice{*l.enabling},
		})
		if answer.Err == nil {
			break
		}
		log.Error("enable endpoint", "endpoint", l.id.String(), "error", answer.Err)
		if !clock.Wait(d.base, d.cfg.Clock, storeRetry) {
			return
		}
	}
	err := d.Changed(d.base, l.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enabling = nil
	switch {
	case err != nil:
		log.Error("read enabled endpoint", "endpoint", l.id.String(), "error", err) // it is read again later
	case l.active():
		log.Info("endpoint enabled after its failures", "endpoint", l.id.String())
	default:
		l.pump() // it stays disabled: an operator has disabled it anew, or the clock was set back
	}
}
