package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// allowances counts the uses of limited operations.
type allowances struct{ *database }

// TakeAllowance takes uses that are free. A question, which takes none, writes nothing.
func (s *allowances) TakeAllowance(ctx context.Context, a store.Allowance) (out store.Allowed, err error) {
	run := s.writeShared
	if a.Want == 0 {
		run = s.read
	}
	err = run(ctx, "take allowance", func(c *conn) error {
		var uses []store.Use
		err := c.each(ctx, `SELECT at, uses FROM allowances WHERE tenant_id = ? AND name = ? AND at > ? AND at <= ? ORDER BY at`,
			[]driver.Value{a.TenantID[:], a.Name, micros(a.Now.Add(-a.Per)), micros(a.Now.Add(a.Per))}, func(r *rows) error {
				uses = append(uses, store.Use{At: r.time(0), N: int(r.int(1))})
				return nil
			})
		if err != nil {
			return err
		}
		if out = a.Grant(uses); out.Granted == 0 {
			return nil
		}
		_, err = c.exec(`INSERT INTO allowances (tenant_id, name, at, expires_at, uses) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET uses = uses + excluded.uses`,
			a.TenantID[:], a.Name, micros(a.Now), micros(a.Now.Add(a.Per)), int64(out.Granted))
		return err
	})
	return out, err
}

// ReturnAllowance gives back uses.
func (s *allowances) ReturnAllowance(ctx context.Context, tenant godwit.TenantID, name string, at time.Time, n int) error {
	return s.write(ctx, "return allowance", func(c *conn) error {
		_, err := c.exec(`UPDATE allowances SET uses = max(uses - ?, 0) WHERE tenant_id = ? AND name = ? AND at = ?`,
			int64(n), tenant[:], name, micros(at))
		return err
	})
}
