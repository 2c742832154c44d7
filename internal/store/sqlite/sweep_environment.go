package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// tenantsAtOnce is how many tenants one step of a sweep of an environment looks at. Most have nothing that expired.
const tenantsAtOnce = 100

// SweepEnvironment takes one step through the tenants of an environment, deleted ones too. It finds what expired with a reader, and writes only for
// tenants that have such rows.
func (s *sweeps) SweepEnvironment(ctx context.Context, w store.EnvironmentSweep) (*store.EnvironmentSwept, error) {
	out := &store.EnvironmentSwept{}
	var list []godwit.TenantID
	err := s.read(ctx, "find tenants to sweep", func(c *conn) error {
		return c.each(ctx, "SELECT id FROM tenants WHERE environment_id = ? AND id >= ? AND home = 0 ORDER BY id LIMIT ?",
			[]driver.Value{w.Environment[:], w.From.Tenant[:], int64(tenantsAtOnce + 1)},
			func(r *rows) error { list = append(list, r.id(0)); return nil })
	})
	if err != nil {
		return nil, err
	}
	for i, tenant := range list {
		if out.Next = (store.EnvironmentCursor{Tenant: tenant}); tenant == w.From.Tenant {
			out.Next.Event = w.From.Event
		}
		if out.Events+out.Deliveries+out.DeadLetters >= int64(w.Limit) || i == tenantsAtOnce {
			out.More = true
			return out, nil
		}
		if out.More, err = s.sweepTenant(ctx, &w, out); err != nil || out.More {
			return out, err
		}
	}
	return out, nil
}

// sweepTenant removes expired rows of the tenant at the cursor. more reports that there may be further ones, behind the cursor.
func (s *sweeps) sweepTenant(ctx context.Context, w *store.EnvironmentSweep, out *store.EnvironmentSwept) (more bool, err error) {
	if more, err = s.sweepTenantEvents(ctx, w, out); err != nil || more {
		return more, err
	}
	letters, err := s.expiredLetters(ctx, w, out.Next.Tenant)
	if err != nil || len(letters) == 0 {
		return false, err
	}
	err = s.write(ctx, "sweep dead letters of an environment", func(c *conn) error {
		for _, id := range letters {
			if err := sweepLetter(ctx, c, w, out.Next.Tenant, id, &out.Swept); err != nil {
				return err
			}
		}
		return nil
	})
	return len(letters) == w.Limit, err
}

// sweepTenantEvents looks at the next events of the tenant at the cursor that are old enough, and moves the cursor.
func (s *sweeps) sweepTenantEvents(ctx context.Context, w *store.EnvironmentSweep, out *store.EnvironmentSwept) (more bool, err error) {
	if w.EventsBefore.IsZero() {
		return false, nil
	}
	tenant := out.Next.Tenant
	var firstAt func(time.Time) godwit.EventID = godwit.FirstIDAt
	end := firstAt(w.EventsBefore.Add(slack))
	const old = " FROM events WHERE tenant_id = ? AND id > ? AND id < ? ORDER BY id LIMIT ?"
	args := []driver.Value{tenant[:], out.Next.Event[:], end[:], int64(w.Limit)}
	any := false
	err = s.read(ctx, "find expired events of an environment", func(c *conn) error {
		any, err = c.one(ctx, "SELECT 1"+old, append(args[:3:3], int64(1)), nil)
		return err
	})
	if err != nil || !any {
		return false, err
	}
	next := out.Next.Event
	err = s.write(ctx, "sweep events of an environment", func(c *conn) error {
		var found []oldEvent
		err := c.each(ctx, "SELECT n, id, kept_since, deliveries"+old, args, func(r *rows) error {
			found = append(found, oldEvent{n: r.int(0), tenant: tenant, id: r.id(1), recipients: r.blob(3), old: r.int(2) < micros(w.EventsBefore)})
			return nil
		})
		if err != nil {
			return err
		}
		fanningOut, err := eventsFanningOut(ctx, c)
		if err != nil {
			return err
		}
		for i := range found {
			if e := &found[i]; e.old && !fanningOut[e.id] {
				e.ended = true
				if _, err := s.sweepEvent(ctx, c, e, w.EventsBefore, &out.Swept); err != nil {
					return err
				}
			}
			next = found[i].id
		}
		more = len(found) == w.Limit
		return nil
	})
	out.Next.Event = next
	return more, err
}

// expiredLetters lists dead letters of a tenant that expired. A letter is not older than its delivery, and ids are in the order of age.
func (s *sweeps) expiredLetters(ctx context.Context, w *store.EnvironmentSweep, tenant godwit.TenantID) (letters []godwit.DeliveryID, err error) {
	if w.DeadLettersBefore.IsZero() {
		return nil, nil
	}
	var firstAt func(time.Time) godwit.DeliveryID = godwit.FirstIDAt
	end := firstAt(w.DeadLettersBefore.Add(slack))
	err = s.read(ctx, "find expired dead letters of an environment", func(c *conn) error {
		return c.each(ctx, "SELECT id FROM dead_letters WHERE tenant_id = ? AND id < ? AND dead_at < ? LIMIT ?",
			[]driver.Value{tenant[:], end[:], micros(w.DeadLettersBefore), int64(w.Limit)},
			func(r *rows) error { letters = append(letters, r.id(0)); return nil })
	})
	return letters, err
}

// sweepLetter removes a dead letter, with its attempts if its event is gone.
func sweepLetter(ctx context.Context, c *conn, w *store.EnvironmentSweep, tenant godwit.TenantID, id godwit.DeliveryID, out *store.Swept) error {
	n, err := c.exec("DELETE FROM dead_letters WHERE tenant_id = ? AND id = ? AND dead_at < ?", tenant[:], id[:], micros(w.DeadLettersBefore))
	if err != nil || n == 0 {
		return err
	}
	out.DeadLetters += n
	kept, err := c.one(ctx, "SELECT 1 FROM deliveries WHERE tenant_id = ? AND id = ?", ids(tenant[:], id[:]), nil)
	if err != nil || kept {
		return err
	}
	n, err = c.exec("DELETE FROM attempts WHERE delivery_id = ?", id[:])
	out.Attempts += n
	return err
}
