package cybercube

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

var begin = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func newBudget(t *testing.T, limit int) (*budget, *clock.Manual) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := clock.NewManual(begin)
	return &budget{name: "test", limit: limit, window: time.Hour, now: c.Now, store: s, log: slog.New(slog.DiscardHandler)}, c
}

func (b *budget) must(t *testing.T, tenant godwit.TenantID) (http.Header, func()) {
	t.Helper()
	h := http.Header{}
	giveBack, err := b.take(t.Context(), h, tenant)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return h, giveBack
}

func TestBudgetSlides(t *testing.T) {
	b, c := newBudget(t, 3)
	tenant := godwit.NewTenantID(begin)
	for i, left := range []string{"2", "1", "0"} {
		h, _ := b.must(t, tenant)
		if h.Get("X-RateLimit-Remaining") != left || h.Get("X-RateLimit-Limit") != "3" || h.Get("X-RateLimit-Reset") != "1782910800" {
			t.Errorf("take %d: %v", i+1, h)
		}
		c.Advance(20 * time.Minute)
	}
	// The first use leaves the window after an hour, the next one 20 minutes later.
	b.must(t, tenant)
	h := http.Header{}
	_, err := b.take(t.Context(), h, tenant)
	if !errors.Is(err, problem.TooManyRequests) || problem.From(err).GetHeaders().Get("Retry-After") != "1200" || h.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("over the limit: %v %v", err, h)
	}
	c.Advance(20*time.Minute - time.Millisecond)
	if _, err = b.take(t.Context(), h, tenant); problem.From(err).GetHeaders().Get("Retry-After") != "1" {
		t.Errorf("a millisecond before: %v", err)
	}
	c.Advance(time.Millisecond)
	b.must(t, tenant)
}

func TestBudgetGivesBack(t *testing.T) {
	b, _ := newBudget(t, 1)
	tenant := godwit.NewTenantID(begin)
	h, giveBack := b.must(t, tenant)
	giveBack()
	if h.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("header %v", h)
	}
	giveBack() // a second call does nothing
	b.must(t, tenant)
	if _, err := b.take(t.Context(), http.Header{}, tenant); err == nil {
		t.Error("more than there is")
	}
	told := http.Header{}
	b.enter(t.Context(), told, &management.Caller{Tenant: &godwit.Tenant{ID: tenant}})
	if told.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("told %v", told)
	}
}

func TestBudgetIsEachAccountsOwn(t *testing.T) {
	b, _ := newBudget(t, 50)
	var wg sync.WaitGroup
	var tenants [4]godwit.TenantID
	var taken [4]int
	for i := range tenants {
		tenants[i] = godwit.NewTenantID(begin.Add(time.Duration(i) * time.Second))
		wg.Go(func() {
			for range 100 {
				if _, err := b.take(t.Context(), http.Header{}, tenants[i]); err == nil {
					taken[i]++
				}
			}
		})
	}
	wg.Wait()
	for i, n := range taken {
		if n != 50 {
			t.Errorf("account %d: %d", i, n)
		}
	}
}

func TestNoLimitTellsNothing(t *testing.T) {
	b, _ := newBudget(t, 0)
	h := http.Header{}
	for range 100 {
		if _, err := b.take(t.Context(), h, godwit.TenantID{1}); err != nil {
			t.Fatal(err)
		}
	}
	b.enter(t.Context(), h, &management.Caller{Tenant: &godwit.Tenant{}})
	if len(h) != 0 {
		t.Errorf("header %v", h)
	}
}
