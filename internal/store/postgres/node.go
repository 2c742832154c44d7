package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// nodeSession is the connection that proves that a process is alive. When the process ends, even by a kill, the server closes
// the connection at once and frees the advisory lock of the process's instance.
type nodeSession struct {
	mu     sync.Mutex
	conn   *pgx.Conn
	locked bool // conn holds the lock
}

// nodeLook is how often a claim checks whether the process that has the name is still alive.
const nodeLook = 100 * time.Millisecond

// nodes records which process runs under each node name.
type nodes struct {
	*database
	node nodeSession
}

// ClaimNode gives the name to the process unless another live process has it. A process is alive if it holds the lock of its
// instance. After a power failure the server keeps that lock until it closes the dead connection; so the claim waits for a
// beat, or until the silence is long enough.
func (s *nodes) ClaimNode(ctx context.Context, n godwit.Node) error {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	conn, locked, err := s.connectNode(ctx, &n)
	if err != nil {
		return failed("claim node name", err)
	}
	var first time.Time
	for {
		other, err := s.takeNode(ctx, conn, &n)
		if err == nil && other == nil {
			s.node.conn, s.node.locked = conn, locked
			return nil
		}
		if err == nil {
			if first.IsZero() {
				first = other.seen
			}
			if other.seen.After(first) {
				err = &store.NodeTaken{Name: n.Name, Holder: other.holder}
			} else {
				err = pause(ctx, nodeLook)
			}
		}
		if err != nil {
			hangUp(conn)
			return failed("claim node name", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connectNode opens the connection that proves that the process is alive.
func (s *nodes) connectNode(ctx context.Context, n *godwit.Node) (conn *pgx.Conn, locked bool, err error) {
	if conn, err = s.connect(ctx); err != nil {
		return nil, false, err
	}
	if locked, err = lockNode(ctx, conn, n); err != nil {
		hangUp(conn)
		return nil, false, err
	}
	return conn, locked, nil
}

// lockNode takes the lock of the process's instance. It does not wait: if a former connection of this process was lost, the
// server may keep the lock for hours.
func lockNode(ctx context.Context, conn *pgx.Conn, n *godwit.Node) (locked bool, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, hashtext($2))`, nodeLock, n.Instance).Scan(&locked)
	return locked, err
}

// A nodeHolder is the process that has a name.
type nodeHolder struct {
	holder string
	seen   time.Time
}

// takeNode gives the name to the process, or returns the process that has it.
func (s *nodes) takeNode(ctx context.Context, conn *pgx.Conn, n *godwit.Node) (other *nodeHolder, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		at := s.time()
		_, err := tx.Exec(ctx, `INSERT INTO nodes (name, instance, holder, claimed_at, seen_at)
			VALUES ($2, '', '', `+leaseTime+`, `+leaseTime+`) ON CONFLICT DO NOTHING`, at, n.Name)
		if err != nil {
			return err
		}
		var h nodeHolder
		var instance string
		var silent bool
		err = tx.QueryRow(ctx, `SELECT instance, holder, seen_at, seen_at < `+leaseTime+` - $3::interval FROM nodes WHERE name = $2 FOR UPDATE`,
			at, n.Name, store.NodeSilence).Scan(&instance, &h.holder, &h.seen, &silent)
		if err != nil {
			return err
		}
		if instance != "" && instance != n.Instance && !silent {
			var gone bool
			err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, hashtext($2))`, nodeLock, instance).Scan(&gone)
			if err != nil {
				return err
			}
			if !gone {
				other = &h
				return nil
			}
		}
		_, err = tx.Exec(ctx, `UPDATE nodes SET instance = $3, holder = $4, address = $5, version = $6, schema_version = $7, state = 'starting',
			claimed_at = `+leaseTime+`, seen_at = `+leaseTime+`, lease_until = '-infinity', shards = 0, held = 0, in_flight = 0, lag = '0'
			WHERE name = $2`, at, n.Name, n.Instance, n.Holder, n.Address, n.Version, n.Schema)
		if err != nil {
			return err
		}
		// Hosts with generated names, such as containers, leave a row at every start.
		if _, err := tx.Exec(ctx, `DELETE FROM nodes WHERE name <> $2 AND seen_at < `+leaseTime+` - interval '30 days'`, at, n.Name); err != nil {
			return err
		}
		// An owner without an instance was stored by an earlier release.
		_, err = tx.Exec(ctx, `UPDATE leases SET owner = '', expires_at = `+leaseTime+` WHERE owner = $2 OR starts_with(owner, $2 || ' ')`, at, n.Name)
		return err
	})
	return other, err
}

// announce stores a beat. The row has the name of another instance if another process claimed the name.
const announce = `INSERT INTO nodes AS n (name, instance, holder, address, version, schema_version, claimed_at, seen_at, lease_until)
	SELECT $2, $3, $4, $5, $6, $7, t.now, t.now, t.now + $8::interval FROM (SELECT ` + leaseTime + ` AS now) AS t
	ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, lease_until = greatest(n.lease_until, excluded.lease_until)
	WHERE n.instance = excluded.instance`

func (d *database) announcement(n *godwit.Node, ttl time.Duration) []any {
	return []any{d.time(), n.Name, n.Instance, n.Holder, n.Address, n.Version, n.Schema, ttl}
}

func fencedName(n *godwit.Node) error {
	return fmt.Errorf("%w: another process runs under the name %q", store.ErrFenced, n.Name)
}

// Beat runs in one round trip on the connection that proves that the process is alive, which no other query can hold up. It
// opens a new connection if that one was lost. A beat need not survive a crash of the server, so it does not wait for the disk.
func (s *nodes) Beat(ctx context.Context, b store.Beat) (*godwit.Cluster, error) {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	var err error
	switch n := &b.Node; {
	case s.node.conn == nil || s.node.conn.IsClosed():
		s.node.conn, s.node.locked, err = s.connectNode(ctx, n)
	case !s.node.locked:
		s.node.locked, err = lockNode(ctx, s.node.conn, n)
	}
	if err != nil {
		return nil, failed("beat", err)
	}
	c := &godwit.Cluster{}
	batch := &pgx.Batch{}
	batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
	batch.Queue(announce, s.announcement(&b.Node, b.TTL)...)
	batch.Queue(`UPDATE nodes SET state = $4, shards = $5, held = $6, in_flight = $7, lag = $8 WHERE name = $2 AND instance = $3
		RETURNING `+leaseTime, s.time(), b.Node.Name, b.Node.Instance, cmp.Or(b.State, godwit.NodeRunning), b.Load.Shards, b.Load.Held, b.Load.InFlight, b.Load.Lag)
	batch.Queue(listNodes, s.time())
	batch.Queue(listLeases, s.time())
	answers := s.node.conn.SendBatch(ctx, batch)
	err = readBeat(c, answers, &b.Node)
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, failed("beat", err)
	}
	return c, nil
}

func readBeat(c *godwit.Cluster, answers pgx.BatchResults, n *godwit.Node) error {
	for range 2 {
		if _, err := answers.Exec(); err != nil {
			return err
		}
	}
	err := answers.QueryRow().Scan(scanTime(&c.Now))
	if errors.Is(err, pgx.ErrNoRows) {
		return fencedName(n)
	}
	if err != nil {
		return err
	}
	return readCluster(c, answers)
}

// close ends the session and so gives up the name.
func (s *nodeSession) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		hangUp(s.conn)
	}
}
