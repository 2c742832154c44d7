package intake

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// meters hold what this node needs to know of the tenants with limits on their events. Other tenants have no entry and cost nothing.
//
// A node that is alone counts events in memory. Several nodes count them in the store, so that the limit holds for all of them together. One
// question to the store serves all requests of the tenant that wait for it.
type meters struct {
	now    func() time.Time
	store  Store
	alone  func() bool
	server godwit.TenantLimits // of tenants that have none

	mu      sync.Mutex
	tenants map[godwit.TenantID]*meter
	swept   time.Time
}

// A meter belongs to one tenant.
type meter struct {
	wanted atomic.Int64 // events of the requests that are in enter

	mu     sync.Mutex
	used   time.Time // when the tenant last brought events
	tokens float64   // of a node that is alone; negative after a request larger than the burst
	filled time.Time
	full   time.Time // when the bucket is full again

	granted   int // by the store, and not used yet
	grantedAt time.Time
	slot      time.Time // of the grant, in the store
	paid      time.Time // when the events of a request larger than the burst are paid for

	waiting  int // deliveries at the last count, and those accepted here since
	counted  time.Time
	counting bool
}

const (
	// recount is how old the count of waiting deliveries may be.
	recount = time.Second
	// meterIdle is how long a meter is kept that is not used, and owes nothing.
	meterIdle = 10 * time.Minute
	// grantLife is how long events may be used that the store has granted.
	grantLife = 250 * time.Millisecond
	// slots is the number of rows for a period in the store.
	slots = 64
	// eventAllowance is the name of the allowance in the store.
	eventAllowance = "events"
)

// of returns the tenant's meter.
func (ms *meters) of(id godwit.TenantID, now time.Time) *meter {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.tenants[id]
	if m == nil {
		m = &meter{tokens: math.Inf(1), filled: now}
		ms.tenants[id] = m
	}
	if now.Sub(ms.swept) > meterIdle {
		ms.swept = now
		for id, other := range ms.tenants {
			if other != m && other.idle(now) {
				delete(ms.tenants, id)
			}
		}
	}
	return m
}

// idle reports whether a meter can go. One that is locked is in use.
func (m *meter) idle(now time.Time) bool {
	if !m.mu.TryLock() {
		return false
	}
	defer m.mu.Unlock()
	return now.Sub(m.used) > meterIdle && !now.Before(m.full) && !now.Before(m.paid)
}

// enter takes the events of a request from the tenant's limits, or refuses the request.
func (ms *meters) enter(ctx context.Context, t *godwit.Tenant, events int) error {
	l := t.Limits.Intake(ms.server)
	if l.EventsPerSecond == 0 && l.WaitingDeliveries == 0 {
		return nil
	}
	m := ms.of(t.ID, ms.now())
	m.wanted.Add(int64(events))
	defer m.wanted.Add(-int64(events))
	m.mu.Lock()
	defer m.mu.Unlock()
	now := ms.now()
	if back := m.used.Sub(now); back > 0 { // the clock was set back: what is owed stays the same
		m.paid, m.full = m.paid.Add(-back), m.full.Add(-back)
	}
	m.used = now
	if l.WaitingDeliveries > 0 {
		if err := ms.checkWaiting(ctx, m, t.ID, l.WaitingDeliveries, now); err != nil {
			return err
		}
	}
	switch {
	case l.EventsPerSecond == 0:
		return nil
	case ms.alone():
		return m.take(&l, events, now)
	}
	return ms.takeShared(ctx, m, t.ID, &l, events, now)
}

// take takes tokens. A request of more events than the burst is accepted if the bucket is full, and leaves it in debt.
func (m *meter) take(l *godwit.TenantLimits, events int, now time.Time) error {
	rate, burst := float64(l.EventsPerSecond), float64(l.Burst)
	if passed := now.Sub(m.filled); passed > 0 {
		m.tokens += passed.Seconds() * rate
	}
	m.tokens, m.filled = min(m.tokens, burst), now
	need := min(float64(events), burst)
	if m.tokens < need {
		return tooFast(l, (need-m.tokens)/rate)
	}
	m.tokens -= float64(events)
	m.full = now.Add(time.Duration((burst - m.tokens) / rate * float64(time.Second)))
	return nil
}

// leave gives back what enter took for a request that was refused afterwards.
func (ms *meters) leave(ctx context.Context, t *godwit.Tenant, events int) error {
	l := t.Limits.Intake(ms.server)
	if l.EventsPerSecond == 0 {
		return nil
	}
	m := ms.of(t.ID, ms.now())
	m.mu.Lock()
	defer m.mu.Unlock()
	if ms.alone() {
		m.tokens = min(m.tokens+float64(events), float64(l.Burst))
		return nil
	}
	return ms.store.ReturnAllowance(ctx, t.ID, eventAllowance, m.slot, min(events, l.Burst))
}

// takeShared takes events that the store grants: as many as the burst in any period in which the rate allows so many.
func (ms *meters) takeShared(ctx context.Context, m *meter, tenant godwit.TenantID, l *godwit.TenantLimits, events int, now time.Time) error {
	if debt := m.paid.Sub(now); debt > 0 {
		return tooFast(l, debt.Seconds())
	}
	if age := now.Sub(m.grantedAt); age < 0 || age > grantLife {
		m.granted = 0
	}
	need := min(events, l.Burst)
	if m.granted < need {
		period := time.Duration(float64(l.Burst) / float64(l.EventsPerSecond) * float64(time.Second))
		slot := max(period/slots, time.Millisecond)
		a := store.Allowance{
			TenantID: tenant, Name: eventAllowance, Limit: l.Burst, Per: period, Now: now.Truncate(slot).Add(slot).Truncate(time.Microsecond),
			Want: max(int(min(m.wanted.Load(), int64(l.Burst))), need) - m.granted,
		}
		got, err := ms.store.TakeAllowance(ctx, a)
		if err != nil {
			return fmt.Errorf("count events of tenant: %w", err)
		}
		m.granted, m.grantedAt, m.slot = m.granted+got.Granted, now, a.Now
		if m.granted < need { // a smaller request may use them
			err := ms.store.ReturnAllowance(ctx, tenant, eventAllowance, a.Now, got.Granted)
			if err != nil {
				return fmt.Errorf("return events of tenant: %w", err)
			}
			m.granted -= got.Granted
			return tooFast(l, got.Next.Sub(now).Seconds())
		}
	}
	m.granted -= need
	if more := events - need; more > 0 {
		m.paid = now.Add(time.Duration(float64(more) / float64(l.EventsPerSecond) * float64(time.Second)))
	}
	return nil
}

func tooFast(l *godwit.TenantLimits, seconds float64) error {
	return problem.TooManyRequests.With("the tenant may bring %d events a second (limit events_per_second), %d at once (limit burst)", l.EventsPerSecond, l.Burst).
		WithHeader("Retry-After", strconv.Itoa(int(max(math.Ceil(seconds), 1))))
}

// checkWaiting refuses events while too many deliveries wait. It counts anew at most once a second, in one request at a time; others go by the
// last count and what this node has accepted since. It is called with the meter's lock held.
func (ms *meters) checkWaiting(ctx context.Context, m *meter, tenant godwit.TenantID, limit int, now time.Time) error {
	if age := now.Sub(m.counted); !m.counting && (age >= recount || age < 0) {
		m.counting = true
		m.mu.Unlock()
		n, err := ms.store.CountWaiting(ctx, tenant, limit)
		m.mu.Lock()
		m.counting = false
		if err == nil { // else the last count holds: a store that is away takes no events either
			m.waiting, m.counted = n, now
		}
	}
	if m.waiting < limit {
		return nil
	}
	return problem.TooManyRequests.With("%d deliveries of the tenant wait, and it may have no more (limit waiting_deliveries)", limit).
		WithHeader("Retry-After", "5")
}

// accepted adds what was stored to the tenant's waiting deliveries.
func (ms *meters) accepted(t *godwit.Tenant, r *engine.Receipt) {
	if r.Err != nil || r.Replayed != nil || t.Limits.Intake(ms.server).WaitingDeliveries == 0 {
		return
	}
	m := ms.of(t.ID, ms.now())
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range r.Fanout {
		m.waiting += n
	}
}
