package sqlite

import (
	"context"
	"fmt"
)

// write runs fn in a write transaction. All of it is durable when write returns nil, and nothing of it is stored otherwise.
// The context can end only the wait for the turn; a started transaction completes.
func (s *Store) write(ctx context.Context, what string, fn func(*conn) error) error {
	return s.transact(ctx, what, true, fn)
}

// writeSoft is write without a sync, for changes that are void after a restart.
func (s *Store) writeSoft(ctx context.Context, what string, fn func(*conn) error) error {
	return s.transact(ctx, what, false, fn)
}

func (s *Store) transact(ctx context.Context, what string, durable bool, fn func(*conn) error) (err error) {
	if err := s.take(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { <-s.turn }()
	defer func() {
		if err != nil {
			s.beat.failed()
			err = fmt.Errorf("%s: %w", what, fault(err))
		}
	}()
	if s.writer == nil {
		if s.writer, err = s.openWriter(ctx); err != nil {
			return err
		}
	}
	c := s.writer
	if !durable {
		if err := c.script("PRAGMA synchronous = NORMAL"); err != nil {
			return err
		}
		defer func() {
			if s.writer == c && c.script("PRAGMA synchronous = FULL") != nil {
				s.dropWriter() // a commit on it might not be synced
			}
		}()
	}
	if err = s.begin(c); err == nil {
		if err = fn(c); err == nil {
			if _, err = c.exec("COMMIT"); err == nil {
				s.beat.wrote()
				s.checkpointer.wrote()
				return nil
			}
		}
	}
	s.abandon(c, err)
	return err
}

// take waits for the turn to write.
func (s *Store) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return errClosed
	}
}

// begin starts a write transaction, and refreshes the cached epochs and handovers.
func (s *Store) begin(c *conn) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var version int64
	if _, err := c.one(context.Background(), "PRAGMA data_version", nil, func(r *rows) { version = r.int(0) }); err != nil {
		return err
	}
	if version != s.epochs.version {
		s.epochs.version = version
		if err := s.loadEpochs(c); err != nil {
			return err
		}
		return s.handed.load(c)
	}
	return nil
}

// abandon rolls back. SQLite may have rolled back already, so an error is ignored.
func (s *Store) abandon(c *conn, cause error) {
	s.epochs.version = 0
	c.exec("ROLLBACK")
	if doubtful(cause) {
		s.dropWriter()
	}
}

func (s *Store) dropWriter() {
	if s.writer != nil {
		s.writer.close()
		s.writer = nil
		s.epochs.version = 0
	}
}

// read runs fn on a reader, in one snapshot.
func (s *Store) read(ctx context.Context, what string, fn func(*conn) error) (err error) {
	var c *conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case <-s.closing:
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	defer func() {
		s.readers <- c
		if err != nil {
			err = fmt.Errorf("%s: %w", what, fault(err))
		}
	}()
	if c == nil {
		if c, err = s.openReader(ctx); err != nil {
			return err
		}
	}
	if _, err = c.exec("BEGIN"); err == nil {
		err = fn(c)
		if _, rerr := c.exec("ROLLBACK"); rerr != nil || doubtful(err) || ctx.Err() != nil {
			// Close it also after an interruption: opening another connection is simpler than checking this one's state.
			c.close()
			c = nil
		}
	}
	return err
}
