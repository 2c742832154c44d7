package dispatch

import (
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// attend makes the endpoint's changes that depend on time alone. Called with the lane locked.
func (l *Lane) attend(now time.Time) {
	if next := l.condition.recover(l.Target().Policy.DegradedAbove, now, l.d.times.minute()); !next.IsZero() {
		l.alarm.set(next)
	}
	if l.Target().Endpoint.Status == godwit.EndpointDisabled {
		l.reenabler.startIfDue(now)
	}
}

// recover ends the degraded state when enough failures have left the last hour. It returns when to look again, or zero.
func (c *condition) recover(limit float64, now time.Time, minute time.Duration) (next time.Time) {
	if c.DegradedAt.IsZero() {
		return next
	}
	if limit == 0 || c.Recent.FailedShare(now, minute) <= limit {
		c.DegradedAt = time.Time{}
		return next
	}
	return time.Unix(0, (now.UnixNano()/int64(minute)+1)*int64(minute)) // when the oldest minute may leave the hour
}

// A reenabler enables an endpoint that was disabled for its failures once the rest has passed (CCW-HLT-5). The node that owns
// the endpoint does this, also after a restart.
type reenabler struct {
	lane   *Lane
	notice *godwit.Notice // the notice about it while it is being stored; otherwise nil
}

// startIfDue starts when the time has come; before that it sets the lane's alarm. Called with the lane locked.
func (r *reenabler) startIfDue(now time.Time) {
	l := r.lane
	endpoint := &l.Target().Endpoint
	at := endpoint.ReenableAt
	switch {
	case at.IsZero() || r.notice != nil:
		return
	case now.Before(at):
		l.alarm.set(at)
		return
	case l.epoch() == 0:
		return
	}
	r.notice = &godwit.Notice{
		ID: godwit.NewNoticeID(now), TenantID: endpoint.TenantID, EndpointID: l.id, Kind: godwit.NoticeEndpointEnabled,
		Detail: "it is tried again after its time of rest; it was disabled for: " + endpoint.StatusReason, CreatedAt: now,
	}
	l.d.Go(r.run)
}

// run stores that the endpoint is active, and reads it again: an operator may have changed it meanwhile. Repeating it is safe,
// and leaves one notice.
func (r *reenabler) run() {
	l := r.lane
	d, log := l.d, l.d.cfg.Log
	for {
		answer := d.cfg.Commits.Do(commit.Request{
			Tenant: r.notice.TenantID,
			Change: &store.EndpointChange{EndpointID: l.id, Enable: true}, Notices: []godwit.Notice{*r.notice},
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
	r.notice = nil
	switch {
	case err != nil:
		log.Error("read enabled endpoint", "endpoint", l.id.String(), "error", err) // the dispatcher reads it later
	case l.active():
		log.Info("endpoint enabled after its failures", "endpoint", l.id.String())
	default:
		l.pump() // it stays disabled: an operator disabled it again, or the clock was set back
	}
}

// shorten stores an earlier end of the rest and reads the endpoint again.
func (r *reenabler) shorten(until time.Time) {
	l := r.lane
	d, log := l.d, l.d.cfg.Log
	for {
		answer := d.cfg.Commits.Do(commit.Request{
			Tenant: l.Target().Endpoint.TenantID, Change: &store.EndpointChange{EndpointID: l.id, RestUntil: until},
		})
		if answer.Err == nil {
			break
		}
		log.Error("shorten an endpoint's rest", "endpoint", l.id.String(), "error", answer.Err)
		if !clock.Wait(d.base, d.cfg.Clock, storeRetry) {
			return
		}
	}
	log.Warn("endpoint is enabled earlier: its rest was set while the clock was ahead", "endpoint", l.id.String(), "at", until)
	if err := d.Changed(d.base, l.id); err != nil {
		log.Error("read endpoint with a shorter rest", "endpoint", l.id.String(), "error", err) // the dispatcher reads it later
	}
}
