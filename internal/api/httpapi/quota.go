package httpapi

import (
	"net/http"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// A Quota bounds a resource that requests hold, for each tenant and for all tenants together. A request beyond the quota is
// refused at once: with 429 if its tenant has used its share, with 503 if all tenants together have used the total.
type Quota struct {
	perTenant, total int64

	mu    sync.Mutex
	taken map[godwit.TenantID]int64
	sum   int64
}

// NewQuota returns a quota.
func NewQuota(perTenant, total int64) *Quota {
	return &Quota{perTenant: perTenant, total: total, taken: map[godwit.TenantID]int64{}}
}

// take takes n units. If that would exceed a bound, it takes nothing and reports which bound.
func (q *Quota) take(tenant godwit.TenantID, n int64) (overShare, overAll bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken[tenant]+n > q.perTenant {
		return true, false
	}
	if q.sum+n > q.total {
		return false, true
	}
	q.taken[tenant] += n
	q.sum += n
	return false, false
}

// Release gives back n units that the tenant took.
func (q *Quota) Release(tenant godwit.TenantID, n int64) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum -= n
	if q.taken[tenant] -= n; q.taken[tenant] == 0 {
		delete(q.taken, tenant)
	}
}

// Acquire takes one unit of a resource that is held for long, such as a stream. what names the resource in the refusal.
// Release gives the unit back.
func (q *Quota) Acquire(tenant godwit.TenantID, what string) error {
	switch overShare, overAll := q.take(tenant, 1); {
	case overShare:
		return problem.TooManyRequests.With("a tenant may have %d %s open at once", q.perTenant, what)
	case overAll:
		return problem.Unavailable.With("too many %s are open", what)
	}
	return nil
}

// AcquireBody takes the bytes that a request body of at most limit bytes may need. It returns how many to release after the
// request was answered.
func (q *Quota) AcquireBody(r *http.Request, tenant godwit.TenantID, limit int64) (int64, error) {
	n := r.ContentLength
	if n >= 0 && n <= uncountedBody || n > limit { // a longer body is refused before it is read
		return 0, nil
	}
	if n < 0 {
		n = limit
	}
	switch overShare, overAll := q.take(tenant, n); {
	case overShare:
		return 0, problem.TooManyRequests.With("a tenant may have %d bytes of request bodies under way at once", q.perTenant)
	case overAll:
		return 0, problem.Unavailable.With("too many large requests are under way")
	}
	return n, nil
}
