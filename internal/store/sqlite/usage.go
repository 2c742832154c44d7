package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// usages reads what tenants used.
type usages struct{ *database }

const addUsage = `INSERT INTO usage (tenant_id, day, events, deliveries, attempts, bytes_accepted, bytes_sent) VALUES (?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant_id, day) DO UPDATE SET events = events + excluded.events, deliveries = deliveries + excluded.deliveries,
	attempts = attempts + excluded.attempts, bytes_accepted = bytes_accepted + excluded.bytes_accepted, bytes_sent = bytes_sent + excluded.bytes_sent`

// count stores what a transaction counts, in that transaction: usage, and the log row of the history.
func count(c *conn, now time.Time, used *store.Tally) error {
	var row []byte
	err := used.Each(func(tenant godwit.TenantID, of *store.Tallied) error {
		row = of.Stats.Append(row)
		u := &of.Usage
		_, err := c.exec(addUsage, tenant[:], dayNumber(now), u.Events, u.Deliveries, u.Attempts, u.BytesAccepted, u.BytesSent)
		return err
	})
	if err != nil || len(row) == 0 {
		return err
	}
	_, err = c.exec("INSERT INTO stats_log (state, data) VALUES (0, ?)", row)
	return err
}

const daySeconds = 24 * 60 * 60

// dayNumber counts the days since 1970.
func dayNumber(t time.Time) int64 { return godwit.DayOf(t).Unix() / daySeconds }

// ListUsage lists tenants with usage, newest first.
func (s *usages) ListUsage(ctx context.Context, f store.UsageFilter, p store.Page) ([]godwit.TenantUsage, error) {
	from, to := dayNumber(f.From), dayNumber(f.To)
	q := newest("SELECT t.id, t.uid FROM tenants t", "t.id", p)
	q.where("EXISTS (SELECT 1 FROM usage u WHERE u.tenant_id = t.id AND u.day BETWEEN ? AND ?)", from, to)
	q.whereOwner(f)
	var list []godwit.TenantUsage
	err := s.read(ctx, "list usage", func(c *conn) error {
		err := q.each(ctx, c, func(r *rows) error {
			list = append(list, godwit.TenantUsage{TenantID: r.id(0), UID: r.text(1)})
			return nil
		})
		for i := 0; i < len(list) && err == nil; i++ {
			t := &list[i]
			err = c.each(ctx, `SELECT day, events, deliveries, attempts, bytes_accepted, bytes_sent FROM usage
				WHERE tenant_id = ? AND day BETWEEN ? AND ? ORDER BY day`, []driver.Value{t.TenantID[:], from, to}, func(r *rows) error {
				t.Days = append(t.Days, scanDayUsage(r))
				return nil
			})
		}
		return err
	})
	return list, err
}

// whereOwner selects tenants.
func (q *listing) whereOwner(f store.UsageFilter) {
	if !f.Environment.IsZero() {
		q.where("t.environment_id = ?", f.Environment[:])
	}
	if !f.Tenant.IsZero() {
		q.where("t.id = ?", f.Tenant[:])
	}
}

// SumUsage adds up the usage of tenants by day.
func (s *usages) SumUsage(ctx context.Context, f store.UsageFilter) (list []godwit.DayUsage, err error) {
	q := &listing{from: `SELECT u.day, sum(u.events), sum(u.deliveries), sum(u.attempts), sum(u.bytes_accepted), sum(u.bytes_sent)
		FROM usage u JOIN tenants t ON t.id = u.tenant_id`}
	q.where("u.day BETWEEN ? AND ?", dayNumber(f.From), dayNumber(f.To))
	q.whereOwner(f)
	err = s.read(ctx, "sum usage", func(c *conn) error {
		return c.each(ctx, q.from+" WHERE "+strings.Join(q.conds, " AND ")+" GROUP BY u.day ORDER BY u.day", q.args, func(r *rows) error {
			list = append(list, scanDayUsage(r))
			return nil
		})
	})
	return list, err
}

func scanDayUsage(r *rows) godwit.DayUsage {
	return godwit.DayUsage{Day: time.Unix(r.int(0)*daySeconds, 0).UTC(), Usage: godwit.Usage{
		Events: r.int(1), Deliveries: r.int(2), Attempts: r.int(3), BytesAccepted: r.int(4), BytesSent: r.int(5),
	}}
}
