package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var allowanceCases = []testCase{
	{"is limited in any period", allowanceLimited},
	{"is given back", allowanceReturned},
	{"may be lowered", allowanceLowered},
	{"is swept", allowanceSwept},
}

// allow takes an allowance of five a minute, at a number of seconds.
func allow(f *fixture, tenant godwit.TenantID, name string, want int, seconds time.Duration) store.Allowed {
	f.t.Helper()
	return got(f.s.TakeAllowance(f.ctx, store.Allowance{
		TenantID: tenant, Name: name, Limit: 5, Per: time.Minute, Want: want, Now: at(seconds),
	}))(f.t)
}

// day is a time of which both backends keep every digit.
var day = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func at(seconds time.Duration) time.Time { return day.Add(seconds * time.Second) }

func allowanceLimited(t *testing.T, f *fixture) {
	tenant, other := godwit.NewTenantID(day), godwit.NewTenantID(day)
	same(t, "before", allow(f, tenant, "x", 0, 0), store.Allowed{Reset: at(0), Next: at(0)})
	same(t, "first", allow(f, tenant, "x", 2, 0), store.Allowed{Granted: 2, Used: 2, Reset: at(60), Next: at(0)})
	same(t, "second", allow(f, tenant, "x", 2, 10), store.Allowed{Granted: 2, Used: 4, Reset: at(60), Next: at(10)})
	same(t, "asked", allow(f, tenant, "x", 0, 20), store.Allowed{Used: 4, Reset: at(60), Next: at(20)})
	same(t, "in part", allow(f, tenant, "x", 3, 20), store.Allowed{Granted: 1, Used: 5, Reset: at(60), Next: at(60)})
	same(t, "none left", allow(f, tenant, "x", 1, 59), store.Allowed{Used: 5, Reset: at(60), Next: at(60)})
	same(t, "another name", allow(f, tenant, "y", 1, 59).Granted, 1)
	same(t, "another tenant", allow(f, other, "x", 1, 59).Granted, 1)
	same(t, "the first left the period", allow(f, tenant, "x", 9, 60), store.Allowed{Granted: 2, Used: 5, Reset: at(70), Next: at(70)})
	same(t, "twice at one time", allow(f, tenant, "y", 1, 59).Used, 2)
}

func allowanceReturned(t *testing.T, f *fixture) {
	tenant := godwit.NewTenantID(day)
	allow(f, tenant, "x", 5, 0)
	f.must(f.s.ReturnAllowance(f.ctx, tenant, "x", at(0), 2))
	same(t, "after the return", allow(f, tenant, "x", 5, 1).Granted, 2)
	f.must(f.s.ReturnAllowance(f.ctx, tenant, "x", at(7), 2)) // nothing was taken then
	same(t, "after a return of nothing", allow(f, tenant, "x", 5, 8).Granted, 0)
}

func allowanceLowered(t *testing.T, f *fixture) {
	tenant := godwit.NewTenantID(day)
	for i := range time.Duration(5) {
		allow(f, tenant, "x", 1, i)
	}
	a := store.Allowance{TenantID: tenant, Name: "x", Limit: 2, Per: time.Minute, Want: 1, Now: at(10)}
	same(t, "lowered", got(f.s.TakeAllowance(f.ctx, a))(t), store.Allowed{Used: 5, Reset: at(60), Next: at(63)})
}

func allowanceSwept(t *testing.T, f *fixture) {
	tenant := godwit.NewTenantID(day)
	allow(f, tenant, "x", 5, 0)
	sweep := func(seconds time.Duration) int64 {
		return got(f.s.Sweep(f.ctx, store.Sweep{Now: at(seconds), Limit: 100}))(t).Allowances
	}
	same(t, "swept before its time", sweep(59), int64(0))
	same(t, "used", allow(f, tenant, "x", 0, 59).Used, 5)
	same(t, "swept", sweep(60), int64(1))
}

// However many nodes take at the same moment, no more is granted than the limit.
func concurrentAllowance(t *testing.T, f *fixture) {
	tenant := godwit.NewTenantID(day)
	var granted atomic.Int64
	together(t, 20, func(i int) error {
		a, err := f.s.TakeAllowance(f.ctx, store.Allowance{
			TenantID: tenant, Name: "x", Limit: 30, Per: time.Minute, Want: 3, Now: day.Add(time.Duration(i) * time.Millisecond),
		})
		granted.Add(int64(a.Granted))
		return err
	})
	same(t, "granted in all", granted.Load(), int64(30))
}
