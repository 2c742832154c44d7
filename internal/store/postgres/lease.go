package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// leaseTime is the time of leases and beats: the server's, unless the test that owns the store sets it as the first argument.
const leaseTime = `coalesce($1::timestamptz, clock_timestamp())`

// leaseOwner is the condition that the node n has the lease l.
const leaseOwner = `n.name || ' ' || n.instance = l.owner`

// leaseFree is the condition that no live process has the lease l. An expires_at that is not infinite was stored by an earlier
// release.
const leaseFree = `(l.owner = '' OR l.expires_at <= ` + leaseTime + ` OR l.expires_at = 'infinity' AND NOT EXISTS (
	SELECT FROM nodes AS n WHERE ` + leaseOwner + ` AND n.lease_until > ` + leaseTime + `))`

// takeLockTimeout bounds how long Take and Release hold up the commits of all nodes while they wait for open ones.
const takeLockTimeout = 500 * time.Millisecond

// leases keeps the ownership of shards.
type leases struct{ *database }

// Take first locks out all claims for a moment and raises the epochs: from then on no node can claim under an old one. It locks
// the rows of silent nodes, so that a beat of such a node that comes at this moment waits and then learns of the loss.
func (s *leases) Take(ctx context.Context, n godwit.Node, ttl time.Duration, limit int) ([]godwit.Lease, error) {
	if limit <= 0 {
		return nil, nil
	}
	var taken []godwit.Lease
	announced := false
	err := s.change(ctx, func(b *pgx.Batch) {
		b.Queue(announce, s.announcement(&n, ttl)...).Exec(func(tag pgconn.CommandTag) error {
			announced = tag.RowsAffected() > 0
			return nil
		})
		b.Queue(takeLeases, s.time(), n.Owner(), limit).Query(func(r pgx.Rows) (err error) {
			taken, err = pgx.CollectRows(r, func(row pgx.CollectableRow) (l godwit.Lease, err error) {
				return l, row.Scan(&l.Shard, &l.Owner, &l.Epoch, &l.Clean, scanTime(&l.FreeSince))
			})
			return err
		})
	})
	if err == nil && !announced {
		err = fencedName(&n)
	}
	if err != nil {
		return nil, failed("take leases", err)
	}
	return taken, nil
}

// takeLeases takes nothing if another process runs under the node's name.
const takeLeases = `WITH silent AS MATERIALIZED (
		SELECT name || ' ' || instance AS owner FROM nodes WHERE lease_until <= ` + leaseTime + ` ORDER BY name FOR UPDATE),
	open AS (SELECT l.shard, l.clean, CASE WHEN l.owner = '' OR l.expires_at <> 'infinity' THEN l.expires_at
			ELSE (SELECT n.lease_until FROM nodes AS n WHERE ` + leaseOwner + `) END AS since
		FROM leases AS l WHERE l.owner = '' OR l.expires_at <= ` + leaseTime + ` OR l.expires_at = 'infinity' AND (l.owner IN (SELECT owner FROM silent)
			OR NOT EXISTS (SELECT FROM nodes AS n WHERE ` + leaseOwner + `)) ORDER BY l.shard LIMIT $3)
	UPDATE leases SET owner = $2, epoch = epoch + 1, expires_at = 'infinity', clean = false FROM open
	WHERE leases.shard = open.shard AND EXISTS (SELECT FROM nodes WHERE name || ' ' || instance = $2)
	RETURNING leases.shard, leases.owner, leases.epoch, open.clean AND open.since IS NOT NULL, open.since`

// change runs statements in one transaction while no claiming transaction is open. Claims wait meanwhile, so it gives up if an open one
// takes long. All of it is one round trip: a node that is slow or frozen between two would hold up the commits of all nodes.
func (s *leases) change(ctx context.Context, add func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue(`SELECT set_config('lock_timeout', $1, true)`, fmt.Sprint(takeLockTimeout.Milliseconds()))
	b.Queue(`SELECT pg_advisory_xact_lock($1)`, int64(leaseLock))
	b.Queue(`SELECT set_config('lock_timeout', '0', true)`)
	add(b)
	return s.pool.SendBatch(ctx, b).Close()
}

// Release gives up leases. The epoch grows, so that late results are fenced.
func (s *leases) Release(ctx context.Context, held []godwit.Lease, clean bool) error {
	if len(held) == 0 {
		return nil
	}
	shards, epochs := shardsAndEpochs(held)
	return failed("release leases", s.change(ctx, func(b *pgx.Batch) {
		b.Queue(`UPDATE leases SET owner = '', epoch = leases.epoch + 1, expires_at = `+leaseTime+`, clean = $4
			FROM unnest($2::int2[], $3::int8[]) AS n (shard, epoch)
			WHERE leases.shard = n.shard AND leases.epoch = n.epoch AND owner <> ''`, s.time(), shards, epochs, clean)
	}))
}

func shardsAndEpochs(leases []godwit.Lease) ([]int16, []int64) {
	shards, epochs := make([]int16, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		shards[i], epochs[i] = int16(l.Shard), l.Epoch
	}
	return shards, epochs
}

// releasePages is how much of the table one statement of ReleaseClaims reads: 32 MB.
const releasePages = 4096

// ReleaseClaims releases deliveries claimed under older epochs than the leases have. Claimed rows have no index, since nearly
// every delivery would pass through it; so this reads the whole table, in parts that hold up nothing else. It leaves rows that a
// commit has locked for the end and waits for them one by one, since waiting while holding other rows could deadlock.
func (s *leases) ReleaseClaims(ctx context.Context, leases []godwit.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	shards, epochs := shardsAndEpochs(leases)
	var pages int64
	err := s.pool.QueryRow(ctx, `SELECT pg_relation_size('pending_deliveries') / current_setting('block_size')::int8`).Scan(&pages)
	if err != nil {
		return failed("release claims", err)
	}
	for from := int64(0); from <= pages; from += releasePages {
		if err := s.releasePart(ctx, shards, epochs, from, from+releasePages); err != nil {
			return failed("release claims", err)
		}
	}
	return nil
}

// releasePart releases the claims in some pages of the table. An updated row may move to a later page, where it is not claimed.
func (s *leases) releasePart(ctx context.Context, shards []int16, epochs []int64, from, to int64) error {
	const old = ` FROM pending_deliveries AS p JOIN unnest($1::int2[], $2::int8[]) AS n (shard, epoch)
		ON p.claim_epoch <> 0 AND p.shard = n.shard AND p.claim_epoch < n.epoch WHERE p.ctid >= $3::tid AND p.ctid < $4::tid`
	low, high := fmt.Sprintf("(%d,0)", from), fmt.Sprintf("(%d,0)", to)
	_, err := s.pool.Exec(ctx, `WITH free AS MATERIALIZED (SELECT p.tenant_id, p.id`+old+` FOR UPDATE OF p SKIP LOCKED)
		UPDATE pending_deliveries AS p SET claim_epoch = 0 FROM free WHERE p.tenant_id = free.tenant_id AND p.id = free.id`, shards, epochs, low, high)
	if err != nil {
		return err
	}
	r, err := s.pool.Query(ctx, `SELECT p.tenant_id, p.id, n.epoch`+old, shards, epochs, low, high)
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

const (
	listNodes = `SELECT name, instance, holder, address, version, schema_version, claimed_at, state, seen_at, lease_until > ` + leaseTime + `,
			(extract(epoch FROM greatest(lease_until, ` + leaseTime + `) - ` + leaseTime + `) * 1e6)::int8, shards, held, in_flight, (extract(epoch FROM lag) * 1e6)::int8
		FROM nodes ORDER BY name`
	listLeases = `SELECT l.shard, l.owner, l.epoch, ` + leaseFree + ` FROM leases AS l ORDER BY l.shard`
)

func scanMember(r pgx.CollectableRow) (m godwit.Member, err error) {
	var left, lag int64
	err = r.Scan(&m.Name, &m.Instance, &m.Holder, &m.Address, &m.Version, &m.Schema, scanTime(&m.StartedAt), &m.State, scanTime(&m.SeenAt), &m.Alive,
		&left, &m.Load.Shards, &m.Load.Held, &m.Load.InFlight, &lag)
	m.Left, m.Load.Lag = time.Duration(left)*time.Microsecond, time.Duration(lag)*time.Microsecond
	return m, err
}

// readCluster reads the answers to listNodes and listLeases.
func readCluster(c *godwit.Cluster, answers pgx.BatchResults) error {
	r, err := answers.Query()
	if err != nil {
		return err
	}
	if c.Members, err = pgx.CollectRows(r, scanMember); err != nil {
		return err
	}
	if r, err = answers.Query(); err != nil {
		return err
	}
	c.Leases, err = pgx.CollectRows(r, func(row pgx.CollectableRow) (l godwit.Lease, err error) {
		return l, row.Scan(&l.Shard, &l.Owner, &l.Epoch, &l.Free)
	})
	return err
}

// Cluster lists nodes and leases.
func (s *leases) Cluster(ctx context.Context) (*godwit.Cluster, error) {
	c := &godwit.Cluster{}
	batch := &pgx.Batch{}
	batch.Queue(`SELECT `+leaseTime, s.time())
	batch.Queue(listNodes, s.time())
	batch.Queue(listLeases, s.time())
	answers := s.pool.SendBatch(ctx, batch)
	err := answers.QueryRow().Scan(scanTime(&c.Now))
	if err == nil {
		err = readCluster(c, answers)
	}
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, failed("list nodes and leases", err)
	}
	return c, nil
}
