package sqlite

import (
	"context"
	"fmt"
)

// write runs fn in a write transaction. All of it is durable when write returns nil, and nothing of it is stored otherwise.
// The context can end only the wait for the turn; a started transaction completes.
func (db *database) write(ctx context.Context, what string, fn func(*conn) error) error {
	return db.transact(ctx, what, true, fn)
}

// writeSoft is write without a sync, for changes that are void after a restart.
func (db *database) writeSoft(ctx context.Context, what string, fn func(*conn) error) error {
	return db.transact(ctx, what, false, fn)
}

func (db *database) transact(ctx context.Context, what string, durable bool, fn func(*conn) error) error {
	if err := db.take(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { <-db.turn }()
	if err := db.inTransaction(ctx, durable, fn); err != nil {
		return fmt.Errorf("%s: %w", what, fault(err))
	}
	return nil
}

// inTransaction runs fn in a write transaction. The caller has the turn to write.
func (db *database) inTransaction(ctx context.Context, durable bool, fn func(*conn) error) (err error) {
	defer func() {
		if err != nil {
			db.beat.failed()
			db.noteFailure(err)
		}
	}()
	if db.writer == nil {
		if db.writer, err = db.openWriter(ctx); err != nil {
			return err
		}
	}
	c := db.writer
	if err = db.settleWAL(c); err != nil {
		db.abandon(c, err)
		return err
	}
	if !durable {
		if err := c.script("PRAGMA synchronous = NORMAL"); err != nil {
			return err
		}
		defer func() {
			if db.writer == c && c.script("PRAGMA synchronous = FULL") != nil {
				db.dropWriter() // a commit on it might not be synced
			}
		}()
	}
	if err = db.begin(c); err == nil {
		if err = fn(c); err == nil {
			if _, err = c.exec("COMMIT"); err == nil {
				db.beat.wrote()
				db.checkpointer.wrote()
				return nil
			}
		}
	}
	db.abandon(c, err)
	return err
}

// take waits for the turn to write.
func (db *database) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-db.closing:
		return errClosed
	default:
	}
	select {
	case db.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-db.closing:
		return errClosed
	}
}

// begin starts a write transaction, and refreshes the cached epochs and handovers.
func (db *database) begin(c *conn) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var version int64
	if _, err := c.one(context.Background(), "PRAGMA data_version", nil, func(r *rows) { version = r.int(0) }); err != nil {
		return err
	}
	if version != db.epochs.version {
		db.epochs.version = version
		if err := db.epochs.load(c); err != nil {
			return err
		}
		return db.handed.load(c)
	}
	return nil
}

// abandon rolls back. SQLite may have rolled back already, so an error is ignored.
func (db *database) abandon(c *conn, cause error) {
	db.epochs.version = 0
	c.exec("ROLLBACK")
	if doubtful(cause) {
		db.dropWriter()
	}
}

func (db *database) dropWriter() {
	if db.writer != nil {
		db.writer.close()
		db.writer = nil
		db.epochs.version = 0
	}
}

// read runs fn on a reader, in one snapshot.
func (db *database) read(ctx context.Context, what string, fn func(*conn) error) (err error) {
	var c *conn
	select {
	case c = <-db.readers:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case <-db.closing:
		return fmt.Errorf("%s: %w", what, errClosed)
	}
	defer func() {
		db.readers <- c
		if err != nil {
			err = fmt.Errorf("%s: %w", what, fault(err))
		}
	}()
	if c == nil {
		if c, err = db.openReader(ctx); err != nil {
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
