package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// allowances counts the uses of limited operations.
type allowances struct{ *database }

// TakeAllowance takes uses that are free. Takers of one allowance take turns, since each must see the uses of the others.
func (s *allowances) TakeAllowance(ctx context.Context, a store.Allowance) (out store.Allowed, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if a.Want > 0 {
			_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(allowanceLock), a.TenantID.String()+a.Name)
			if err != nil {
				return err
			}
		}
		r, err := tx.Query(ctx, `SELECT at, uses FROM allowances WHERE tenant_id = $1 AND name = $2 AND at > $3 AND at <= $4 ORDER BY at`,
			[16]byte(a.TenantID), a.Name, a.Now.Add(-a.Per), a.Now.Add(a.Per))
		if err != nil {
			return err
		}
		uses, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (u store.Use, err error) { return u, r.Scan(scanTime(&u.At), &u.N) })
		if err != nil {
			return err
		}
		if out = a.Grant(uses); out.Granted == 0 {
			return nil
		}
		_, err = tx.Exec(ctx, `INSERT INTO allowances (tenant_id, name, at, expires_at, uses) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant_id, name, at) DO UPDATE SET uses = allowances.uses + excluded.uses`,
			[16]byte(a.TenantID), a.Name, a.Now, a.Now.Add(a.Per), out.Granted)
		return err
	})
	return out, failed("take allowance", err)
}

// ReturnAllowance gives back uses.
func (s *allowances) ReturnAllowance(ctx context.Context, tenant godwit.TenantID, name string, at time.Time, n int) error {
	_, err := s.pool.Exec(ctx, `UPDATE allowances SET uses = greatest(uses - $4, 0) WHERE tenant_id = $1 AND name = $2 AND at = $3`,
		[16]byte(tenant), name, at, n)
	return failed("return allowance", err)
}
