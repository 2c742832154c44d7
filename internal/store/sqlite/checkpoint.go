package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/store"
)

const (
	// walFrames is the default length at which the WAL starts over: 16000 pages are 64 MiB.
	walFrames = 16000
	// lookEvery is the number of commits between two checks of the WAL's length.
	lookEvery = 64
	// walPortion is the number of frames that are copied at a time: 8 MiB. A larger portion would keep the disk busy for longer, and
	// the syncs of commits would wait for it.
	walPortion = 2000
	// quiet is how long the store must be idle before the rest of the WAL is copied.
	quiet = 5 * time.Second
)

// A checkpointer copies the WAL into the database file concurrently with the writer, so that no commit waits for it.
type checkpointer struct {
	frames  int64 // Options.WALPages
	portion int64 // walPortion
	commits atomic.Int64
	resting atomic.Bool // set while there is nothing to copy
	wake    chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
}

func (k *checkpointer) start(db *database, frames int64) {
	k.frames, k.portion = frames, min(frames, walPortion)
	k.wake, k.quit = make(chan struct{}, 1), make(chan struct{})
	k.resting.Store(true)
	k.done.Go(func() { k.run(db) })
}

func (k *checkpointer) stop() {
	if k.quit != nil {
		close(k.quit)
		k.done.Wait()
	}
}

// wrote is called after every commit.
func (k *checkpointer) wrote() {
	if n := k.commits.Add(1); n%lookEvery == 0 || k.resting.CompareAndSwap(true, false) {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

func (k *checkpointer) run(db *database) {
	timer := time.NewTimer(quiet)
	timer.Stop()
	var seen int64
	for armed := false; ; {
		idle := false
		select {
		case <-k.quit:
			return
		case <-k.wake:
			if !armed {
				armed = true
				seen = k.commits.Load()
				timer.Reset(quiet)
			}
		case <-timer.C:
			n := k.commits.Load()
			if idle = n == seen; !idle {
				seen = n
				timer.Reset(quiet)
				continue
			}
			armed = false
			k.resting.Store(true)
		}
		if err := db.checkpoint(idle); err != nil {
			db.log.Warn("checkpoint failed; the WAL keeps growing until one succeeds", "error", err)
		}
	}
}

// checkpoint copies the WAL if a portion of it is not yet copied, or any part of it when idle.
func (db *database) checkpoint(idle bool) error {
	if err := db.settle(db.keeper); errors.Is(err, errClosed) {
		return nil // Close copies the WAL
	} else if err != nil {
		return err
	}
	frames, copied, err := walStep(db.keeper, "NOOP")
	if err != nil || !idle && frames-copied < db.checkpointer.portion && frames < db.checkpointer.frames {
		return fault(err)
	}
	if frames, err = db.copyWAL(); err != nil || idle {
		return err
	}
	if err := db.syncFile(); err != nil || frames < db.checkpointer.frames {
		return err
	}
	// Under load the copy never reaches the end of the WAL, so the WAL could not restart: the rest is copied while the
	// checkpointer holds the write turn.
	if err := db.take(context.Background()); err != nil {
		return nil // Close copies the rest
	}
	defer func() { <-db.turn }()
	_, err = db.copyWAL()
	return err
}

// copyWAL copies what it can without waiting, and returns the number of frames in the WAL.
func (db *database) copyWAL() (frames int64, err error) {
	if frames, _, err = walStep(db.keeper, "PASSIVE"); err != nil {
		db.doubt.file = db.noteFailure(err) || db.doubt.file
	}
	return frames, fault(err)
}

// syncFile flushes the database file. SQLite syncs it only in a copy that reaches the end of the WAL, which holds the write turn:
// all commits would wait until the pages of every copy are on the disk.
func (db *database) syncFile() error {
	if err := db.file.Sync(); err != nil {
		db.doubt.file = true
		return fmt.Errorf("sync database: %w: %w", store.ErrUnavailable, err)
	}
	return nil
}

// walStep runs a checkpoint in the given mode and returns the number of frames in the WAL, and how many are copied.
func walStep(c *conn, mode string) (frames, copied int64, err error) {
	_, err = c.one(context.Background(), "PRAGMA wal_checkpoint("+mode+")", nil, func(r *rows) { frames, copied = r.int(1), r.int(2) })
	return frames, copied, err
}
