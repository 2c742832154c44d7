package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Usages reads what tenants used. A Commit, and an Advance, count in their own transaction, on the day of their time.
type Usages interface {
	// ListUsage returns the tenants with usage, newest first, deleted ones too. A page is a number of tenants.
	ListUsage(ctx context.Context, f UsageFilter, p Page) ([]godwit.TenantUsage, error)
	// SumUsage adds up the usage of all tenants that the filter selects, by day. It returns days with usage, in order.
	SumUsage(ctx context.Context, f UsageFilter) ([]godwit.DayUsage, error)
}

// A UsageFilter selects usage.
type UsageFilter struct {
	Environment godwit.EnvironmentID // zero: all
	Tenant      godwit.TenantID      // zero: all
	From, To    time.Time            // first and last day
}

// A Tally gathers the usage of a transaction.
type Tally map[godwit.TenantID]*godwit.Usage

// Add adds to a tenant's usage. Nothing is no usage.
func (t Tally) Add(tenant godwit.TenantID, u godwit.Usage) {
	if u == (godwit.Usage{}) {
		return
	}
	sum := t[tenant]
	if sum == nil {
		sum = &godwit.Usage{}
		t[tenant] = sum
	}
	sum.Add(u)
}

// Tenants lists the tenants in order, so that two transactions lock their rows in the same order.
func (t Tally) Tenants() []godwit.TenantID {
	list := make([]godwit.TenantID, 0, len(t))
	for id := range t {
		list = append(list, id)
	}
	slices.SortFunc(list, func(a, b godwit.TenantID) int { return bytes.Compare(a[:], b[:]) })
	return list
}

// Used returns what a new event with deliveries uses.
func Used(e *godwit.Event, deliveries int) godwit.Usage {
	return godwit.Usage{Events: 1, BytesAccepted: int64(len(e.Body)), Deliveries: int64(deliveries)}
}

// Used returns what a result uses that the store has applied.
func (r *Result) Used() godwit.Usage {
	if r.Attempt == nil {
		return godwit.Usage{}
	}
	return godwit.Usage{Attempts: 1, BytesSent: r.BytesSent}
}
