package postgres

import (
	"context"
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
// heartbeat, or until the silence is long enough.
func (s *nodes) ClaimNode(ctx context.Context, n godwit.Node) error {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	conn, locked, err := s.connectNode(ctx, &n)
	if err != nil {
		return failed("claim node name", err)
	}
	var first time.Time
	for {
		other, err := takeNode(ctx, conn, &n)
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
			_ = conn.Close(context.WithoutCancel(ctx))
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
		_ = conn.Close(context.WithoutCancel(ctx))
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
func takeNode(ctx context.Context, conn *pgx.Conn, n *godwit.Node) (other *nodeHolder, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO nodes (name, instance, holder, claimed_at, seen_at)
			VALUES ($1, '', '', clock_timestamp(), clock_timestamp()) ON CONFLICT DO NOTHING`, n.Name)
		if err != nil {
			return err
		}
		var h nodeHolder
		var instance string
		var silent bool
		err = tx.QueryRow(ctx, `SELECT instance, holder, seen_at, seen_at < clock_timestamp() - $2::interval FROM nodes WHERE name = $1 FOR UPDATE`,
			n.Name, store.NodeSilence).Scan(&instance, &h.holder, &h.seen, &silent)
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
		_, err = tx.Exec(ctx, `UPDATE nodes SET instance = $2, holder = $3, claimed_at = clock_timestamp(), seen_at = clock_timestamp() WHERE name = $1`,
			n.Name, n.Instance, n.Holder)
		if err != nil {
			return err
		}
		// Hosts with generated names, such as containers, leave a row at every start.
		if _, err := tx.Exec(ctx, `DELETE FROM nodes WHERE name <> $1 AND seen_at < clock_timestamp() - interval '30 days'`, n.Name); err != nil {
			return err
		}
		// An owner without an instance was stored by an earlier release.
		_, err = tx.Exec(ctx, `UPDATE leases SET owner = '' WHERE owner = $1 OR starts_with(owner, $1 || ' ')`, n.Name)
		return err
	})
	return other, err
}

// KeepNode records a heartbeat, on a new connection if the old one was lost.
func (s *nodes) KeepNode(ctx context.Context, n godwit.Node) error {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	var err error
	switch {
	case s.node.conn == nil || s.node.conn.IsClosed():
		s.node.conn, s.node.locked, err = s.connectNode(ctx, &n)
	case !s.node.locked:
		s.node.locked, err = lockNode(ctx, s.node.conn, &n)
	}
	if err != nil {
		return failed("keep node name", err)
	}
	tag, err := s.node.conn.Exec(ctx, `UPDATE nodes SET seen_at = clock_timestamp() WHERE name = $1 AND instance = $2`, n.Name, n.Instance)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%w: another process runs under the name %q", store.ErrFenced, n.Name)
	}
	return failed("keep node name", err)
}

// close ends the session and so gives up the name.
func (s *nodeSession) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.conn.Close(ctx)
	}
}
