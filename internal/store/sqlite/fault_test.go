package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func openAt(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func newID[I ~[16]byte]() I { return newIDAt[I](noon) }

func newIDAt[I ~[16]byte](now time.Time) I {
	var event func(time.Time) godwit.EventID = godwit.NewID
	return I(event(now))
}

// event makes a batch of one event with a body of the given size.
func event(size int) (*store.Batch, *godwit.Event) {
	e := &godwit.Event{
		ID: newID[godwit.EventID](), TenantID: godwit.TenantID{1}, Type: "t", Key: "k", Body: bytes.Repeat([]byte{7}, size), CreatedAt: noon,
	}
	return &store.Batch{Now: noon, Accepts: []store.Accept{{Events: []store.NewEvent{{Event: e}}}}}, e
}

// A full disk is a temporary error: nothing of the batch is stored, and later batches succeed once there is space.
func TestDiskFull(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	small, kept := event(10)
	if _, err := s.Commit(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	limitPages(t, s, "1") // SQLite allows no fewer than the existing pages
	big, lost := event(1 << 20)
	fits, alsoLost := event(10)
	big.Accepts = append(fits.Accepts, big.Accepts...)
	for range 3 {
		if _, err := s.Commit(t.Context(), big); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("commit on a full disk gave %v", err)
		}
	}
	for _, id := range []godwit.EventID{lost.ID, alsoLost.ID} {
		if _, err := s.Event(t.Context(), godwit.TenantID{1}, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a part of the batch is there: %v", err)
		}
	}
	if _, err := s.Event(t.Context(), godwit.TenantID{1}, kept.ID); err != nil {
		t.Errorf("the event acknowledged before: %v", err)
	}
	limitPages(t, s, "1000000")
	if _, err := s.Commit(t.Context(), big); err != nil {
		t.Errorf("commit after there is room again: %v", err)
	}
}

func limitPages(t *testing.T, s *Store, n string) {
	t.Helper()
	if err := s.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { <-s.turn }()
	if err := s.writer.script("PRAGMA max_page_count = " + n); err != nil {
		t.Fatal(err)
	}
}

// The store replaces a writer whose connection may be broken.
func TestWriterIsReplaced(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	if err := s.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.dropWriter()
	<-s.turn
	b, e := event(10)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Event(t.Context(), e.TenantID, e.ID); err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, e := event(1)
	if _, err := s.Commit(t.Context(), b); !errors.Is(err, errClosed) {
		t.Errorf("commit gave %v", err)
	}
	if _, err := s.Event(t.Context(), e.TenantID, e.ID); !errors.Is(err, errClosed) {
		t.Errorf("read gave %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("ping gave %v", err)
	}
}

// Ping writes unless another write succeeded since; a write of Ping itself does not count for the next Ping.
func TestPingWrites(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	beats := func() (n int64) {
		err := s.read(t.Context(), "read", func(c *conn) error {
			_, err := c.one(t.Context(), "SELECT beats FROM heartbeat", nil, func(r *rows) { n = r.int(0) })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.Ping(t.Context()) // the migration counted as a write
	for i, commit := range []bool{false, false, true, false} {
		before := beats()
		if commit {
			b, _ := event(1)
			if _, err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if wrote := beats() != before; wrote == commit {
			t.Errorf("ping %d after a commit %v: wrote %v", i, commit, wrote)
		}
	}
}

// Readers proceed during a write.
func TestReadsDoNotWait(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	b, e := event(1)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	err := s.write(t.Context(), "hold", func(c *conn) error {
		if _, err := c.exec("DELETE FROM events"); err != nil {
			return err
		}
		_, err := s.Event(t.Context(), e.TenantID, e.ID)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A write that waits for its turn gives up when its context ends.
func TestWaitingForTurn(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	ctx, cancel := context.WithCancel(t.Context())
	err := s.write(t.Context(), "hold", func(*conn) error {
		cancel()
		b, _ := event(1)
		if _, err := s.Commit(ctx, b); !errors.Is(err, context.Canceled) {
			t.Errorf("commit gave %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestExclusive(t *testing.T) {
	dir := t.TempDir()
	server := openAt(t, dir, Options{Exclusive: true})
	_, err := Open(t.Context(), dir, Options{Exclusive: true})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second server got %v", err)
	}
	admin := openAt(t, dir, Options{})
	if err := admin.CreateTenant(t.Context(), &godwit.Tenant{ID: godwit.TenantID{9}, Name: "made beside", CreatedAt: noon}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Tenant(t.Context(), godwit.TenantID{9}); err != nil {
		t.Errorf("the server does not see what an administration command wrote: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, dir, Options{Exclusive: true})
}

// The writer's cached epochs are refreshed after another connection changes the leases.
func TestEpochsOfAnotherConnection(t *testing.T) {
	dir := t.TempDir()
	a, b := openAt(t, dir, Options{}), openAt(t, dir, Options{})
	held, err := storetest.TakeAll(t.Context(), a, "a")
	if err != nil {
		t.Fatal(err)
	}
	claim := store.Claim{EndpointID: godwit.EndpointID{15: 3}, Epoch: held[3].Epoch, Now: noon, Limit: 1}
	if _, err := storetest.ClaimOne(t.Context(), a, claim); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.TakeAll(t.Context(), b, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.ClaimOne(t.Context(), a, claim); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a claims after b took over: %v", err)
	}
}

func TestSchema(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Options{})
	st, err := s.Status(t.Context())
	if err != nil || st.Version != st.Current || st.Version < 1 || len(st.Pending) != 0 {
		t.Fatalf("status is %+v, %v", st, err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("migrate when there is nothing to do: %v", err)
	}
	change := func(query string) {
		t.Helper()
		if err := s.write(t.Context(), "change", func(c *conn) error { _, err := c.exec(query); return err }); err != nil {
			t.Fatal(err)
		}
	}
	change("INSERT INTO schema_version VALUES (9999, 'from the future')")
	for _, o := range []Options{{}, {NoMigrate: true}, {Exclusive: true}} {
		if _, err := Open(t.Context(), dir, o); !errors.Is(err, store.ErrNewerSchema) {
			t.Errorf("a newer schema was opened: %v", err)
		}
	}
	change("DELETE FROM schema_version")
	if _, err := Open(t.Context(), dir, Options{NoMigrate: true}); err == nil || !strings.Contains(err.Error(), "godwit migrate") {
		t.Errorf("an older schema was opened without migrating: %v", err)
	}
	lock, err := acquireLock(s.lockPath())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("migrated under a running server: %v", err)
	}
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made for it", "with % ? # in its name")
	s := openAt(t, dir, Options{Exclusive: true})
	b, _ := event(10)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatalf("data directory has %v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, fileName+"-wal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the WAL is there after closing: %v", err)
	}

	file := filepath.Join(t.TempDir(), "named.db")
	if d, err := openAt(t, file, Options{}).Describe(t.Context()); err != nil || d.Location != file {
		t.Errorf("description is %+v, %v", d, err)
	}
}

func TestNotADatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{Exclusive: true}); err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("opening garbage gave %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, fileName, "below a file"), Options{}); err == nil {
		t.Error("opened below a file")
	}
}
