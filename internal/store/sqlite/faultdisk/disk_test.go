package faultdisk

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"
)

func newDisk(t *testing.T, dir string, seed uint64) *Disk {
	t.Helper()
	d, err := New(dir, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func openDB(t *testing.T, dir, synchronous string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "x.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")&_pragma=wal_autocheckpoint(20)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// fill inserts rows until the power is cut and returns how many were acknowledged.
func fill(db *sql.DB, limit int) (acknowledged int) {
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, filler TEXT)"); err != nil {
		return 0
	}
	for n := range limit {
		if _, err := db.Exec("INSERT INTO t VALUES (?, hex(randomblob(300)))", n+1); err != nil {
			break
		}
		acknowledged++
	}
	return acknowledged
}

// check opens what survived and returns how many of the acknowledged rows are missing, or that it is damaged.
func check(t *testing.T, dir string, acknowledged int) (missing int, damaged string) {
	t.Helper()
	db := openDB(t, dir, "FULL")
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
		return 0, err.Error()
	}
	if verdict != "ok" {
		return 0, verdict
	}
	if acknowledged == 0 {
		return 0, ""
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM t WHERE n <= ?", acknowledged).Scan(&n); err != nil {
		return acknowledged, ""
	}
	return acknowledged - n, ""
}

// run fills a database until the power is cut, and checks what survived.
func run(t *testing.T, seed uint64, synchronous string) (acknowledged, missing int, damaged string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	dir, after := t.TempDir(), t.TempDir()
	d := newDisk(t, dir, seed)
	d.CutAt(1+random.Int64N(400), nil)
	db := openDB(t, dir, synchronous)
	acknowledged = fill(db, 200)
	d.Cut()
	db.Close()
	if err := d.Survivors(after, Survivals[random.IntN(len(Survivals))]); err != nil {
		t.Fatal(err)
	}
	missing, damaged = check(t, after, acknowledged)
	return acknowledged, missing, damaged
}

// Synced commits survive every kind of cut, and the file is never damaged.
func TestSyncedCommitsSurvive(t *testing.T) {
	total := 0
	for seed := range uint64(60) {
		acknowledged, missing, damaged := run(t, seed, "FULL")
		if missing > 0 || damaged != "" {
			t.Errorf("seed %d: %d of %d rows are missing; damage: %q", seed, missing, acknowledged, damaged)
		}
		total += acknowledged
	}
	if total == 0 {
		t.Error("no row was acknowledged: the test shows nothing")
	}
}

// Without syncs the same cuts lose rows and damage files: the disk really drops what was not synced.
func TestUnsyncedCommitsAreLost(t *testing.T) {
	lost, broken := 0, 0
	for seed := range uint64(60) {
		_, missing, damaged := run(t, seed, "OFF")
		if missing > 0 {
			lost++
		}
		if damaged != "" {
			broken++
		}
	}
	if lost == 0 || broken == 0 {
		t.Errorf("of 60 cuts without syncs %d lost rows and %d damaged the file; both should happen", lost, broken)
	}
	t.Logf("of 60 cuts without syncs %d lost rows and %d damaged the file", lost, broken)
}

// After a failed sync the next sync does not write what the failed one should have.
func TestFailedSyncLosesWrites(t *testing.T) {
	lost := 0
	for seed := range uint64(20) {
		d := newDisk(t, t.TempDir(), seed)
		f := d.opened("x.db", 0)
		f.write([]byte("abc"), 0)
		d.Break(Fault{Op: Sync, N: 1, Times: 1, Errno: EIO})
		if f.sync() == 0 {
			t.Fatal("the sync did not fail")
		}
		if f.sync() != 0 {
			t.Fatal("the second sync failed")
		}
		if len(f.node.durable) == 0 {
			lost++
		}
	}
	if lost == 0 || lost == 20 {
		t.Errorf("%d of 20 failed syncs lost the write", lost)
	}
}

// A new file survives only once its directory is synced, and a removed one stays until then.
func TestEntriesOfTheDirectory(t *testing.T) {
	dir, after := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.db"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDisk(t, dir, 1)
	f := d.opened("new.db", 0)
	f.write([]byte("new"), 0)
	f.sync()
	d.removed("old.db", false)
	for _, c := range []struct {
		sync     bool
		old, new bool
	}{{false, true, false}, {true, false, true}} {
		if c.sync {
			d.syncDir()
		}
		into := filepath.Join(after, fmt.Sprint(c.sync))
		if err := os.Mkdir(into, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := d.Survivors(into, Nothing); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"old.db": c.old, "new.db": c.new} {
			if _, err := os.Stat(filepath.Join(into, name)); (err == nil) != want {
				t.Errorf("directory synced %v: %s is there: %v, want %v", c.sync, name, err == nil, want)
			}
		}
	}
}
