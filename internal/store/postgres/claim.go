package postgres

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// claimRows are the claims of a statement, and heldClaims those of them whose lease has their epoch. The statement before it has
// locked the leases; see lockLeases.
var (
	claimRows  = rows(1, "shard int2", "endpoint_id uuid", "epoch int8", "now timestamptz", "most int8", "most_bytes int8")
	heldClaims = claimRows + ` AS c JOIN leases AS l ON l.shard = c.shard AND l.epoch = c.epoch AND l.owner <> ''`
)

var (
	// The inner select walks the index of an endpoint's due deliveries and stops at the limit; sizes are read only then.
	claimDue = prepared("claim", `WITH due AS MATERIALIZED (
			SELECT p.tenant_id, p.id, p.event_id, p.endpoint_id, p.due_at, c.epoch, c.most_bytes
			FROM `+heldClaims+` CROSS JOIN LATERAL (
				SELECT tenant_id, id, event_id, endpoint_id, due_at FROM pending_deliveries
				WHERE shard = c.shard AND endpoint_id = c.endpoint_id AND claim_epoch = 0 AND due_at <= c.now
				ORDER BY due_at LIMIT c.most FOR UPDATE SKIP LOCKED) AS p),
		fitting AS MATERIALIZED (
			SELECT due.tenant_id, due.id, due.epoch, due.most_bytes, e.principal, e.created_at, e.type, e.key, e.content_type, e.attributes,
				e.body, e.format, e.source_id, e.occurred_at, e.carried,
				row_number() OVER first AS place, sum(octet_length(e.body)) OVER first AS bytes
			FROM due JOIN events AS e ON e.tenant_id = due.tenant_id AND e.id = due.event_id
			WINDOW first AS (PARTITION BY due.endpoint_id ORDER BY due.due_at, due.id))
		UPDATE pending_deliveries AS p SET claim_epoch = e.epoch FROM fitting AS e
		WHERE p.tenant_id = e.tenant_id AND p.id = e.id AND (e.place = 1 OR e.bytes <= e.most_bytes)
		RETURNING p.tenant_id, p.id, p.event_id, p.endpoint_id, p.created_at, p.updated_at, p.due_at, p.run_first_at,
			p.attempts, p.last_status, p.run_attempts, p.run_refreshed, 'pending', p.reason, p.run_trigger, p.run_actor,
			e.principal, e.created_at, e.type, e.key, e.content_type, e.attributes, e.body, e.format, e.source_id, e.occurred_at,
			e.carried`)
	// It runs after the claim and sees all that the claim saw, so that the version covers the claimed deliveries.
	nextDue = prepared("next_due", `SELECT c.endpoint_id, (SELECT version FROM config_version WHERE one), (SELECT due_at FROM pending_deliveries
			WHERE shard = c.shard AND endpoint_id = c.endpoint_id AND claim_epoch = 0 ORDER BY due_at LIMIT 1)
		FROM `+heldClaims)
)

// claims hands due deliveries to the engine.
type claims struct {
	*database
	leases *leases // locks out other claims
}

// ClaimDue claims in one round trip. Its cost depends on the limits, not on the number of waiting deliveries.
func (s *claims) ClaimDue(ctx context.Context, list []store.Claim) ([]store.Claimed, error) {
	if len(list) == 0 {
		return nil, nil
	}
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("claim due", err)
	}
	defer conn.Release()
	out := make([]store.Claimed, len(list))
	of := make(map[godwit.EndpointID]*store.Claimed, len(list))
	for i := range list {
		out[i].Err = store.ErrFenced // until the store says that the lease is held
		of[list[i].EndpointID] = &out[i]
	}
	p := newPipeline(ctx, conn.Conn().PgConn())
	p.begin()
	p.add(lockLeases, nil)
	writeClaims(p.begin(), list)
	unreadable := map[*store.Claimed]error{}
	p.add(claimDue, func(r *row) {
		w, err := readWork(r)
		c := of[w.Delivery.EndpointID]
		if err != nil {
			unreadable[c] = err
			return
		}
		c.Work = append(c.Work, w)
	})
	writeClaims(p.begin(), list)
	p.add(nextDue, func(r *row) {
		var id godwit.EndpointID
		r.id((*[16]byte)(&id))
		c := of[id]
		c.Err, c.ConfigVersion, c.NextDue = failed("claim due", unreadable[c]), r.int8(), r.time()
	})
	if err := p.run(); err != nil {
		return nil, hotFailed("claim due", err)
	}
	for i := range out {
		slices.SortFunc(out[i].Work, func(a, b godwit.Work) int {
			return cmp.Or(a.Delivery.DueAt.Compare(b.Delivery.DueAt), bytes.Compare(a.Delivery.ID[:], b.Delivery.ID[:]))
		})
	}
	return out, nil
}

func writeClaims(a *parameters, list []store.Claim) {
	column(a, typeInt2, list, func(c store.Claim) { a.int2(c.EndpointID.Shard()) })
	column(a, typeID, list, func(c store.Claim) { a.id(c.EndpointID) })
	column(a, typeInt8, list, func(c store.Claim) { a.int8(c.Epoch) })
	column(a, typeTime, list, func(c store.Claim) { a.time(c.Now) })
	column(a, typeInt8, list, func(c store.Claim) { a.int8(int64(max(c.Limit, 0))) })
	column(a, typeInt8, list, func(c store.Claim) {
		if c.MaxBytes <= 0 {
			a.int8(math.MaxInt64)
			return
		}
		a.int8(int64(c.MaxBytes))
	})
}

func readWork(r *row) (godwit.Work, error) {
	var w godwit.Work
	d := &w.Delivery
	r.id((*[16]byte)(&d.TenantID))
	r.id((*[16]byte)(&d.ID))
	r.id((*[16]byte)(&d.EventID))
	r.id((*[16]byte)(&d.EndpointID))
	d.CreatedAt = r.time()
	d.UpdatedAt = r.time()
	d.DueAt = r.time()
	d.Run.FirstAt = r.time()
	d.Attempts = r.int4()
	d.LastStatus = r.int4()
	d.Run.Attempts = r.int4()
	d.Run.Refreshed = r.bool()
	d.Status = godwit.DeliveryStatus(r.text())
	d.Reason = godwit.Reason(r.text())
	d.Run.Trigger = godwit.Trigger(r.text())
	d.Run.Actor = r.text()
	e := &godwit.Event{ID: d.EventID, TenantID: d.TenantID}
	w.Event = e
	r.id((*[16]byte)(&e.Principal))
	e.CreatedAt = r.time()
	e.Type = r.text()
	e.Key = r.text()
	e.ContentType = r.text()
	if err := decodeMap(r.raw(), &e.Attributes); err != nil {
		return w, err
	}
	e.Body = r.bytes()
	e.Format = r.text()
	e.SourceID = r.text()
	e.OccurredAt = r.time()
	return w, decodeCarried(r.raw(), e)
}

// Reclaim first waits for claims still in progress on lost connections. Then it reads all pending deliveries of the endpoint's
// tenant: claimed rows have no index, since nearly every delivery would pass through it, and Reclaim runs only after an answer
// was lost.
func (s *claims) Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error) {
	if err := s.leases.change(ctx, func(*pgx.Batch) {}); err != nil {
		return 0, failed("reclaim", err)
	}
	tag, err := s.pool.Exec(ctx, `WITH lost AS MATERIALIZED (SELECT tenant_id, id FROM pending_deliveries
			WHERE tenant_id = (SELECT tenant_id FROM endpoints WHERE id = $1) AND endpoint_id = $1
				AND claim_epoch = $2 AND claim_epoch <> 0 AND NOT id = ANY ($3) ORDER BY id FOR UPDATE)
		UPDATE pending_deliveries AS p SET claim_epoch = 0, due_at = $4 FROM lost WHERE p.tenant_id = lost.tenant_id AND p.id = lost.id`,
		[16]byte(endpoint), epoch, rawIDs(held), now)
	return int(tag.RowsAffected()), failed("reclaim", err)
}

// endpointsDue hops from endpoint to endpoint through the index and reads one entry of each.
var endpointsDue = prepared("endpoints_due", `WITH RECURSIVE hop AS (
		SELECT s.shard, p.endpoint_id, p.due_at FROM unnest($1::int2[]) AS s (shard) CROSS JOIN LATERAL (
			SELECT endpoint_id, due_at FROM pending_deliveries
			WHERE shard = s.shard AND claim_epoch = 0 ORDER BY endpoint_id, due_at LIMIT 1) AS p
		UNION ALL
		SELECT hop.shard, p.endpoint_id, p.due_at FROM hop CROSS JOIN LATERAL (
			SELECT endpoint_id, due_at FROM pending_deliveries
			WHERE shard = hop.shard AND claim_epoch = 0 AND endpoint_id > hop.endpoint_id
			ORDER BY endpoint_id, due_at LIMIT 1) AS p)
	SELECT endpoint_id, due_at FROM hop`)

// EndpointsDue lists endpoints with unclaimed pending deliveries.
func (s *claims) EndpointsDue(ctx context.Context, shards []int) ([]store.EndpointDue, error) {
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("list endpoints due", err)
	}
	defer conn.Release()
	p := newPipeline(ctx, conn.Conn().PgConn())
	a := p.begin()
	column(a, typeInt2, shards, func(s int) { a.int2(s) })
	var list []store.EndpointDue
	p.add(endpointsDue, func(r *row) {
		var d store.EndpointDue
		r.id((*[16]byte)(&d.EndpointID))
		d.NextDue = r.time()
		list = append(list, d)
	})
	if err := p.run(); err != nil {
		return nil, hotFailed("list endpoints due", err)
	}
	return list, nil
}

// BringBack corrects due times that were set while the clock was ahead.
func (s *claims) BringBack(ctx context.Context, now time.Time, endpoints []store.Lateness) (int, error) {
	shards, ids := make([]int16, len(endpoints)), make([][16]byte, len(endpoints))
	after, latest := make([]time.Time, len(endpoints)), make([]time.Time, len(endpoints))
	for i, e := range endpoints {
		shards[i], ids[i], after[i], latest[i] = int16(e.EndpointID.Shard()), e.EndpointID, e.After, e.Latest
	}
	tag, err := s.pool.Exec(ctx, `UPDATE pending_deliveries AS p SET
			due_at = CASE WHEN p.updated_at > $1 THEN $1 + least(greatest(p.due_at - p.updated_at, '0'), e.latest - $1) ELSE $1 END,
			run_first_at = CASE WHEN p.run_first_at > $1 THEN $1 ELSE p.run_first_at END, updated_at = least(p.updated_at, $1)
		FROM (SELECT p.tenant_id, p.id, e.latest FROM pending_deliveries AS p
			JOIN unnest($2::int2[], $3::uuid[], $4::timestamptz[], $5::timestamptz[]) AS e (shard, id, after, latest) ON p.shard = e.shard AND p.endpoint_id = e.id
			WHERE p.claim_epoch = 0 AND p.due_at > e.after AND (p.updated_at > $1 OR p.due_at > e.latest) ORDER BY p.tenant_id, p.id FOR UPDATE OF p) AS e
		WHERE p.tenant_id = e.tenant_id AND p.id = e.id`, now, shards, ids, after, latest)
	return int(tag.RowsAffected()), failed("bring due times back", err)
}
