package management

import (
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// creationRate limits how fast a tenant registers endpoints: an attacker could register the URLs of a victim and make the
// server flood it (EDS-SEC-THR-5).
type creationRate struct {
	perMinute int // negative: no limit

	mu      sync.Mutex
	tenants map[godwit.TenantID]*rate.Limiter
}

// maxRatedTenants limits the memory. A limiter that is full again can be dropped.
const maxRatedTenants = 10_000

func (c *creationRate) take(tenant godwit.TenantID, now time.Time) error {
	if c.perMinute < 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.tenants[tenant]
	if l == nil {
		c.makeRoom(now)
		l = rate.NewLimiter(rate.Limit(float64(c.perMinute)/60), c.perMinute)
		c.tenants[tenant] = l
	}
	if l.AllowN(now, 1) {
		return nil
	}
	wait := max(1, math.Ceil((1-l.TokensAt(now))*60/float64(c.perMinute)))
	return problem.TooManyRequests.With("a tenant may create %d endpoints a minute", c.perMinute).
		WithHeader("Retry-After", strconv.Itoa(int(wait)))
}

func (c *creationRate) makeRoom(now time.Time) {
	if c.tenants == nil {
		c.tenants = map[godwit.TenantID]*rate.Limiter{}
	}
	if len(c.tenants) < maxRatedTenants {
		return
	}
	for id, l := range c.tenants {
		if l.TokensAt(now) >= float64(c.perMinute) {
			delete(c.tenants, id)
		}
	}
}
