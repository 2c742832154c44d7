package store

import (
	"context"
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
