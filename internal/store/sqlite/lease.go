package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// epochs is the writer's cache of the leases. It is read again after another connection has written.
type epochs struct {
	version int64 // SQLite's data_version, which counts changes by other connections; 0: unknown
	shard   [godwit.Shards]int64
}

func (e *epochs) load(c *conn) error {
	there, err := c.one(context.Background(), "SELECT 1 FROM sqlite_schema WHERE name = 'leases'", nil, nil)
	if err != nil || !there {
		return err // before the first migration
	}
	return c.each(context.Background(), "SELECT shard, epoch FROM leases", nil, func(r *rows) error {
		if shard := r.int(0); shard >= 0 && shard < godwit.Shards {
			e.shard[shard] = r.int(1)
		}
		return nil
	})
}

// leases keeps the ownership of shards.
type leases struct{ *database }

// Acquire takes shards for the owner, its own shards first.
func (s *leases) Acquire(ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int) ([]godwit.Lease, error) {
	var leases []godwit.Lease
	err := s.write(ctx, "acquire leases", func(c *conn) error {
		leases = nil
		const open = `SELECT shard, epoch FROM leases WHERE owner IN ('', ?1) OR expires_at <= ?2
			ORDER BY owner <> ?1, shard LIMIT ?3`
		err := c.each(ctx, open, []driver.Value{owner, micros(now), int64(max(limit, 0))}, func(r *rows) error {
			leases = append(leases, godwit.Lease{
				Shard: int(r.int(0)), Owner: owner, Epoch: r.int(1) + 1, ExpiresAt: fromMicros(micros(now.Add(ttl))),
			})
			return nil
		})
		if err != nil {
			return err
		}
		for _, l := range leases {
			if err := s.setLease(c, l); err != nil {
				return err
			}
		}
		return s.releaseOrphans(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

func (s *leases) setLease(c *conn, l godwit.Lease) error {
	_, err := c.exec("UPDATE leases SET owner = ?, epoch = ?, expires_at = ? WHERE shard = ?",
		l.Owner, l.Epoch, micros(l.ExpiresAt), int64(l.Shard))
	s.epochs.shard[l.Shard] = l.Epoch
	return err
}

// releaseOrphans releases every claim that does not have the epoch of its shard. It reads the claimed deliveries, which nodes
// hold in memory, and not the waiting ones.
func (s *leases) releaseOrphans(ctx context.Context, c *conn) error {
	var orphans []int64
	const claimed = `SELECT n, endpoint_id, claim_epoch FROM deliveries INDEXED BY deliveries_claimed
		WHERE status = 'pending' AND claim_epoch > 0`
	err := c.each(ctx, claimed, nil, func(r *rows) error {
		if endpoint := godwit.EndpointID(r.id(1)); s.epochs.shard[endpoint.Shard()] != r.int(2) {
			orphans = append(orphans, r.int(0))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, n := range orphans {
		if _, err := c.exec("UPDATE deliveries SET claim_epoch = 0 WHERE n = ?", n); err != nil {
			return err
		}
	}
	for _, d := range s.handed.deliveries {
		if s.epochs.shard[d.endpoint.Shard()] != d.epoch {
			if err := s.handed.writeOut(c, &d, 0, d.created); err != nil {
				return err
			}
		}
	}
	return s.handed.settle(c)
}

// Renew extends leases that are still held.
func (s *leases) Renew(ctx context.Context, held []godwit.Lease, now time.Time, ttl time.Duration) ([]godwit.Lease, error) {
	var renewed []godwit.Lease
	err := s.write(ctx, "renew leases", func(c *conn) error {
		renewed = nil
		for _, l := range held {
			l.ExpiresAt = fromMicros(micros(now.Add(ttl)))
			n, err := c.exec("UPDATE leases SET expires_at = ? WHERE shard = ? AND owner = ? AND epoch = ?",
				micros(l.ExpiresAt), int64(l.Shard), l.Owner, l.Epoch)
			if err != nil {
				return err
			}
			if n == 1 {
				renewed = append(renewed, l)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return renewed, nil
}

// Release gives up leases. The epoch grows, so that the store refuses late results.
func (s *leases) Release(ctx context.Context, held []godwit.Lease, now time.Time) error {
	return s.write(ctx, "release leases", func(c *conn) error {
		for _, l := range held {
			if l.Shard < 0 || l.Shard >= godwit.Shards || s.epochs.shard[l.Shard] != l.Epoch {
				continue
			}
			if err := s.setLease(c, godwit.Lease{Shard: l.Shard, Epoch: l.Epoch + 1}); err != nil {
				return err
			}
		}
		return s.releaseOrphans(ctx, c)
	})
}

// Holders lists the owners of leases.
func (s *leases) Holders(ctx context.Context) (nodes []godwit.Node, err error) {
	err = s.read(ctx, "list lease holders", func(c *conn) error {
		const owners = `SELECT DISTINCT l.owner, coalesce(n.holder, '') FROM leases l LEFT JOIN nodes n ON l.owner = n.name || ' ' || n.instance
			WHERE l.owner <> '' ORDER BY l.owner`
		return c.each(ctx, owners, nil, func(r *rows) error {
			nodes = append(nodes, godwit.NodeOf(r.text(0), r.text(1)))
			return nil
		})
	})
	return nodes, err
}
