package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// carefulTries bounds how often a commit is repeated because another transaction changed the rows in between.
const carefulTries = 5

// sendWithCare commits a batch that may be partly stored, or may have lost claims. It first reads and locks the rows, and then
// sends the remaining changes through the same pipeline.
func (c *commit) sendWithCare(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := c.lockHeads(ctx, conn.PgConn(), ""); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared($1)`, int64(leaseLock)); err != nil {
			return err
		}
		epochs, err := leaseEpochs(ctx, tx)
		if err != nil {
			return err
		}
		if err := c.leaveMoved(ctx, tx); err != nil {
			return err
		}
		if err := c.leaveMovedBroadcasts(ctx, tx); err != nil {
			return err
		}
		for _, list := range [][]newEvent{c.plain, c.keyed} {
			if err := leaveStored(ctx, tx, list); err != nil {
				return err
			}
			dropStaleClaims(list, epochs)
		}
		if err := c.leaveFenced(ctx, tx); err != nil {
			return err
		}
		c.leaveLost(epochs)
		if err := c.linkEvidence(); err != nil {
			return err
		}
		return c.send(ctx, conn.PgConn(), "")
	})
}

func leaseEpochs(ctx context.Context, tx pgx.Tx) (map[int]int64, error) {
	r, err := tx.Query(ctx, `SELECT shard, epoch FROM leases WHERE owner <> ''`)
	if err != nil {
		return nil, err
	}
	epochs := map[int]int64{}
	var shard int
	var epoch int64
	_, err = pgx.ForEachRow(r, []any{&shard, &epoch}, func() error {
		epochs[shard] = epoch
		return nil
	})
	return epochs, err
}

// leaveStored marks stored events, and leaves out their stored deliveries.
func leaveStored(ctx context.Context, q querier, list []newEvent) error {
	tenants, ids := make([][16]byte, len(list)), make([][16]byte, len(list))
	for i := range list {
		tenants[i], ids[i] = list[i].event.TenantID, list[i].event.ID
	}
	events, err := found(ctx, q, `SELECT e.id FROM unnest($1::uuid[], $2::uuid[]) AS n (tenant_id, id)
		JOIN events AS e ON e.tenant_id = n.tenant_id AND e.id = n.id FOR KEY SHARE OF e`, tenants, ids)
	if err != nil {
		return err
	}
	tenants, ids = tenants[:0], ids[:0]
	for i := range list {
		e := &list[i]
		e.stored = events[e.event.ID]
		for j := range e.deliveries {
			if e.stored {
				tenants, ids = append(tenants, e.event.TenantID), append(ids, e.deliveries[j].ID)
			}
		}
	}
	deliveries, err := found(ctx, q, `SELECT n.id FROM unnest($1::uuid[], $2::uuid[]) AS n (tenant_id, id)
		WHERE EXISTS (SELECT FROM pending_deliveries AS d WHERE d.tenant_id = n.tenant_id AND d.id = n.id)
			OR EXISTS (SELECT FROM deliveries AS d WHERE d.tenant_id = n.tenant_id AND d.id = n.id)
			OR EXISTS (SELECT FROM dead_letters AS d WHERE d.tenant_id = n.tenant_id AND d.id = n.id)`, tenants, ids)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].deliveries = slices.DeleteFunc(slices.Clone(list[i].deliveries), func(d store.NewDelivery) bool {
			return deliveries[d.ID]
		})
	}
	return nil
}

// found returns which of the ids exist.
func found(ctx context.Context, q querier, sql string, tenants, ids [][16]byte) (map[[16]byte]bool, error) {
	there := map[[16]byte]bool{}
	if len(ids) == 0 {
		return there, nil
	}
	r, err := q.Query(ctx, sql, tenants, ids)
	if err != nil {
		return nil, err
	}
	var id [16]byte
	_, err = pgx.ForEachRow(r, []any{&id}, func() error {
		there[id] = true
		return nil
	})
	return there, err
}

// dropStaleClaims makes deliveries unclaimed whose lease is lost: the new owner will claim them.
func dropStaleClaims(list []newEvent, epochs map[int]int64) {
	for i := range list {
		for j := range list[i].deliveries { // leaveStored has copied them
			if d := &list[i].deliveries[j]; d.ClaimEpoch != epochs[d.EndpointID.Shard()] {
				d.ClaimEpoch = 0
			}
		}
	}
}

// leaveFenced leaves out results of deliveries that are no longer claimed, and results that are already stored.
func (c *commit) leaveFenced(ctx context.Context, tx pgx.Tx) error {
	results := c.batch.Results
	if len(results) == 0 {
		return nil
	}
	tenants, ids := make([][16]byte, len(results)), make([][16]byte, len(results))
	for i := range results {
		tenants[i], ids[i] = results[i].Delivery.TenantID, results[i].Delivery.ID
	}
	r, err := tx.Query(ctx, `SELECT p.id, p.claim_epoch FROM pending_deliveries AS p
		JOIN (SELECT DISTINCT * FROM unnest($1::uuid[], $2::uuid[])) AS n (tenant_id, id)
			ON p.tenant_id = n.tenant_id AND p.id = n.id ORDER BY p.tenant_id, p.id FOR UPDATE OF p`, tenants, ids)
	if err != nil {
		return err
	}
	claims := map[godwit.DeliveryID]int64{}
	var id [16]byte
	var epoch int64
	_, err = pgx.ForEachRow(r, []any{&id, &epoch}, func() error {
		claims[id] = epoch
		return nil
	})
	if err != nil {
		return err
	}
	var deliveries [][16]byte
	ids = ids[:0]
	for i := range results {
		if a := results[i].Attempt; a != nil {
			deliveries, ids = append(deliveries, a.DeliveryID), append(ids, a.ID)
		}
	}
	stored, err := found(ctx, tx, `SELECT a.id FROM unnest($1::uuid[], $2::uuid[]) AS n (delivery_id, id)
		JOIN attempts AS a ON a.delivery_id = n.delivery_id AND a.id = n.id`, deliveries, ids)
	if err != nil {
		return err
	}
	c.finished, c.waiting, c.attempts, c.dead, c.fenced = nil, nil, nil, nil, nil
	c.arrangeResults(&knownResults{claims, stored})
	return nil
}

// leaveLost leaves out changes of endpoints whose lease was lost: their new owner writes them.
func (c *commit) leaveLost(epochs map[int]int64) {
	lost := map[godwit.EndpointID]bool{}
	for i := range c.batch.Results {
		id := c.batch.Results[i].Delivery.EndpointID
		current := c.batch.Results[i].Epoch == epochs[id.Shard()]
		if before, ok := lost[id]; !ok || before {
			lost[id] = !current
		}
	}
	c.health = slices.DeleteFunc(slices.Clone(c.health), func(h godwit.Health) bool { return lost[h.EndpointID] })
	c.changes = slices.DeleteFunc(slices.Clone(c.changes), func(e store.EndpointChange) bool { return lost[e.EndpointID] })
}
