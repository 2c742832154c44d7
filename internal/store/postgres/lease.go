package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const takable = `(owner = $1 OR owner = '' OR expires_at <= $2)`

// leases keeps the ownership of shards.
type leases struct{ *database }

// Acquire takes leases in two steps. First it locks out all claims for a moment and raises the epochs: from then on no node
// can claim under an old one. Then it releases the claims of older epochs. A node that fails in between acquires again.
func (s *leases) Acquire(ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int) ([]godwit.Lease, error) {
	var any bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM leases WHERE `+takable+`)`, owner, now).Scan(&any)
	if err != nil || !any || limit <= 0 {
		return nil, failed("acquire leases", err)
	}
	var taken []godwit.Lease
	err = s.change(ctx, func(tx pgx.Tx) error {
		r, err := tx.Query(ctx, `UPDATE leases SET owner = $1, epoch = epoch + 1, expires_at = $3 FROM (
				SELECT shard FROM leases WHERE `+takable+` ORDER BY owner <> $1, shard LIMIT $4) AS n
			WHERE leases.shard = n.shard RETURNING leases.shard, owner, epoch, expires_at`, owner, now, now.Add(ttl), limit)
		if err != nil {
			return err
		}
		taken, err = pgx.CollectRows(r, scanLease)
		return err
	})
	if err == nil {
		err = s.releaseClaims(ctx, taken)
	}
	if err != nil {
		return nil, failed("acquire leases", err)
	}
	return taken, nil
}

// change runs fn while no claiming transaction is open.
func (s *leases) change(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(leaseLock)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// releaseClaims releases deliveries claimed under older epochs than the leases have. It reads all pending deliveries, which is
// acceptable because leases seldom change hands. It leaves rows that a commit has locked for the end and waits for them one by
// one, since waiting while holding other rows could deadlock.
func (s *leases) releaseClaims(ctx context.Context, leases []godwit.Lease) error {
	shards, epochs := shardsAndEpochs(leases)
	const old = ` FROM pending_deliveries AS p JOIN unnest($1::int2[], $2::int8[]) AS n (shard, epoch)
		ON p.claim_epoch <> 0 AND p.shard = n.shard AND p.claim_epoch < n.epoch`
	_, err := s.pool.Exec(ctx, `WITH free AS MATERIALIZED (SELECT p.tenant_id, p.id`+old+` FOR UPDATE OF p SKIP LOCKED)
		UPDATE pending_deliveries AS p SET claim_epoch = 0 FROM free WHERE p.tenant_id = free.tenant_id AND p.id = free.id`, shards, epochs)
	if err != nil {
		return err
	}
	r, err := s.pool.Query(ctx, `SELECT p.tenant_id, p.id, n.epoch`+old, shards, epochs)
	if err != nil {
		return err
	}
	type claim struct {
		tenant, id [16]byte
		epoch      int64
	}
	rest, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (c claim, err error) {
		return c, r.Scan(&c.tenant, &c.id, &c.epoch)
	})
	for _, c := range rest {
		_, err := s.pool.Exec(ctx, `UPDATE pending_deliveries SET claim_epoch = 0
			WHERE tenant_id = $1 AND id = $2 AND claim_epoch <> 0 AND claim_epoch < $3`, c.tenant, c.id, c.epoch)
		if err != nil {
			return err
		}
	}
	return err
}

func shardsAndEpochs(leases []godwit.Lease) ([]int16, []int64) {
	shards, epochs := make([]int16, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		shards[i], epochs[i] = int16(l.Shard), l.Epoch
	}
	return shards, epochs
}

func scanLease(r pgx.CollectableRow) (godwit.Lease, error) {
	var l godwit.Lease
	err := r.Scan(&l.Shard, &l.Owner, &l.Epoch, scanTime(&l.ExpiresAt))
	return l, err
}

// Renew extends leases that still have their owner and epoch.
func (s *leases) Renew(ctx context.Context, held []godwit.Lease, now time.Time, ttl time.Duration) ([]godwit.Lease, error) {
	shards, epochs := shardsAndEpochs(held)
	owners := make([]string, len(held))
	for i, l := range held {
		owners[i] = clean(l.Owner)
	}
	r, err := s.pool.Query(ctx, `UPDATE leases SET expires_at = $4 FROM (
			SELECT l.shard FROM leases AS l JOIN unnest($1::int2[], $2::int8[], $3::text[]) AS n (shard, epoch, owner)
			ON l.shard = n.shard AND l.epoch = n.epoch AND l.owner = n.owner AND l.owner <> '' ORDER BY l.shard FOR UPDATE OF l) AS n
		WHERE leases.shard = n.shard RETURNING leases.shard, owner, epoch, expires_at`, shards, epochs, owners, now.Add(ttl))
	if err != nil {
		return nil, failed("renew leases", err)
	}
	list, err := pgx.CollectRows(r, scanLease)
	return list, failed("renew leases", err)
}

// Release gives up leases and the claims under them. The epoch grows, so that late results are fenced.
func (s *leases) Release(ctx context.Context, held []godwit.Lease, now time.Time) error {
	shards, epochs := shardsAndEpochs(held)
	var released []godwit.Lease
	err := s.change(ctx, func(tx pgx.Tx) error {
		r, err := tx.Query(ctx, `UPDATE leases SET owner = '', epoch = leases.epoch + 1, expires_at = $3
			FROM unnest($1::int2[], $2::int8[]) AS n (shard, epoch)
			WHERE leases.shard = n.shard AND leases.epoch = n.epoch AND owner <> ''
			RETURNING leases.shard, owner, leases.epoch, expires_at`, shards, epochs, now)
		if err != nil {
			return err
		}
		released, err = pgx.CollectRows(r, scanLease)
		return err
	})
	if err == nil {
		err = s.releaseClaims(ctx, released)
	}
	return failed("release leases", err)
}

// Holders lists the owners of leases.
func (s *leases) Holders(ctx context.Context) ([]godwit.Node, error) {
	r, err := s.pool.Query(ctx, `SELECT DISTINCT l.owner, coalesce(n.holder, '') FROM leases l LEFT JOIN nodes n ON l.owner = n.name || ' ' || n.instance
		WHERE l.owner <> '' ORDER BY l.owner`)
	if err != nil {
		return nil, failed("list lease holders", err)
	}
	nodes, err := pgx.CollectRows(r, func(row pgx.CollectableRow) (godwit.Node, error) {
		var owner, holder string
		err := row.Scan(&owner, &holder)
		return godwit.NodeOf(owner, holder), err
	})
	return nodes, failed("list lease holders", err)
}
