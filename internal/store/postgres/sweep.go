package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// exactBytes is the size of a partition up to which expired rows are deleted at once. In a larger partition they stay until
// the whole partition is dropped: deleting them one by one would cost as much as storing them did.
const exactBytes = 64 << 20

// sweeps removes expired rows.
type sweeps struct {
	*database
	partitions *partitions
	exactBytes int64 // see the constant
}

// Sweep removes a bounded number of expired rows: whole partitions where possible, otherwise single rows.
func (s *sweeps) Sweep(ctx context.Context, w store.Sweep) (*store.Swept, error) {
	sw := &sweep{sweeps: s, Sweep: w, limit: max(w.Limit, 1)}
	if err := s.partitions.prepare(ctx, w.Now); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{
		sw.records, sw.cancelled, sw.expired, sw.events, sw.broadcasts, sw.attempts, sw.deadLetters, sw.notices, sw.rejections, sw.allowances, sw.usage, sw.mergeUsage, sw.sessions, sw.receipts,
	} {
		if err := step(ctx); err != nil {
			return nil, failed("sweep", err)
		}
	}
	return &sw.swept, nil
}

type sweep struct {
	*sweeps
	store.Sweep
	limit int
	swept store.Swept
}

// remove runs a statement that handles at most limit rows.
func (w *sweep) remove(ctx context.Context, count *int64, sql string, args ...any) error {
	tag, err := w.pool.Exec(ctx, sql, args...)
	w.count(count, tag.RowsAffected())
	return err
}

func (w *sweep) count(count *int64, n int64) {
	*count += n
	if n >= int64(w.limit) {
		w.swept.More = true
	}
}

func (w *sweep) records(ctx context.Context) error {
	return w.remove(ctx, &w.swept.Records, `DELETE FROM idempotency_records WHERE id IN (
		SELECT id FROM idempotency_records WHERE expires_at <= $1 AND (response_status IS NOT NULL OR expires_at < $2)
		ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED)`, w.Now, w.UnansweredBefore, w.limit)
}

// receipts removes those of deleted sources.
func (w *sweep) receipts(ctx context.Context) error {
	return w.remove(ctx, &w.swept.Receipts, `DELETE FROM source_receipts WHERE source_id IN (
		SELECT r.source_id FROM source_receipts AS r JOIN sources AS s ON s.id = r.source_id WHERE s.status = 'deleted' LIMIT $1)`, w.limit)
}

func (w *sweep) deadLetters(ctx context.Context) error {
	if w.DeadLettersBefore.IsZero() {
		return nil
	}
	return w.remove(ctx, &w.swept.DeadLetters, `DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM dead_letters WHERE dead_at < $1 ORDER BY dead_at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
		w.DeadLettersBefore, w.limit)
}

func (w *sweep) allowances(ctx context.Context) error {
	return w.remove(ctx, &w.swept.Allowances, `DELETE FROM allowances WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM allowances WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))`, w.Now, w.limit)
}

func (w *sweep) usage(ctx context.Context) error {
	if w.UsageBefore.IsZero() {
		return nil
	}
	return w.remove(ctx, &w.swept.Usage, `DELETE FROM usage WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM usage WHERE day < $1::date ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED))`, godwit.DayOf(w.UsageBefore), w.limit)
}

// mergeUsage puts the rows that processes counted on a past day together in one: every start of a process draws a slot of its own. Processes may
// still add to the day; their rows are merged the next time. Older days than a few were merged before.
func (w *sweep) mergeUsage(ctx context.Context) error {
	if w.UsageBefore.IsZero() {
		return nil
	}
	today := godwit.DayOf(w.Now)
	var merged int64
	return w.remove(ctx, &merged, `WITH apart AS (DELETE FROM usage WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM usage WHERE day >= $1::date - 4 AND day < $1::date AND slot <> $3 ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING *)
		INSERT INTO usage AS u (tenant_id, day, slot, events, deliveries, attempts, bytes_accepted, bytes_sent)
		SELECT tenant_id, day, $3, sum(events), sum(deliveries), sum(attempts), sum(bytes_accepted), sum(bytes_sent) FROM apart GROUP BY tenant_id, day ORDER BY tenant_id
		ON CONFLICT (tenant_id, day, slot) DO UPDATE SET events = u.events + excluded.events, deliveries = u.deliveries + excluded.deliveries,
			attempts = u.attempts + excluded.attempts, bytes_accepted = u.bytes_accepted + excluded.bytes_accepted, bytes_sent = u.bytes_sent + excluded.bytes_sent`,
		today, w.limit, commandSlot)
}

func (w *sweep) notices(ctx context.Context) error {
	if w.NoticesBefore.IsZero() {
		return nil
	}
	return w.remove(ctx, &w.swept.Notices, `DELETE FROM notices WHERE id IN (
		SELECT id FROM notices WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, w.NoticesBefore, w.limit)
}

func (w *sweep) rejections(ctx context.Context) error {
	if w.RejectionsBefore.IsZero() {
		return nil
	}
	return w.remove(ctx, &w.swept.Rejections, `DELETE FROM rejections WHERE id IN (
		SELECT id FROM rejections WHERE at < $1 ORDER BY at LIMIT $2)`, w.RejectionsBefore, w.limit)
}

// cancelled cancels deliveries that wait for deleted endpoints. It hops from endpoint to endpoint, as EndpointsDue does.
func (w *sweep) cancelled(ctx context.Context) error {
	var end godwit.Delivery
	end.Cancel(godwit.ReasonEndpointDeleted, w.Now)
	return w.remove(ctx, &w.swept.Cancelled, fmt.Sprintf(endPending, `WITH RECURSIVE hop AS (
			(SELECT shard, endpoint_id FROM pending_deliveries WHERE claim_epoch = 0 ORDER BY shard, endpoint_id LIMIT 1)
			UNION ALL
			SELECT p.shard, p.endpoint_id FROM hop CROSS JOIN LATERAL (
				SELECT shard, endpoint_id FROM pending_deliveries
				WHERE claim_epoch = 0 AND (shard, endpoint_id) > (hop.shard, hop.endpoint_id) ORDER BY shard, endpoint_id LIMIT 1) AS p)
		SELECT p.tenant_id, p.id FROM hop JOIN endpoints AS e ON e.id = hop.endpoint_id AND e.status = 'deleted'
		CROSS JOIN LATERAL (SELECT tenant_id, id FROM pending_deliveries AS p
			WHERE p.shard = hop.shard AND p.endpoint_id = hop.endpoint_id AND p.claim_epoch = 0 LIMIT $5 FOR UPDATE SKIP LOCKED) AS p LIMIT $5`),
		ending(&end, w.limit)...)
}

// expired ends pending deliveries older than the retention, with a dead letter. Ids follow time, so each tenant's oldest are
// at the beginning of its part of the index.
func (w *sweep) expired(ctx context.Context) error {
	if w.EventsBefore.IsZero() {
		return nil
	}
	var end godwit.Delivery
	end.Expire(w.Now)
	return w.remove(ctx, &w.swept.Expired, `WITH RECURSIVE owner AS (
			(SELECT tenant_id FROM pending_deliveries ORDER BY tenant_id LIMIT 1)
			UNION ALL
			SELECT p.tenant_id FROM owner CROSS JOIN LATERAL (SELECT tenant_id FROM pending_deliveries AS p
				WHERE p.tenant_id > owner.tenant_id ORDER BY tenant_id LIMIT 1) AS p),
		old AS MATERIALIZED (SELECT p.tenant_id, p.id FROM owner CROSS JOIN LATERAL (
			SELECT p.tenant_id, p.id FROM pending_deliveries AS p
			WHERE p.tenant_id = owner.tenant_id AND p.id < $5 AND p.created_at < $6 AND p.claim_epoch = 0
				AND NOT EXISTS (SELECT FROM kept_events AS k WHERE k.tenant_id = p.tenant_id AND k.id = p.event_id AND k.kept_at >= $6)
			ORDER BY p.tenant_id, p.id LIMIT $7 FOR UPDATE SKIP LOCKED) AS p LIMIT $7),
		gone AS (DELETE FROM pending_deliveries AS p USING old
			WHERE p.tenant_id = old.tenant_id AND p.id = old.id AND p.claim_epoch = 0 RETURNING p.*),
		dead AS (INSERT INTO dead_letters (`+names(deadColumns)+`)
			SELECT `+endedFields+`, $3, '', `+storedEvent+` FROM gone AS p
			JOIN events AS e ON e.tenant_id = p.tenant_id AND e.id = p.event_id
			ON CONFLICT `+openLetter+`DO NOTHING)
		INSERT INTO deliveries (`+deliveryFields+`) SELECT `+endedFields+` FROM gone AS p`,
		ending(&end, firstID(w.EventsBefore.Add(skew)), w.EventsBefore, w.limit)...)
}

// endedFields lists the columns of a pending delivery p after its end; ending makes $1 to $4.
const endedFields = `p.tenant_id, p.id, p.event_id, p.endpoint_id, p.created_at, $3, $4::timestamptz, p.run_first_at, p.attempts,
	p.last_status, p.run_attempts, p.run_refreshed, $1, $2,
	p.run_trigger, p.run_actor`

// events removes events with their deliveries.
func (w *sweep) events(ctx context.Context) error {
	if w.EventsBefore.IsZero() {
		return nil
	}
	list, err := partitionsOf(ctx, w.pool, "events")
	if err != nil {
		return err
	}
	for _, p := range list {
		if !p.begunBy(w.EventsBefore) {
			continue
		}
		dropped := false
		if p.endedBy(w.EventsBefore) {
			if dropped, err = w.dropCounted(ctx, p); err != nil {
				return err
			}
		}
		if !dropped && (p.fallback || p.bytes <= w.exactBytes) {
			if err := w.deleteEvents(ctx, p); err != nil {
				return err
			}
		}
	}
	if err := w.stragglers(ctx); err != nil {
		return err
	}
	_, err = w.pool.Exec(ctx, `DELETE FROM kept_events WHERE kept_at < $1`, w.EventsBefore)
	return err
}

// stragglers removes deliveries whose event was dropped with another partition.
func (w *sweep) stragglers(ctx context.Context) error {
	list, err := partitionsOf(ctx, w.pool, "deliveries")
	if err != nil {
		return err
	}
	for _, p := range list {
		if !p.fallback && (!p.begunBy(w.EventsBefore) || p.bytes > w.exactBytes) {
			continue
		}
		err := w.remove(ctx, &w.swept.Deliveries, `DELETE FROM `+p.name+` WHERE ctid = ANY (ARRAY(
			SELECT d.ctid FROM `+p.name+` AS d WHERE d.created_at < $1
				AND NOT EXISTS (SELECT FROM events AS e WHERE e.tenant_id = d.tenant_id AND e.id = d.event_id) LIMIT $2))`,
			w.EventsBefore, w.limit)
		if err != nil {
			return err
		}
	}
	return nil
}

// dropCounted drops a partition and counts its rows: exactly if it is small.
func (w *sweep) dropCounted(ctx context.Context, p partition) (bool, error) {
	events, err := w.rowsIn(ctx, p)
	if err != nil {
		return false, err
	}
	deliveries, err := w.rowsOf(ctx, "deliveries", p.suffix)
	if err != nil {
		return false, err
	}
	dropped, err := w.partitions.dropEvents(ctx, p, w.EventsBefore)
	if dropped {
		w.swept.Events += events
		w.swept.Deliveries += deliveries
		w.swept.More = true
	}
	return dropped, err
}

func (w *sweep) rowsOf(ctx context.Context, table, suffix string) (int64, error) {
	list, err := partitionsOf(ctx, w.pool, table)
	for _, p := range list {
		if p.suffix == suffix {
			return w.rowsIn(ctx, p)
		}
	}
	return 0, err
}

func (w *sweep) rowsIn(ctx context.Context, p partition) (int64, error) {
	if p.bytes > exactBytes {
		return max(p.rows, 0), nil
	}
	var n int64
	err := w.pool.QueryRow(ctx, `SELECT count(*) FROM `+p.name).Scan(&n)
	return n, err
}

// deleteEvents deletes rows of one partition that no pending delivery needs. It locks them before it checks, so that no
// transaction can start to need them in between.
func (w *sweep) deleteEvents(ctx context.Context, p partition) error {
	var events, deliveries int64
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		r, err := tx.Query(ctx, `SELECT e.tenant_id, e.id FROM `+p.name+` AS e WHERE e.created_at < $1
				AND NOT EXISTS (SELECT FROM kept_events AS k WHERE k.tenant_id = e.tenant_id AND k.id = e.id AND k.kept_at >= $1)
				AND `+unneeded+` LIMIT $2 FOR UPDATE OF e SKIP LOCKED`, w.EventsBefore, w.limit)
		if err != nil {
			return err
		}
		var tenants, ids [][16]byte
		var tenant, id [16]byte
		_, err = pgx.ForEachRow(r, []any{&tenant, &id}, func() error {
			tenants, ids = append(tenants, tenant), append(ids, id)
			return nil
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		return tx.QueryRow(ctx, `WITH `+goneEvents(p.name)+`
			SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM followed)`, tenants, ids).Scan(&events, &deliveries)
	})
	w.count(&w.swept.Events, events)
	w.swept.Deliveries += deliveries
	return err
}

// goneEvents deletes the events of a table that $1 (tenants) and $2 (ids) name and that are unneeded, with their deliveries.
func goneEvents(table string) string {
	return `gone AS (
			DELETE FROM ` + table + ` AS e USING unnest($1::uuid[], $2::uuid[]) AS n (tenant_id, id)
			WHERE e.tenant_id = n.tenant_id AND e.id = n.id AND ` + unneeded + ` RETURNING e.tenant_id, e.deliveries),
		followed AS (DELETE FROM deliveries AS d USING gone CROSS JOIN LATERAL ` + idsOf("gone.deliveries") + ` AS n
			WHERE d.tenant_id = gone.tenant_id AND d.id = n.id RETURNING 1)`
}

// unneeded selects events e without a pending delivery and without an incomplete fan-out.
var unneeded = `NOT EXISTS (SELECT FROM ` + idsOf("e.deliveries") + ` AS n
	JOIN pending_deliveries AS p ON p.tenant_id = e.tenant_id AND p.id = n.id)
	AND NOT EXISTS (SELECT FROM fanouts AS f WHERE f.tenant_id = e.tenant_id AND position(uuid_send(e.id) IN f.events) > 0)`

// attempts removes attempts separately: they may have another retention than events.
func (w *sweep) attempts(ctx context.Context) error {
	if w.AttemptsBefore.IsZero() {
		return nil
	}
	list, err := partitionsOf(ctx, w.pool, "attempts")
	if err != nil {
		return err
	}
	for _, p := range list {
		switch {
		case p.endedBy(w.AttemptsBefore):
			n, err := w.rowsIn(ctx, p)
			if err != nil {
				return err
			}
			dropped, err := w.partitions.dropAttempts(ctx, p)
			if err != nil {
				return err
			}
			if dropped {
				w.swept.Attempts += n
				w.swept.More = true
			}
		case p.begunBy(w.AttemptsBefore) && (p.fallback || p.bytes <= w.exactBytes):
			err := w.remove(ctx, &w.swept.Attempts, `DELETE FROM `+p.name+` WHERE ctid = ANY (ARRAY(
				SELECT ctid FROM `+p.name+` WHERE started_at < $1 LIMIT $2))`, w.AttemptsBefore, w.limit)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
