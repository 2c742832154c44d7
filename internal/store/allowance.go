package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Allowances count how often a tenant did something in the last period, over all nodes and across restarts.
type Allowances interface {
	// TakeAllowance takes up to a.Want uses that are free at a.Now, in one transaction. Uses that are dated more than a period
	// ahead do not count: the clock was set back since.
	TakeAllowance(ctx context.Context, a Allowance) (Allowed, error)
	// ReturnAllowance gives back n uses that were taken at the given time and not needed.
	ReturnAllowance(ctx context.Context, tenant godwit.TenantID, name string, at time.Time, n int) error
}

// An Allowance permits a tenant a number of uses in any period.
type Allowance struct {
	TenantID godwit.TenantID
	Name     string // what is allowed
	Limit    int    // uses in any period
	Per      time.Duration
	Want     int // 0 asks without taking anything
	Now      time.Time
}

// Allowed is the answer to a take.
type Allowed struct {
	Granted int
	Used    int       // uses in the period, those granted now included
	Reset   time.Time // when the oldest of them leaves the period; Now if there are none
	Next    time.Time // when a further use will be free: Now, if there is one already
}

// A Use is a number of uses at one time.
type Use struct {
	At time.Time
	N  int
}

// Grant decides how many uses are granted after those of the last period, oldest first. Every backend calls it within its
// transaction.
func (a *Allowance) Grant(before []Use) Allowed {
	out := Allowed{Reset: a.Now, Next: a.Now}
	for _, u := range before {
		out.Used += u.N
	}
	out.Granted = max(min(a.Want, a.Limit-out.Used), 0)
	out.Used += out.Granted
	if out.Granted > 0 {
		before = append(before[:len(before):len(before)], Use{a.Now, out.Granted})
	}
	if len(before) == 0 {
		return out
	}
	out.Reset = before[0].At.Add(a.Per)
	left := out.Used
	for i := 0; i < len(before) && left >= a.Limit; i++ {
		left -= before[i].N
		out.Next = before[i].At.Add(a.Per)
	}
	return out
}
