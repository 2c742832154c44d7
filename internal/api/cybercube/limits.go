package cybercube

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Limits bound how often an account may run each operation in any hour; 0 means no limit (CCW-LIM-7..11, CCW-LIM-13).
type Limits struct {
	Creates int // endpoints created
	Updates int // endpoints changed
	Deletes int // endpoints deleted
	Tests   int // tests of endpoints
	Replays int // replays of one event or of a range, together
}

type budgets struct {
	create, update, remove, test, replay *budget
}

func newBudgets(l Limits, window time.Duration, now func() time.Time) budgets {
	of := func(limit int) *budget {
		return &budget{limit: limit, window: window, now: now, taken: map[godwit.TenantID][]time.Time{}}
	}
	return budgets{create: of(l.Creates), update: of(l.Updates), remove: of(l.Deletes), test: of(l.Tests), replay: of(l.Replays)}
}

// A budget limits one operation over a sliding window. It is kept in memory: a restart clears it, and each node counts
// separately.
type budget struct {
	limit  int
	window time.Duration
	now    func() time.Time

	mu    sync.Mutex
	taken map[godwit.TenantID][]time.Time // times of use within the window, oldest first
}

// maxBudgets bounds the memory. Accounts without a request in the window are dropped.
const maxBudgets = 10_000

// take uses one unit of the budget. giveBack returns it if the operation is not carried out.
func (b *budget) take(h http.Header, tenant godwit.TenantID) (giveBack func(), err error) {
	if b.limit <= 0 {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	used := b.recent(tenant, now)
	if len(used) >= b.limit {
		b.write(h, used, now)
		wait := max(1, int(math.Ceil(used[len(used)-b.limit].Add(b.window).Sub(now).Seconds())))
		return nil, problem.TooManyRequests.With("an account may do this %d times in an hour", b.limit).
			WithHeader("Retry-After", strconv.Itoa(wait))
	}
	used = append(used, now)
	b.taken[tenant] = used
	b.write(h, used, now)
	return func() { b.giveBack(h, tenant, now) }, nil
}

func (b *budget) giveBack(h http.Header, tenant godwit.TenantID, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	used := b.recent(tenant, now)
	for i := range used {
		if used[i].Equal(at) {
			used = append(used[:i:i], used[i+1:]...)
			b.taken[tenant] = used
			break
		}
	}
	b.write(h, used, now)
}

// tell adds the three limit headers to a response without using the budget.
func (b *budget) tell(h http.Header, c *management.Caller) {
	if b.limit <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.write(h, b.recent(c.Tenant.ID, now), now)
}

// write sets the headers: what remains, and when the oldest counted use leaves the window.
func (b *budget) write(h http.Header, used []time.Time, now time.Time) {
	reset := now
	if len(used) > 0 {
		reset = used[0].Add(b.window)
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(b.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, b.limit-len(used))))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(int64(math.Ceil(float64(reset.UnixMilli())/1000)), 10))
}

// recent drops the uses that are older than the window.
func (b *budget) recent(tenant godwit.TenantID, now time.Time) []time.Time {
	used := b.taken[tenant]
	for len(used) > 0 && !used[0].Add(b.window).After(now) {
		used = used[1:]
	}
	if len(used) > 0 {
		b.taken[tenant] = used
		return used
	}
	delete(b.taken, tenant)
	if len(b.taken) >= maxBudgets {
		for id, times := range b.taken {
			if !times[len(times)-1].Add(b.window).After(now) {
				delete(b.taken, id)
			}
		}
	}
	return nil
}
