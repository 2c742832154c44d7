package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	lib "modernc.org/sqlite/lib"

	"github.com/godwit-hq/godwit/internal/store"
)

// A sync that fails may lose more than the transaction that asked for it. Linux takes the pages of a failed fsync for written and
// reports the error once: later syncs succeed, although these pages are not on the disk. Programs still read them from memory.
//
// What SQLite does about it. A commit whose sync fails is rolled back: the index of the WAL does not name its frames, and the next
// commit writes over them. That is right as long as every earlier frame was synced. It is not if the failed sync was also to write
//
//   - frames of commits without a sync (writeSoft). The next commit goes behind them, and its sync succeeds. After a power cut,
//     recovery stops at the first frame whose checksum does not fit: what was acknowledged after the hole is lost.
//   - pages of the database file that earlier portions of a checkpoint wrote. SQLite counts a portion as copied before the file is
//     synced, so the next checkpoint does not write these pages again. Its sync succeeds, the WAL begins anew, and the pages are lost.
//
// The same files may be left by a process that has ended since.
//
// So a failed sync leaves the files in doubt. Nothing is committed or copied then until the store has written again, and synced,
// all committed frames of the WAL, and all pages that were copied from them. It writes what the files are read as already, so
// readers may go on. The checksums of the frames tell whether the system has meanwhile dropped its copy of the lost pages; frames
// that were acknowledged are on the disk in any case. A store that serves starts in doubt, because of the process before it.
type doubt struct {
	failures atomic.Int64 // failed operations that may have lost frames of the WAL; 1 at the start
	settled  atomic.Int64 // failures after which the WAL was written again; set with the turn to write
	file     bool         // copied pages may be lost; used by the checkpointer alone, before its start by start, and after its end by Close
}

// noteFailure puts the WAL in doubt if the error may come from a sync. SQLite does not tell which file failed.
func (db *database) noteFailure(err error) (doubtful bool) {
	if primary(err) != lib.SQLITE_IOERR {
		return false
	}
	db.doubt.failures.Add(1)
	return true
}

func (db *database) inDoubt() bool {
	return db.doubt.file || db.doubt.failures.Load() != db.doubt.settled.Load()
}

// settleWAL writes the committed frames again if they are in doubt. The caller has the turn to write.
func (db *database) settleWAL(c *conn) error {
	failures := db.doubt.failures.Load()
	if failures == db.doubt.settled.Load() {
		return nil
	}
	if err := db.rewriting(c, func(w *walFile, _ int64) error { return w.rewrite() }); err != nil {
		return err
	}
	db.doubt.settled.Store(failures)
	return nil
}

// settleFile writes the copied pages again if they are in doubt. The caller has the turn to write and is the only one to run checkpoints.
func (db *database) settleFile(c *conn) error {
	if !db.doubt.file {
		return nil
	}
	if err := rewriteHeader(db.file); err != nil {
		return unavailable(err)
	}
	if err := db.rewriting(c, func(w *walFile, copied int64) error { return w.copyAgain(db.file, copied) }); err != nil {
		return err
	}
	if err := db.file.Sync(); err != nil {
		return unavailable(fmt.Errorf("sync database: %w", err))
	}
	db.doubt.file = false
	return nil
}

// settle ends all doubt before a checkpoint.
func (db *database) settle(c *conn) error {
	if !db.inDoubt() {
		return nil
	}
	if err := db.take(context.Background()); err != nil {
		return err
	}
	defer func() { <-db.turn }()
	if err := db.settleWAL(c); err != nil {
		return err
	}
	return db.settleFile(c)
}

// rewriting calls fn with the WAL, if it has frames, and the number of frames that are copied. No process writes to the WAL
// meanwhile.
func (db *database) rewriting(c *conn, fn func(w *walFile, copied int64) error) (err error) {
	frames, copied, err := walStep(c, "NOOP") // frames that another process adds after this were synced by its own commits
	if err != nil || frames <= 0 {
		return fault(err)
	}
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return fault(err)
	}
	defer func() {
		if _, rerr := c.exec("ROLLBACK"); err == nil {
			err = fault(rerr)
		}
	}()
	f, err := db.openFile(db.path + "-wal")
	if err != nil {
		return unavailable(fmt.Errorf("open WAL: %w", err))
	}
	w, err := openWAL(f, frames)
	if err == nil {
		err = fn(w, copied)
	}
	// No locks end with this descriptor: SQLite's are on the other files.
	return unavailable(errors.Join(err, f.Close()))
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write again what a failed sync may have lost: %w: %w", store.ErrUnavailable, err)
}
