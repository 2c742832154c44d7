package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Every process adds to rows of a slot of its own: a row stays locked until its transaction ends, so nodes with a common slot would
// commit one after the other. Two processes may draw the same slot; then they wait, and count rightly. Commands of a tenant take
// turns anyway, on the lock of its head, so one slot serves those of all nodes.
const commandSlot = 0

func newUsageSlot() int { return 1 + rand.N(1<<30) }

// A usageRow is usage to add, with a part of the log row of the history. With a record it counts only if the stored record belongs to the accept.
type usageRow struct {
	*store.Tallied
	record *godwit.IdempotencyRecord // nil: counts in any case
	first  godwit.EventID
}

var usageColumns = []string{
	"tenant_id uuid", "events int8", "deliveries int8", "attempts int8", "bytes_accepted int8", "bytes_sent int8", "record_id bytea", "first_id uuid", "stats bytea",
}

// The rows of a transaction are locked in the order of tenants. The log row is part of the statement, since each statement costs the server some 10 µs.
var addUsage = prepared("usage", `WITH n AS MATERIALIZED (SELECT * FROM `+rows(1, usageColumns...)+` AS n
		WHERE record_id IS NULL OR EXISTS (SELECT FROM idempotency_records AS r WHERE r.id = n.record_id AND r.event_id = n.first_id)),
	logged AS (INSERT INTO stats_log (state, data) SELECT 0, string_agg(stats, '') FROM n HAVING count(*) > 0)
	INSERT INTO usage AS u (tenant_id, day, slot, events, deliveries, attempts, bytes_accepted, bytes_sent)
	SELECT tenant_id, ($10::timestamptz AT TIME ZONE 'UTC')::date, $11::int8, sum(events), sum(deliveries), sum(attempts), sum(bytes_accepted), sum(bytes_sent)
	FROM n GROUP BY tenant_id ORDER BY tenant_id
	ON CONFLICT (tenant_id, day, slot) DO UPDATE SET events = u.events + excluded.events, deliveries = u.deliveries + excluded.deliveries,
		attempts = u.attempts + excluded.attempts, bytes_accepted = u.bytes_accepted + excluded.bytes_accepted, bytes_sent = u.bytes_sent + excluded.bytes_sent`)

func addUsageRows(p *pipeline, list []usageRow, now time.Time, slot int) {
	if len(list) == 0 {
		return
	}
	keyed := func(u usageRow) bool { return u.record != nil }
	a := p.begin()
	column(a, typeID, list, func(u usageRow) { a.id(u.Stats.Tenant) })
	column(a, typeInt8, list, func(u usageRow) { a.int8(u.Events) })
	column(a, typeInt8, list, func(u usageRow) { a.int8(u.Deliveries) })
	column(a, typeInt8, list, func(u usageRow) { a.int8(u.Attempts) })
	column(a, typeInt8, list, func(u usageRow) { a.int8(u.BytesAccepted) })
	column(a, typeInt8, list, func(u usageRow) { a.int8(u.BytesSent) })
	rareColumn(a, typeBytes, list, keyed, func(u usageRow) { a.bytes(u.record.ID[:]) })
	rareColumn(a, typeID, list, keyed, func(u usageRow) { a.id(u.first) })
	var segment []byte
	column(a, typeBytes, list, func(u usageRow) {
		segment = u.Stats.Append(segment[:0])
		a.bytes(segment)
	})
	a.scalarTime(now)
	a.scalarInt8(int64(slot))
	p.add(addUsage, nil)
}

// count counts storing the event, or its further deliveries.
func (e *newEvent) count(of *store.Tallied) {
	if !e.stored && e.part == nil {
		of.Event(e.event)
	}
	for i := range e.deliveries {
		of.Delivery(e.deliveries[i].EndpointID)
	}
}

// usage returns the usage of the batch: a row for each tenant, and one for each keyed accept and tenant of it, since only the database
// knows which of those accepts it stores.
func (c *commit) usage() []usageRow {
	var list []usageRow // the keyed ones first, see rareColumn
	for i := range c.keyed {
		e := &c.keyed[i]
		last := len(list) - 1
		if last < 0 || list[last].record != e.record || list[last].Stats.Tenant != e.event.TenantID {
			list = append(list, usageRow{store.NewTallied(e.event.TenantID, c.batch.Now), e.record, e.first})
			last++
		}
		e.count(list[last].Tallied)
	}
	used := c.attempted
	if used == nil {
		used = store.NewTally(c.batch.Now)
	}
	for i := range c.plain {
		c.plain[i].count(used.Of(c.plain[i].event.TenantID))
	}
	return append(list, tallied(used)...)
}

func tallied(used *store.Tally) (list []usageRow) {
	_ = used.Each(func(_ godwit.TenantID, of *store.Tallied) error {
		list = append(list, usageRow{Tallied: of})
		return nil
	})
	return list
}

// usages reads what tenants used.
type usages struct{ *database }

// sumUsage are the columns of a day, added up over slots and tenants.
const sumUsage = `u.day, sum(u.events)::int8, sum(u.deliveries)::int8, sum(u.attempts)::int8, sum(u.bytes_accepted)::int8, sum(u.bytes_sent)::int8`

func scanUsage(d *godwit.DayUsage) []any {
	return []any{&d.Day, &d.Events, &d.Deliveries, &d.Attempts, &d.BytesAccepted, &d.BytesSent}
}

// ofUsage selects tenants.
func (w *where) ofUsage(f store.UsageFilter) {
	if !f.Environment.IsZero() {
		w.add("t.environment_id = ?", [16]byte(f.Environment))
	}
	if !f.Tenant.IsZero() {
		w.add("t.id = ?", [16]byte(f.Tenant))
	}
}

// ListUsage lists tenants with usage, newest first.
func (s *usages) ListUsage(ctx context.Context, f store.UsageFilter, p store.Page) ([]godwit.TenantUsage, error) {
	var w where
	w.add("EXISTS (SELECT FROM usage AS u WHERE u.tenant_id = t.id AND u.day BETWEEN ?::date AND ?::date)", godwit.DayOf(f.From), godwit.DayOf(f.To))
	w.ofUsage(f)
	if p.After != ([16]byte{}) {
		w.add("t.id < ?", p.After)
	}
	r, err := s.pool.Query(ctx, `SELECT t.id, t.uid, `+sumUsage+` FROM (SELECT t.id, t.uid FROM tenants AS t`+w.sql()+fmt.Sprintf(` ORDER BY t.id DESC LIMIT %d) AS t
		JOIN usage AS u ON u.tenant_id = t.id AND u.day BETWEEN $1::date AND $2::date
		GROUP BY t.id, t.uid, u.day ORDER BY t.id DESC, u.day`, max(p.Limit, 0)), w.args...)
	if err != nil {
		return nil, failed("list usage", err)
	}
	var list []godwit.TenantUsage
	var id [16]byte
	var uid string
	var d godwit.DayUsage
	_, err = pgx.ForEachRow(r, append([]any{&id, &uid}, scanUsage(&d)...), func() error {
		if len(list) == 0 || list[len(list)-1].TenantID != id {
			list = append(list, godwit.TenantUsage{TenantID: id, UID: uid})
		}
		t := &list[len(list)-1]
		t.Days = append(t.Days, d)
		return nil
	})
	return list, failed("list usage", err)
}

// SumUsage adds up the usage of tenants by day.
func (s *usages) SumUsage(ctx context.Context, f store.UsageFilter) (list []godwit.DayUsage, err error) {
	var w where
	w.add("u.day BETWEEN ?::date AND ?::date", godwit.DayOf(f.From), godwit.DayOf(f.To))
	w.ofUsage(f)
	r, err := s.pool.Query(ctx, `SELECT `+sumUsage+` FROM usage AS u JOIN tenants AS t ON t.id = u.tenant_id`+w.sql()+` GROUP BY u.day ORDER BY u.day`, w.args...)
	if err != nil {
		return nil, failed("sum usage", err)
	}
	var d godwit.DayUsage
	_, err = pgx.ForEachRow(r, scanUsage(&d), func() error {
		list = append(list, d)
		return nil
	})
	return list, failed("sum usage", err)
}
