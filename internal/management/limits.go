package management

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// creationRate limits how fast a tenant registers endpoints: an attacker could register the URLs of a victim and make the
// server flood it (EDS-SEC-THR-5).
type creationRate struct {
	store     Store
	perMinute int // negative: no limit
}

// creationAllowance is the name of the allowance in the store.
const creationAllowance = "endpoint creations"

func (c *creationRate) take(ctx context.Context, tenant godwit.TenantID, now time.Time) error {
	if c.perMinute < 0 {
		return nil
	}
	allowed, err := c.store.TakeAllowance(ctx, store.Allowance{
		TenantID: tenant, Name: creationAllowance, Limit: c.perMinute, Per: time.Minute, Want: 1, Now: now,
	})
	if err != nil || allowed.Granted > 0 {
		return err
	}
	wait := max(1, math.Ceil(allowed.Next.Sub(now).Seconds()))
	return problem.TooManyRequests.With("a tenant may create %d endpoints a minute", c.perMinute).
		WithHeader("Retry-After", strconv.Itoa(int(wait)))
}
