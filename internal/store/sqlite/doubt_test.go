package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite/faultdisk"
)

// openOnDisk opens a store on a simulated disk. Checkpoints run only when the test asks for one.
func openOnDisk(t *testing.T) (*Store, *faultdisk.Disk) {
	t.Helper()
	dir := t.TempDir()
	disk, err := faultdisk.New(dir, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(disk.Close)
	return openAgain(t, disk, dir), disk
}

func openAgain(t *testing.T, disk *faultdisk.Disk, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{
		SyncDir:  func(string) error { return disk.SyncDir() },
		OpenFile: func(path string) (File, error) { return disk.OpenFile(path) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) // fails after a cut
	if err := s.startServing(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.checkpointer.frames, s.checkpointer.portion = 1_000_000, 1
	return s
}

func softly(t *testing.T, s *Store) {
	t.Helper()
	err := s.writeSoft(t.Context(), "claim", func(c *conn) error {
		_, err := c.exec("UPDATE heartbeat SET beats = beats + 1")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func commitEvent(t *testing.T, s *Store, size int) godwit.EventID {
	t.Helper()
	b, e := event(size)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// failCommit lets the next sync fail, which loses writes that were not synced.
func failCommit(t *testing.T, s *Store, disk *faultdisk.Disk) {
	t.Helper()
	disk.Break(faultdisk.Fault{Op: faultdisk.Sync, N: 1, Times: 1, Errno: faultdisk.EIO})
	b, _ := event(10)
	if _, err := s.Commit(t.Context(), b); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("commit with a failing sync gave %v", err)
	}
	disk.Mend()
}

// checkSurvivors cuts the power and looks for events.
func checkSurvivors(t *testing.T, disk *faultdisk.Disk, events ...godwit.EventID) {
	t.Helper()
	disk.Cut()
	for _, survival := range []faultdisk.Survival{faultdisk.Nothing, faultdisk.Everything} {
		after := t.TempDir()
		if err := disk.Survivors(after, survival); err != nil {
			t.Fatal(err)
		}
		checkFiles(t, after, events...)
	}
}

func checkFiles(t *testing.T, dir string, events ...godwit.EventID) {
	t.Helper()
	if err := CheckIntegrity(t.Context(), filepath.Join(dir, fileName)); err != nil {
		t.Error(err)
	}
	s := openAt(t, dir, Options{})
	for _, id := range events {
		if _, err := s.Event(t.Context(), godwit.TenantID{1}, id); err != nil {
			t.Errorf("an acknowledged event: %v", err)
		}
	}
}

// A failed sync may lose the frames of commits that were not synced themselves. What is acknowledged after them must not depend on
// frames that are not on the disk.
func TestFailedSyncOfWAL(t *testing.T) {
	s, disk := openOnDisk(t)
	before := commitEvent(t, s, 10)
	for range 8 {
		softly(t, s)
	}
	failCommit(t, s, disk)
	checkSurvivors(t, disk, before, commitEvent(t, s, 10))
}

// A process that was killed after a failed sync leaves the same to the next one.
func TestFailedSyncBeforeStart(t *testing.T) {
	s, disk := openOnDisk(t)
	before := commitEvent(t, s, 10)
	for range 8 {
		softly(t, s)
	}
	failCommit(t, s, disk)
	next := openAgain(t, disk, filepath.Dir(s.path))
	checkSurvivors(t, disk, before, commitEvent(t, next, 10))
}

// copyPart commits two events and calls checkpoint, which can copy only the first: a snapshot keeps it from reaching the end of the
// WAL, so SQLite does not sync the database file.
func copyPart(t *testing.T, s *Store, checkpoint func()) (early, late godwit.EventID) {
	t.Helper()
	early = commitEvent(t, s, 100_000)
	err := s.read(t.Context(), "hold a snapshot", func(c *conn) error {
		if _, err := c.one(context.Background(), "SELECT count(*) FROM events", nil, nil); err != nil {
			return err
		}
		late = commitEvent(t, s, 10)
		checkpoint()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return early, late
}

// SQLite counts a portion of the WAL as copied before the database file is synced. If that sync fails, the portion is copied again
// before the WAL may begin anew.
func TestFailedSyncOfDatabaseFile(t *testing.T) {
	s, disk := openOnDisk(t)
	early, late := copyPart(t, s, func() {
		disk.Break(faultdisk.Fault{Op: faultdisk.Sync, N: 2, Times: 1, Errno: faultdisk.EIO}) // the first is of the WAL
		if err := s.checkpoint(false); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("checkpoint with a failing sync gave %v", err)
		}
		if n := disk.Mend(); n != 1 {
			t.Errorf("%d syncs failed", n)
		}
	})
	if err := s.checkpoint(true); err != nil {
		t.Fatal(err)
	}
	last := commitEvent(t, s, 10)
	if frames, _, err := walStep(s.keeper, "NOOP"); err != nil || frames > 20 {
		t.Fatalf("the WAL has %d frames (%v): it did not begin anew, so the test shows nothing", frames, err)
	}
	checkSurvivors(t, disk, early, late, last)
}

// A stop whose copy of the WAL fails leaves the WAL to the next start.
func TestFailedSyncAtClose(t *testing.T) {
	for n := int64(1); ; n++ {
		s, disk := openOnDisk(t)
		early, late := copyPart(t, s, func() {
			if err := s.checkpoint(true); err != nil {
				t.Fatal(err)
			}
		})
		softly(t, s)
		disk.Break(faultdisk.Fault{Op: faultdisk.Sync, N: n, Times: 1, Errno: faultdisk.EIO})
		err := s.Close()
		failed := disk.Mend()
		if (err == nil) != (failed == 0) {
			t.Errorf("sync %d: %d failed, close gave %v", n, failed, err)
		}
		checkSurvivors(t, disk, early, late)
		if failed == 0 {
			break
		}
	}
}

// The system may drop its copy of what it could not write. Then the WAL cannot be written again: nothing more is acknowledged, and
// a restart keeps what was.
func TestLostFrames(t *testing.T) {
	s, disk := openOnDisk(t)
	before := commitEvent(t, s, 10)
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	softly(t, s)
	failCommit(t, s, disk)
	wal, err := os.OpenFile(s.path+"-wal", os.O_RDWR, 0)
	if err == nil {
		_, err = wal.WriteAt(make([]byte, 4096), info.Size()+frameHeaderSize)
		err = errors.Join(err, wal.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b, _ := event(10)
		if _, err := s.Commit(t.Context(), b); !errors.Is(err, errLostFrames) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("commit behind lost frames gave %v", err)
		}
	}
	after := t.TempDir()
	for _, name := range []string{fileName, fileName + "-wal"} {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(s.path), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(after, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	checkFiles(t, after, before)
}
