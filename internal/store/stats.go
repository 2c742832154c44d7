package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/stats"
)

// Stats keeps the history for charts: see package stats. A Commit, and an Advance, log what they count in their own transaction.
type Stats interface {
	stats.Store
	// BeginStats stores when the history begins, unless that is stored.
	BeginStats(ctx context.Context, now time.Time) error
	// FoldStats takes one bounded step: it merges log rows, or adds merged ones to their pages. One node calls it at a time; if two do, one of them
	// does nothing, or fails with ErrConflict.
	FoldStats(ctx context.Context, f StatsFold) (*StatsFolded, error)
	// SweepStats removes a bounded number of pages of the past and of deleted tenants, and reports how many, and whether more may be left.
	SweepStats(ctx context.Context, s StatsSweep) (removed int64, more bool, err error)
	// CountBacklog counts what waits now.
	CountBacklog(ctx context.Context, f BacklogFilter) (*Backlog, error)
}

// StatsFold says how far to fold.
type StatsFold struct {
	Apply bool // add merged rows to pages; otherwise only merge
	Aside bool // include rows that were set aside: this release may understand them
}

// StatsFolded is the result of a step.
type StatsFolded struct {
	More    bool // there is a next step
	Whole   bool // this step merged all that was in the log
	Aside   int  // log rows set aside, because they cannot be decoded
	Damaged int  // pages that could not be decoded, and begin anew
}

// StatsRowEntries bounds the entries of a merged log row, and with it the pages that one step changes.
const StatsRowEntries = 96

// StatsSweep says which pages have expired, by their level.
type StatsSweep struct {
	Before [stats.Day + 1]time.Time // zero: keep all
	Limit  int
}

// BacklogFilter selects what is counted. Zero members do not narrow it.
type BacklogFilter struct {
	Environment godwit.EnvironmentID
	Tenant      godwit.TenantID
	UpTo        int // bound of Waiting
}

// A Backlog is what waits now.
type Backlog struct {
	Waiting  int       // pending deliveries, at most UpTo
	OldestAt time.Time // when the delivery became due that is due first; zero: none waits
	// Endpoints by their state. Each is counted once, under the first that applies.
	Disabled, Paused, Open, Failing, Healthy int
}

// Endpoint counts an endpoint.
func (b *Backlog) Endpoint(status godwit.EndpointStatus, open, failing bool) {
	switch {
	case status == godwit.EndpointDisabled:
		b.Disabled++
	case status == godwit.EndpointPaused:
		b.Paused++
	case open:
		b.Open++
	case failing:
		b.Failing++
	default:
		b.Healthy++
	}
}

// Due takes account of a delivery that is due at a time.
func (b *Backlog) Due(at time.Time) {
	if b.OldestAt.IsZero() || at.Before(b.OldestAt) {
		b.OldestAt = at
	}
}

// A Tally gathers what a transaction counts: the usage of tenants, and the log row of the history.
type Tally struct {
	now     time.Time
	tenants map[godwit.TenantID]*Tallied
	last    *Tallied
}

// Tallied is what a transaction counts for a tenant.
type Tallied struct {
	godwit.Usage
	Stats stats.Segment
}

// NewTally returns an empty tally of a transaction at the given time.
func NewTally(now time.Time) *Tally { return &Tally{now: now, tenants: map[godwit.TenantID]*Tallied{}} }

// NewTallied returns empty counts of a tenant.
func NewTallied(tenant godwit.TenantID, now time.Time) *Tallied {
	return &Tallied{Stats: stats.Segment{Tenant: tenant, Minute: stats.MinuteOf(now)}}
}

// Of returns the counts of a tenant.
func (t *Tally) Of(tenant godwit.TenantID) *Tallied {
	if t.last != nil && t.last.Stats.Tenant == tenant {
		return t.last
	}
	sum := t.tenants[tenant]
	if sum == nil {
		sum = NewTallied(tenant, t.now)
		t.tenants[tenant] = sum
	}
	t.last = sum
	return sum
}

// Event counts a new event.
func (t *Tallied) Event(e *godwit.Event) {
	t.Events++
	t.BytesAccepted += int64(len(e.Body))
	t.Stats.Events++
}

// Delivery counts a new delivery.
func (t *Tallied) Delivery(id godwit.EndpointID) {
	t.Deliveries++
	t.Stats.Delivery(id)
}

// Result counts a result that the store has applied.
func (t *Tallied) Result(r *Result) {
	if r.Attempt == nil {
		if r.Delivery.Status.Dead() {
			t.Stats.Dead(r.Delivery.EndpointID)
		}
		return
	}
	t.Attempts++
	t.BytesSent += r.BytesSent
	t.Stats.Attempt(&r.Delivery, r.Attempt)
}

// Each calls fn with all tenants in order, so that two transactions lock their rows in the same order.
func (t *Tally) Each(fn func(godwit.TenantID, *Tallied) error) error {
	list := make([]*Tallied, 0, len(t.tenants))
	for _, of := range t.tenants {
		if of.Usage != (godwit.Usage{}) || !of.Stats.Empty() {
			list = append(list, of)
		}
	}
	slices.SortFunc(list, func(a, b *Tallied) int { return bytes.Compare(a.Stats.Tenant[:], b.Stats.Tenant[:]) })
	for _, of := range list {
		if err := fn(of.Stats.Tenant, of); err != nil {
			return err
		}
	}
	return nil
}
