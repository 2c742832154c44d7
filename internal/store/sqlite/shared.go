package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/godwit-hq/godwit/internal/store"
)

// A sharing holds the changes that wait to share a transaction. Changes of the configuration are small, and most of their time is the
// sync of the commit: those that come at the same time, as when a program sets up thousands of tenants, are stored by one.
type sharing struct {
	mu      sync.Mutex
	waiting []*sharedWrite
}

type sharedWrite struct {
	what string
	fn   func(*conn) error
	err  error
	done chan struct{} // closed once err is set
}

// maxShared bounds how many changes share a transaction, and with it how long the engine's commits wait for it.
const maxShared = 32

// writeShared is write for changes that may share a transaction with others. Each has its own savepoint, so the failure of one does not
// touch the others. A change sees those before it in the transaction, which are stored if it is.
func (db *database) writeShared(ctx context.Context, what string, fn func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	w := &sharedWrite{what: what, fn: fn, done: make(chan struct{})}
	db.sharing.add(w)
	for {
		select {
		case <-w.done:
			return w.err
		case db.turn <- struct{}{}:
			db.lead(ctx)
			continue // the turn was for those before it, or for all
		case <-ctx.Done():
		case <-db.closing:
		}
		if db.sharing.remove(w) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return fmt.Errorf("%s: %w", what, errClosed)
		}
		<-w.done // it has begun
		return w.err
	}
}

// lead stores the changes that wait, and gives the turn back.
func (db *database) lead(ctx context.Context) {
	defer func() { <-db.turn }()
	batch := db.sharing.take()
	if len(batch) == 0 {
		return
	}
	err := db.inTransaction(context.WithoutCancel(ctx), true, func(c *conn) error {
		if len(batch) == 1 {
			return batch[0].fn(c)
		}
		return each(c, batch)
	})
	for _, w := range batch {
		if err != nil {
			w.err = err // what the change found is void if the transaction failed
		}
		if w.err != nil {
			w.err = fmt.Errorf("%s: %w", w.what, fault(w.err))
		}
		close(w.done)
	}
}

// each runs the changes of a transaction. It fails if the transaction cannot go on.
func each(c *conn, batch []*sharedWrite) error {
	for _, w := range batch {
		if _, err := c.exec("SAVEPOINT shared"); err != nil {
			return err
		}
		if w.err = w.fn(c); w.err == nil {
			if _, err := c.exec("RELEASE shared"); err != nil {
				return err
			}
			continue
		}
		if doubtful(w.err) || errors.Is(fault(w.err), store.ErrUnavailable) {
			return w.err
		}
		if err := c.script("ROLLBACK TO shared; RELEASE shared"); err != nil {
			return err
		}
	}
	return nil
}

func (s *sharing) add(w *sharedWrite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, w)
}

// take returns the changes that waited longest.
func (s *sharing) take() []*sharedWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.waiting), maxShared)
	batch := slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	return batch
}

// remove takes back a change that has not begun, and reports whether it has not.
func (s *sharing) remove(w *sharedWrite) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return true
}
