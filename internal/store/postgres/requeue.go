package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Requeue makes deliveries due: pending ones in their run, finished and dead ones in a new run.
func (s *deliveries) Requeue(ctx context.Context, r store.Requeue) ([]godwit.Delivery, error) {
	if len(r.Deliveries) == 0 {
		return nil, nil
	}
	var made []*godwit.Delivery
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		made, err = requeueDeliveries(ctx, tx, r)
		return err
	})
	if err != nil {
		return nil, failed("requeue deliveries", err)
	}
	return values(made), nil
}

func requeueDeliveries(ctx context.Context, tx session, r store.Requeue) ([]*godwit.Delivery, error) {
	if err := lockRequeue(ctx, tx, r.TenantID); err != nil {
		return nil, err
	}
	q := requeue{tx: tx, Requeue: r, ids: rawIDs(r.Deliveries), statuses: []string{}}
	for _, status := range r.Only {
		q.statuses = append(q.statuses, string(status))
	}
	var due []*godwit.Delivery
	if r.Takes(godwit.DeliveryPending) {
		var err error
		if due, err = q.makeDue(ctx); err != nil {
			return nil, err
		}
	}
	if err := q.leaveOtherLetters(ctx); err != nil {
		return nil, err
	}
	if err := q.restoreEvents(ctx); err != nil {
		return nil, err
	}
	again, err := q.runAgain(ctx)
	return append(due, again...), err
}

// lockRequeue makes two requests of one tenant take turns, so that they do not deadlock.
func lockRequeue(ctx context.Context, q session, tenant godwit.TenantID) error {
	_, err := q.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(requeueLock), tenant.String())
	return err
}

type requeue struct {
	tx session
	store.Requeue
	ids      [][16]byte
	statuses []string // that Requeue.Only names; empty: all
}

// meant is the condition of Requeue.Only on a finished delivery or a dead letter; $4 are the statuses.
const meant = ` AND (cardinality($4::text[]) = 0 OR status = ANY ($4::text[]))`

// leaveOtherLetters removes ids of deliveries whose dead letter has a status that Requeue.Only excludes: their events are not
// restored.
func (q *requeue) leaveOtherLetters(ctx context.Context) error {
	if len(q.statuses) == 0 {
		return nil
	}
	r, err := q.tx.Query(ctx, `SELECT id FROM dead_letters WHERE tenant_id = $1 AND id = ANY ($2) AND replayed_at IS NULL AND status <> ALL ($3::text[])`,
		[16]byte(q.TenantID), q.ids, q.statuses)
	if err != nil {
		return err
	}
	others, err := pgx.CollectRows(r, pgx.RowTo[[16]byte])
	q.ids = slices.DeleteFunc(q.ids, func(id [16]byte) bool { return slices.Contains(others, id) })
	return err
}

// makeDue makes pending unclaimed deliveries due.
func (q *requeue) makeDue(ctx context.Context) ([]*godwit.Delivery, error) {
	r, err := q.tx.Query(ctx, `WITH d AS MATERIALIZED (SELECT `+pendingFields+` FROM pending_deliveries
			WHERE tenant_id = $1 AND id = ANY ($2) AND claim_epoch = 0 ORDER BY id FOR UPDATE)
		SELECT `+typed+` FROM d`, [16]byte(q.TenantID), q.ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(r, scanDelivery)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	batch := &pgx.Batch{}
	for _, d := range list {
		d.Requeue(q.Trigger, q.Actor, q.Now)
		batch.Queue(`UPDATE pending_deliveries SET due_at = $3, updated_at = $4 WHERE tenant_id = $1 AND id = $2`,
			[16]byte(d.TenantID), [16]byte(d.ID), d.DueAt, d.UpdatedAt)
	}
	return list, q.tx.SendBatch(ctx, batch).Close()
}

// restoreEvents restores swept events from their dead letters; they count as new from now on. It locks existing events against
// sweeps until the end of the transaction.
func (q *requeue) restoreEvents(ctx context.Context) error {
	_, err := q.tx.Exec(ctx, `SELECT FROM events AS e JOIN deliveries AS d ON e.tenant_id = d.tenant_id AND e.id = d.event_id
		WHERE d.tenant_id = $1 AND d.id = ANY ($2) FOR KEY SHARE OF e`, [16]byte(q.TenantID), q.ids)
	if err != nil {
		return err
	}
	events, slots, err := q.sweptEvents(ctx)
	if err != nil {
		return err
	}
	_, err = q.tx.Exec(ctx, `WITH swept AS (
			SELECT DISTINCT ON (d.event_id) d.*, n.key_slot, string_agg(uuid_send(d.id), ''::bytea) OVER (PARTITION BY d.event_id) AS ids
			FROM unnest($3::uuid[], $4::int8[]) AS n (event_id, key_slot)
			JOIN dead_letters AS d ON d.event_id = n.event_id AND d.tenant_id = $1 AND d.id = ANY ($2) AND d.replayed_at IS NULL),
		restored AS (
			INSERT INTO events (tenant_id, id, principal, created_at, type, key, content_type, key_slot, deliveries, attributes, body,
				format, source_id, occurred_at, carried)
			SELECT tenant_id, event_id, event_principal, event_created_at, event_type, event_key, event_content_type, key_slot,
				ids, event_attributes, event_body, event_format, event_source_id, event_occurred_at, event_carried FROM swept
			ON CONFLICT DO NOTHING RETURNING tenant_id, id)
		INSERT INTO kept_events (tenant_id, id, kept_at) SELECT tenant_id, id, $5 FROM restored
		ON CONFLICT (tenant_id, id) DO UPDATE SET kept_at = excluded.kept_at`, [16]byte(q.TenantID), q.ids, events, slots, q.Now)
	if err != nil {
		return err
	}
	// An event that was restored earlier, with another of its deliveries, gains this one.
	_, err = q.tx.Exec(ctx, `UPDATE events AS e SET deliveries = e.deliveries || n.deliveries FROM (
			SELECT d.tenant_id, d.event_id, string_agg(uuid_send(d.id), ''::bytea) AS deliveries
			FROM dead_letters AS d JOIN events AS e ON e.tenant_id = d.tenant_id AND e.id = d.event_id
			WHERE d.tenant_id = $1 AND d.id = ANY ($2) AND d.replayed_at IS NULL AND position(uuid_send(d.id) IN e.deliveries) = 0
			GROUP BY d.tenant_id, d.event_id) AS n
		WHERE e.tenant_id = n.tenant_id AND e.id = n.event_id`, [16]byte(q.TenantID), q.ids)
	return err
}

// sweptEvents lists events that exist only in dead letters, with their position in the index over keys.
func (q *requeue) sweptEvents(ctx context.Context) (events [][16]byte, slots []int64, err error) {
	r, err := q.tx.Query(ctx, `SELECT DISTINCT d.event_id, d.event_key FROM dead_letters AS d WHERE d.tenant_id = $1 AND d.id = ANY ($2) AND d.replayed_at IS NULL
		AND NOT EXISTS (SELECT FROM events AS e WHERE e.tenant_id = d.tenant_id AND e.id = d.event_id)`, [16]byte(q.TenantID), q.ids)
	if err != nil {
		return nil, nil, err
	}
	var id [16]byte
	var key string
	_, err = pgx.ForEachRow(r, []any{&id, &key}, func() error {
		events, slots = append(events, id), append(slots, keySlot(id, key))
		return nil
	})
	return events, slots, err
}

// runAgain moves finished deliveries whose event is stored back to the pending ones, in a new run. It marks their open dead
// letters as replayed; a dead letter replaces a swept delivery.
func (q *requeue) runAgain(ctx context.Context) ([]*godwit.Delivery, error) {
	rows, err := q.tx.Query(ctx, `WITH finished AS (
			DELETE FROM deliveries AS d WHERE d.tenant_id = $1 AND d.id = ANY ($2)`+meant+`
				AND EXISTS (SELECT FROM events AS e WHERE e.tenant_id = d.tenant_id AND e.id = d.event_id)
			RETURNING `+deliveryFields+`),
		dead AS (UPDATE dead_letters SET replayed_at = $3 WHERE tenant_id = $1 AND id = ANY ($2) AND replayed_at IS NULL`+meant+`
			RETURNING `+deliveryFields+`),
		d AS (SELECT * FROM finished
			UNION ALL SELECT * FROM dead WHERE NOT EXISTS (SELECT FROM finished WHERE finished.id = dead.id))
		SELECT `+typed+` FROM d`, [16]byte(q.TenantID), q.ids, q.Now, q.statuses)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	batch := &pgx.Batch{}
	for _, d := range list {
		d.Requeue(q.Trigger, q.Actor, q.Now)
		batch.Queue(`INSERT INTO pending_deliveries (tenant_id, id, event_id, endpoint_id, claim_epoch, created_at, updated_at,
				due_at, attempts, last_status, shard, run_trigger, run_actor)
			VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $8, $9, $10, $11, $12)`,
			[16]byte(d.TenantID), [16]byte(d.ID), [16]byte(d.EventID), [16]byte(d.EndpointID), optionalTime(d.CreatedAt), d.UpdatedAt,
			d.DueAt, d.Attempts, d.LastStatus, d.EndpointID.Shard(), string(d.Run.Trigger), clean(d.Run.Actor))
	}
	return list, q.tx.SendBatch(ctx, batch).Close()
}
