package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	claimTimeout = 10 * time.Second

	// Bounds of one transaction.
	maxClaims   = 64      // endpoints
	claimedRows = 2048    // deliveries; an endpoint may claim minClaimed
	claimBytes  = 8 << 20 // payloads; each endpoint may claim one delivery, however large
	minClaimed  = 16

	// gatherTime is the least time between the starts of two transactions that are not full. A transaction costs the database as
	// much as ten of its deliveries.
	gatherTime = 10 * time.Millisecond

	// claimWorkers is the number of transactions at a time. While one is under way the next gathers; a second one keeps a
	// transaction with many large payloads from delaying all other lanes. The rest of the store's connections is for commits.
	claimWorkers = 2
	// reclaimWorkers limits the lanes that reclaim at a time.
	reclaimWorkers = 2
)

// A claimer claims due deliveries for the lanes, for many in one transaction: a transaction costs the store more than the deliveries of a lane.
type claimer struct {
	d        *Dispatcher
	reclaims chan struct{} // limits concurrent reclaims

	mu      sync.Mutex
	waiting []claimOrder // first come, first served
	workers int
	next    time.Duration // when the next transaction may begin, on the steady clock of Config.Pace
	failing bool          // the last transaction failed
}

// A claimOrder asks for deliveries of a lane.
type claimOrder struct {
	*backlog
	epoch int64
	limit int
}

// claim queues an order. A worker calls claimed or failed of its backlog.
func (c *claimer) claim(o claimOrder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, o)
	if c.workers < claimWorkers {
		c.workers++
		c.d.Go(c.work)
	}
}

// work executes orders until there are none.
func (c *claimer) work() {
	for {
		c.gather()
		orders := c.take()
		if len(orders) == 0 {
			return
		}
		c.execute(orders)
	}
}

// gather waits until the next transaction may begin, unless the orders fill one.
func (c *claimer) gather() {
	c.mu.Lock()
	now := c.d.cfg.Pace.Steady()
	start := max(c.next, now)
	switch n := len(c.waiting); {
	case n == 0:
		start = now
	case n >= maxClaims:
		start, c.next = now, now+gatherTime
	default:
		c.next = start + gatherTime
	}
	c.mu.Unlock()
	if start > now {
		clock.Wait(c.d.base, c.d.cfg.Pace, start-now)
	}
}

// take returns the orders of one transaction. If there are none, the worker ends.
func (c *claimer) take() []claimOrder {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.waiting), maxClaims)
	orders := c.waiting[:n:n]
	if c.waiting = c.waiting[n:]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	if n == 0 {
		c.workers--
	}
	return orders
}

// execute claims in one transaction. If that fails, all of its lanes reclaim, each on its own; so a lane whose deliveries cannot be read
// does not stop others for long.
func (c *claimer) execute(orders []claimOrder) {
	d := c.d
	ctx, cancel := context.WithTimeout(d.base, claimTimeout)
	defer cancel()
	started := d.cfg.Clock.Now()
	claims := make([]store.Claim, len(orders))
	for i, o := range orders {
		claims[i] = store.Claim{
			EndpointID: o.lane.id, Epoch: o.epoch, Now: started,
			Limit: min(o.limit, max(claimedRows/len(orders), minClaimed)), MaxBytes: claimBytes / len(orders),
		}
	}
	claimed, err := d.cfg.Store.ClaimDue(ctx, claims)
	n, fenced, version := 0, 0, int64(0)
	for i := range claimed {
		n += len(claimed[i].Work)
		if errors.Is(claimed[i].Err, store.ErrFenced) {
			fenced++
		}
		version = max(version, claimed[i].ConfigVersion)
	}
	d.cfg.Observer.Claimed(n, fenced, d.cfg.Clock.Now().Sub(started), err)
	if err == nil && version != 0 {
		// Of deliveries that other nodes stored, none is sent to an endpoint that was paused, changed or deleted before they were
		// accepted. After an error the lanes take the claims back, since memory does not hold them.
		err = d.cfg.ReachConfig(ctx, version)
	}
	c.log(err, len(orders))
	for i, o := range orders {
		switch {
		case err != nil:
			o.failed()
		case errors.Is(claimed[i].Err, store.ErrFenced): // its shard moves to another node
			d.cfg.Log.Debug("due deliveries not claimed: another node has the endpoint", "endpoint", o.lane.id.String())
			o.fenced()
		case claimed[i].Err != nil:
			d.cfg.Log.Error("claim due deliveries", "endpoint", o.lane.id.String(), "error", claimed[i].Err)
			o.failed()
		default:
			o.claimed(&claimed[i], o.epoch, started)
		}
	}
}

// log tells when transactions begin to fail and when they work again. All lanes with due deliveries try every second meanwhile, and may be thousands.
func (c *claimer) log(err error, endpoints int) {
	if c.d.base.Err() != nil {
		return // the node stops
	}
	c.mu.Lock()
	changed := c.failing != (err != nil)
	c.failing = err != nil
	c.mu.Unlock()
	switch {
	case changed && err != nil:
		c.d.cfg.Log.Error("claim due deliveries; tried again until it works", "endpoints", endpoints, "error", err)
	case changed:
		c.d.cfg.Log.Info("due deliveries can be claimed again")
	}
}

// reclaim releases the claims of a lane that memory does not know, and then claims for this lane alone.
func (c *claimer) reclaim(o claimOrder) {
	d := c.d
	select {
	case c.reclaims <- struct{}{}:
		defer func() { <-c.reclaims }()
	case <-d.base.Done():
		o.failed()
		return
	}
	ctx, cancel := context.WithTimeout(d.base, claimTimeout)
	defer cancel()
	if err := o.reclaim(ctx, o.epoch); err != nil {
		c.log(err, 1)
		o.failed()
		return
	}
	c.execute([]claimOrder{o})
}
