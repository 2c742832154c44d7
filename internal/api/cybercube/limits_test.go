package cybercube

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

var begin = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func newBudget(limit int) (*budget, *clock.Manual) {
	c := clock.NewManual(begin)
	return newBudgets(Limits{Creates: limit}, time.Hour, c.Now).create, c
}

func (b *budget) must(t *testing.T, tenant godwit.TenantID) (http.Header, func()) {
	t.Helper()
	h := http.Header{}
	giveBack, err := b.take(h, tenant)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return h, giveBack
}

func TestBudgetSlides(t *testing.T) {
	b, c := newBudget(3)
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
	_, err := b.take(h, tenant)
	if !errors.Is(err, problem.TooManyRequests) || problem.From(err).GetHeaders().Get("Retry-After") != "1200" || h.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("over the limit: %v %v", err, h)
	}
	c.Advance(20*time.Minute - time.Millisecond)
	if _, err = b.take(h, tenant); problem.From(err).GetHeaders().Get("Retry-After") != "1" {
		t.Errorf("a millisecond before: %v", err)
	}
	c.Advance(time.Millisecond)
	b.must(t, tenant)
}

func TestBudgetGivesBack(t *testing.T) {
	b, _ := newBudget(1)
	tenant := godwit.NewTenantID(begin)
	h, giveBack := b.must(t, tenant)
	giveBack()
	if h.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("header %v", h)
	}
	giveBack() // a second call does nothing
	b.must(t, tenant)
	if _, err := b.take(http.Header{}, tenant); err == nil {
		t.Error("more than there is")
	}
	told := http.Header{}
	b.tell(told, &management.Caller{Tenant: &godwit.Tenant{ID: tenant}})
	if told.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("told %v", told)
	}
}

func TestBudgetIsEachAccountsOwn(t *testing.T) {
	b, _ := newBudget(50)
	var wg sync.WaitGroup
	var tenants [4]godwit.TenantID
	var taken [4]int
	for i := range tenants {
		tenants[i] = godwit.NewTenantID(begin.Add(time.Duration(i) * time.Second))
		wg.Go(func() {
			for range 100 {
				if _, err := b.take(http.Header{}, tenants[i]); err == nil {
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

func TestBudgetForgetsIdleAccounts(t *testing.T) {
	b, c := newBudget(5)
	for i := range maxBudgets {
		b.must(t, godwit.NewTenantID(begin.Add(time.Duration(i)*time.Millisecond)))
	}
	c.Advance(time.Hour)
	b.must(t, godwit.NewTenantID(begin.Add(-time.Hour)))
	if n := len(b.taken); n != 1 {
		t.Errorf("%d accounts are remembered", n)
	}
}

func TestNoLimitTellsNothing(t *testing.T) {
	b, _ := newBudget(0)
	h := http.Header{}
	for range 100 {
		if _, err := b.take(h, godwit.TenantID{1}); err != nil {
			t.Fatal(err)
		}
	}
	b.tell(h, &management.Caller{Tenant: &godwit.Tenant{}})
	if len(h) != 0 {
		t.Errorf("header %v", h)
	}
}
