package management

import (
	"cmp"
	"context"
	"errors"
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

// Platform reports whether the caller's key is not a tenant's: it is an environment's or an administrator's.
func (c *Caller) Platform() bool {
	return c.Key.TenantID == godwit.HomeOf(c.Tenant.EnvironmentID) || c.Key.Has(godwit.ScopeAdmin)
}

func checkLimits(l *godwit.TenantLimits) error {
	var errs []error
	for _, m := range []struct {
		name  string
		value int64
	}{
		{"events_per_second", int64(l.EventsPerSecond)}, {"burst", int64(l.Burst)}, {"endpoints", int64(l.Endpoints)},
		{"payload_bytes", l.PayloadBytes}, {"waiting_deliveries", int64(l.WaitingDeliveries)},
		{"endpoint_creations_per_minute", int64(l.EndpointCreationsPerMinute)},
	} {
		if m.value < 0 || m.value > maxTenantLimit {
			errs = append(errs, fieldError("limits."+m.name, "must be from 1 to %d, or be absent for the server's default", maxTenantLimit))
		}
	}
	if l.Burst > 0 && l.EventsPerSecond == 0 {
		errs = append(errs, fieldError("limits.burst", "needs events_per_second"))
	}
	return errors.Join(errs...)
}

const maxTenantLimit = 1_000_000_000

// creationAllowance is the name of the allowance in the store.
const creationAllowance = "endpoint creations"

// take takes one creation. own is the tenant's limit; 0: the server's.
func (c *creationRate) take(ctx context.Context, tenant godwit.TenantID, own int, now time.Time) error {
	limit := cmp.Or(own, c.perMinute)
	if limit < 0 {
		return nil
	}
	allowed, err := c.store.TakeAllowance(ctx, store.Allowance{
		TenantID: tenant, Name: creationAllowance, Limit: limit, Per: time.Minute, Want: 1, Now: now,
	})
	if err != nil || allowed.Granted > 0 {
		return err
	}
	wait := max(1, math.Ceil(allowed.Next.Sub(now).Seconds()))
	return problem.TooManyRequests.With("a tenant may create %d endpoints a minute (limit endpoint_creations_per_minute)", limit).
		WithHeader("Retry-After", strconv.Itoa(int(wait)))
}
