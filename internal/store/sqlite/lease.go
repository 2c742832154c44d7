package sqlite

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
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

// leases keeps the ownership of shards. Which owners are alive is known in memory; see members.
type leases struct {
	*database
	members *members
}

// Take takes free shards for the process. It also releases the claims of older epochs, which are few to find here.
func (s *leases) Take(ctx context.Context, n godwit.Node, ttl time.Duration, limit int) ([]godwit.Lease, error) {
	if limit <= 0 {
		return nil, nil
	}
	if !s.members.announce(&n, ttl) {
		return nil, store.ErrFenced
	}
	var taken []godwit.Lease
	err := s.write(ctx, "take leases", func(c *conn) error {
		taken = nil
		err := c.each(ctx, `SELECT shard, owner, epoch, expires_at FROM leases ORDER BY shard`, nil, func(r *rows) error {
			l := godwit.Lease{Shard: int(r.int(0)), Owner: n.Owner(), Epoch: r.int(2) + 1, Clean: true}
			since, alive := s.members.expiry(r.text(1))
			if !alive && len(taken) < limit {
				if l.FreeSince = since; r.text(1) == "" && r.int(3) > 0 {
					l.FreeSince = r.time(3)
				}
				taken = append(taken, l)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, l := range taken {
			if err := s.setLease(c, l, 0); err != nil {
				return err
			}
		}
		return s.releaseOrphans(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// setLease stores a lease. since is when it was released.
func (s *leases) setLease(c *conn, l godwit.Lease, since int64) error {
	_, err := c.exec("UPDATE leases SET owner = ?, epoch = ?, expires_at = ? WHERE shard = ?", l.Owner, l.Epoch, since, int64(l.Shard))
	s.epochs.shard[l.Shard] = l.Epoch
	return err
}

// ReleaseClaims does nothing: Take and Release have done it.
func (s *leases) ReleaseClaims(context.Context, []godwit.Lease) error { return nil }

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

// Release gives up leases. The epoch grows, so that the store refuses late results.
func (s *leases) Release(ctx context.Context, held []godwit.Lease, _ bool) error {
	return s.write(ctx, "release leases", func(c *conn) error {
		for _, l := range held {
			if l.Shard < 0 || l.Shard >= godwit.Shards || s.epochs.shard[l.Shard] != l.Epoch {
				continue
			}
			if err := s.setLease(c, godwit.Lease{Shard: l.Shard, Epoch: l.Epoch + 1}, micros(s.members.now())); err != nil {
				return err
			}
		}
		return s.releaseOrphans(ctx, c)
	})
}
