package cybercube

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
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

func newBudgets(cfg *Config) budgets {
	of := func(name string, limit int) *budget {
		return &budget{
			name: "cybercube " + name, limit: limit, window: cfg.TimeScale.Real(time.Hour), now: cfg.Clock.Now, store: cfg.Store, log: cfg.Log,
		}
	}
	l := &cfg.Limits
	return budgets{
		create: of("creates", l.Creates), update: of("updates", l.Updates), remove: of("deletes", l.Deletes),
		test: of("tests", l.Tests), replay: of("replays", l.Replays),
	}
}

// A budget limits one operation over a sliding window. The store counts, so that it holds over all nodes and across restarts.
type budget struct {
	name   string
	limit  int
	window time.Duration
	now    func() time.Time
	store  store.Allowances
	log    *slog.Logger
}

// take uses one unit of the budget. giveBack returns it if the operation is not carried out. The repeat of an interrupted request
// uses none: the first one may have used the last.
func (b *budget) take(ctx context.Context, h http.Header, tenant godwit.TenantID) (giveBack func(), err error) {
	if b.limit <= 0 {
		return func() {}, nil
	}
	if idempotency.Again(ctx) {
		b.tell(ctx, h, tenant)
		return func() {}, nil
	}
	now := b.now()
	allowed, err := b.allow(ctx, tenant, now, 1)
	if err != nil {
		return nil, err
	}
	b.write(h, &allowed)
	if allowed.Granted == 0 {
		wait := max(1, int(math.Ceil(allowed.Next.Sub(now).Seconds())))
		return nil, problem.TooManyRequests.With("an account may do this %d times in an hour", b.limit).
			WithHeader("Retry-After", strconv.Itoa(wait))
	}
	return sync.OnceFunc(func() { b.giveBack(ctx, h, tenant, now) }), nil
}

func (b *budget) allow(ctx context.Context, tenant godwit.TenantID, now time.Time, want int) (store.Allowed, error) {
	return b.store.TakeAllowance(ctx, store.Allowance{
		TenantID: tenant, Name: b.name, Limit: b.limit, Per: b.window, Want: want, Now: now,
	})
}

// giveBack also works for a client that has disconnected.
func (b *budget) giveBack(ctx context.Context, h http.Header, tenant godwit.TenantID, at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := b.store.ReturnAllowance(ctx, tenant, b.name, at, 1); err != nil {
		b.log.Error("give back a use of a limited operation", "operation", b.name, "tenant", tenant.String(), "error", err)
		return
	}
	b.tell(ctx, h, tenant)
}

// enter adds the three limit headers to every response to a caller.
func (b *budget) enter(ctx context.Context, h http.Header, c *management.Caller) {
	if b.limit > 0 {
		b.tell(ctx, h, c.Tenant.ID)
	}
}

// tell adds the headers without using the budget. If the store cannot be asked, the response goes without them.
func (b *budget) tell(ctx context.Context, h http.Header, tenant godwit.TenantID) {
	allowed, err := b.allow(ctx, tenant, b.now(), 0)
	if err != nil {
		b.log.Error("read the use of a limited operation", "operation", b.name, "tenant", tenant.String(), "error", err)
		return
	}
	b.write(h, &allowed)
}

// write sets the headers: what remains, and when the oldest counted use leaves the window.
func (b *budget) write(h http.Header, allowed *store.Allowed) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(b.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, b.limit-allowed.Used)))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(int64(math.Ceil(float64(allowed.Reset.UnixMilli())/1000)), 10))
}
