package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// walFrames is the default length at which the WAL is copied into the database file: 16000 pages are 64 MiB. Copying less often
	// costs less, because a page that was written many times is copied once.
	walFrames = 16000
	// lookEvery is the number of commits between two checks of the WAL's length.
	lookEvery = 64
	// quiet is how long the store must be idle before the rest of the WAL is copied.
	quiet = 5 * time.Second
)

// A checkpointer copies the WAL into the database file concurrently with the writer, so that no commit waits for it.
type checkpointer struct {
	frames  int64 // Options.WALPages
	commits atomic.Int64
	resting atomic.Bool // set while there is nothing to copy
	wake    chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
}

func (k *checkpointer) start(db *database, frames int64) {
	k.frames = frames
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
	var c *conn
	defer func() {
		if c != nil {
			c.close()
		}
	}()
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
		if err := db.checkpoint(&c, idle); err != nil {
			db.log.Warn("checkpoint failed; the WAL keeps growing until one succeeds", "error", err)
		}
	}
}

// checkpoint copies the WAL if it is long, or at any length when idle.
func (db *database) checkpoint(c **conn, idle bool) (err error) {
	if *c == nil {
		if *c, err = connect(context.Background(), db.path, "cache_size(-1024)"); err != nil {
			return err
		}
	}
	frames, err := walStep(*c, "NOOP")
	if err != nil || frames < db.checkpointer.frames && !idle {
		return fault(err)
	}
	// The first copy runs concurrently with the writer. Under load it never reaches the end of the WAL, so the WAL could not
	// restart: the rest is copied while the checkpointer holds the write turn.
	if frames, err = walStep(*c, "PASSIVE"); err != nil || idle || frames < db.checkpointer.frames {
		return fault(err)
	}
	if err := db.take(context.Background()); err != nil {
		return nil // Close copies the rest
	}
	defer func() { <-db.turn }()
	_, err = walStep(*c, "PASSIVE")
	return fault(err)
}

// walStep runs a checkpoint in the given mode and returns the number of frames in the WAL.
func walStep(c *conn, mode string) (frames int64, err error) {
	_, err = c.one(context.Background(), "PRAGMA wal_checkpoint("+mode+")", nil, func(r *rows) { frames = r.int(1) })
	return frames, err
}
