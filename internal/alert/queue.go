package alert

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// Store finds the people of a tenant and the names of endpoints.
type Store interface {
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
}

// Config configures a Queue.
type Config struct {
	Store    Store
	Notifier Notifier
	Clock    clock.Clock
	Log      *slog.Logger
	// PerMinute limits a tenant's alerts in a minute; further notices are summed up in the next alert. Defaults to 5.
	PerMinute int
	// Timeout limits sending an alert. Defaults to 30 s.
	Timeout time.Duration
}

// Limits of the waiting notices. Notices beyond them are counted, not kept.
const (
	maxPosted  = 1024
	maxOutbox  = 64
	maxRetries = 256
	maxTold    = 20 // notices in one alert; the others are counted
)

// backOff lists the waits before an alert that failed is sent again; after the last one it is dropped.
var backOff = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute}

// stopTimeout limits how long a stop may spend on sending waiting alerts.
const stopTimeout = 5 * time.Second

// A Queue receives notices and alerts people, at a limited rate.
type Queue struct {
	cfg    Config
	posted chan godwit.Notice
	lost   atomic.Int64
	outbox chan *letter
	again  chan *letter
	later  map[*letter]struct{} // alerts to be retried; used by the sending goroutine

	accounts map[godwit.TenantID]*account // used by the collecting goroutine
	wake     chan struct{}
	timer    clock.Timer
	due      time.Time
}

// account counts a tenant's alerts in the current minute and holds the notices for the next one.
type account struct {
	told  int
	until time.Time
	wait  []godwit.Notice
	more  map[godwit.NoticeKind]int
}

// letter is an alert to be sent.
type letter struct {
	tenant  godwit.TenantID
	notices []godwit.Notice
	more    map[godwit.NoticeKind]int
	tries   int
}

// NewQueue returns a Queue.
func NewQueue(cfg Config) (*Queue, error) {
	if cfg.Store == nil || cfg.Notifier == nil || cfg.Clock == nil || cfg.Log == nil {
		return nil, errors.New("alert: store, notifier, clock and log are required")
	}
	if cfg.PerMinute == 0 {
		cfg.PerMinute = 5
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	return &Queue{
		cfg: cfg, posted: make(chan godwit.Notice, maxPosted), outbox: make(chan *letter, maxOutbox), again: make(chan *letter, maxRetries),
		later: map[*letter]struct{}{}, accounts: map[godwit.TenantID]*account{}, wake: make(chan struct{}, 1),
	}, nil
}

// Post adds a notice. It never blocks, because the delivering goroutine calls it.
func (d *Queue) Post(n godwit.Notice) {
	if !Concerns(n.Kind) {
		return
	}
	select {
	case d.posted <- n:
	default:
		d.lost.Add(1)
	}
}

// Run sends alerts until ctx ends. Then it sends the waiting ones once more, within stopTimeout.
func (d *Queue) Run(ctx context.Context) error {
	var telling sync.WaitGroup
	telling.Go(func() { d.tellAll(ctx) })
	d.collect(ctx)
	telling.Wait()
	d.finish(ctx)
	return nil
}

// collect groups notices by tenant.
func (d *Queue) collect(ctx context.Context) {
	for {
		select {
		case n := <-d.posted:
			d.take(n)
		case <-d.wake:
			d.turn()
		case <-ctx.Done():
			if d.timer != nil {
				d.timer.Stop()
			}
			return
		}
		if n := d.lost.Swap(0); n > 0 {
			d.cfg.Log.Warn("alerts are lost: more came than could be told; the notices are stored", "count", n)
		}
		d.setTimer()
	}
}

func (d *Queue) take(n godwit.Notice) {
	a := d.accounts[n.TenantID]
	if a == nil {
		a = &account{until: d.cfg.Clock.Now().Add(time.Minute)}
		d.accounts[n.TenantID] = a
	}
	if a.told < d.cfg.PerMinute && len(a.wait) == 0 && d.send(&letter{tenant: n.TenantID, notices: []godwit.Notice{n}}) {
		a.told++
		return
	}
	a.add(n)
}

func (a *account) add(n godwit.Notice) {
	if len(a.wait) < maxTold {
		a.wait = append(a.wait, n)
		return
	}
	if a.more == nil {
		a.more = map[godwit.NoticeKind]int{}
	}
	a.more[n.Kind]++
}

func (d *Queue) send(l *letter) bool {
	select {
	case d.outbox <- l:
		return true
	default:
		return false
	}
}

// turn starts the next minute of accounts whose minute is over, with the notices that waited for it.
func (d *Queue) turn() {
	now := d.cfg.Clock.Now()
	for id, a := range d.accounts {
		switch {
		case now.Before(a.until):
		case len(a.wait) == 0:
			delete(d.accounts, id)
		case d.send(&letter{tenant: id, notices: a.wait, more: a.more}):
			*a = account{told: 1, until: now.Add(time.Minute)}
		default:
			a.until = now.Add(time.Minute) // the outbox is full: mail cannot be sent
		}
	}
}

// setTimer wakes the queue when the earliest minute ends.
func (d *Queue) setTimer() {
	var next time.Time
	for _, a := range d.accounts {
		if next.IsZero() || a.until.Before(next) {
			next = a.until
		}
	}
	if next.Equal(d.due) {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.due = next; next.IsZero() {
		return
	}
	d.timer = d.cfg.Clock.AfterFunc(next.Sub(d.cfg.Clock.Now()), func() {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	})
}

// tellAll empties the outbox.
func (d *Queue) tellAll(ctx context.Context) {
	for {
		select {
		case l := <-d.outbox:
			d.tell(ctx, l)
		case l := <-d.again:
			delete(d.later, l)
			d.tell(ctx, l)
		case <-ctx.Done():
			return
		}
	}
}

// tell sends an alert once. If that fails, the alert waits behind those of other tenants: one full mailbox must not delay
// all.
func (d *Queue) tell(ctx context.Context, l *letter) {
	err := d.try(ctx, l)
	var permanent *Permanent
	switch {
	case err == nil:
	case errors.As(err, &permanent) || l.tries >= len(backOff) || len(d.later) >= maxRetries:
		d.giveUp(l, err)
	case ctx.Err() != nil:
		d.later[l] = struct{}{} // a stop interrupted it: finish tries once more
	default:
		d.later[l] = struct{}{}
		wait := backOff[l.tries]
		l.tries++
		d.cfg.Log.Warn("alert cannot be told now", "tenant", l.tenant.String(), "again_in", wait.String(), "error", err)
		d.cfg.Clock.AfterFunc(wait, func() { d.again <- l }) // has room for all that wait
	}
}

func (d *Queue) giveUp(l *letter, err error) {
	d.cfg.Log.Error("alert is given up; its notices are stored", "tenant", l.tenant.String(), "notices", len(l.notices), "error", err)
}

func (d *Queue) try(ctx context.Context, l *letter) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	tenant, err := d.cfg.Store.Tenant(ctx, l.tenant)
	if err != nil {
		return err
	}
	a := Alert{Tenant: tenant, More: l.more}
	for _, n := range l.notices {
		named := Notice{Notice: n}
		if e, err := d.cfg.Store.Endpoint(ctx, n.TenantID, n.EndpointID); err == nil { // it may have been deleted
			named.Endpoint, named.Description = profile.FormatCode(profile.CodeEndpoint, e.Code), e.Description
		}
		a.Notices = append(a.Notices, named)
	}
	return d.cfg.Notifier.Notify(ctx, a)
}

// finish sends every waiting alert once.
func (d *Queue) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for l := range d.later {
		d.last(ctx, l)
	}
	for len(d.outbox) > 0 {
		d.last(ctx, <-d.outbox)
	}
	for len(d.posted) > 0 {
		n := <-d.posted
		if d.accounts[n.TenantID] == nil {
			d.accounts[n.TenantID] = &account{}
		}
		d.accounts[n.TenantID].add(n)
	}
	for id, a := range d.accounts {
		if len(a.wait) > 0 {
			d.last(ctx, &letter{tenant: id, notices: a.wait, more: a.more})
		}
	}
}

func (d *Queue) last(ctx context.Context, l *letter) {
	if err := d.try(ctx, l); err != nil {
		d.giveUp(l, err)
	}
}
