package faultdisk

import (
	"strings"

	lib "modernc.org/sqlite/lib"
)

// An Errno is the reason why an operation fails.
type Errno string

// Reasons.
const (
	EIO    Errno = "EIO"
	ENOSPC Errno = "ENOSPC"
)

// A Fault makes operations fail.
type Fault struct {
	// Op is the kind of operation. Defaults to every kind.
	Op Op
	// N is the first operation of that kind that fails, counted from when the fault is set.
	N int64
	// Times is how many operations fail from then on. 0 means all of them until Mend.
	Times int64
	// Odds, if not 0, makes each operation fail with a chance of one in Odds instead, until Mend.
	Odds int
	// Errno is the reason.
	Errno Errno
}

// Break sets a fault.
func (d *Disk) Break(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.matched, d.failed = &f, 0, 0
}

// Mend removes the fault and returns how many operations failed by it.
func (d *Disk) Mend() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = nil
	return d.failed
}

// Failed returns how many operations have failed by the present or last fault.
func (d *Disk) Failed() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *Disk) failing(op Op, name string) int32 {
	f := d.fault
	if f == nil || f.Op != "" && f.Op != op || f.Errno == ENOSPC && !needsSpace(op) {
		return lib.SQLITE_OK
	}
	if f.Odds > 0 {
		if d.random.IntN(f.Odds) > 0 {
			return lib.SQLITE_OK
		}
	} else if d.matched++; d.matched < f.N || f.Times > 0 && d.matched >= f.N+f.Times {
		return lib.SQLITE_OK
	}
	d.failed++
	if f.Errno == ENOSPC && op == Write {
		return lib.SQLITE_FULL // as SQLite's own VFS reports it
	}
	return lost(op)
}

// needsSpace reports whether an operation can fail for lack of space.
func needsSpace(op Op) bool { return op == Write || op == Sync || op == Open || op == Map }

func isDatabase(name string) bool {
	return strings.HasSuffix(name, ".db") || strings.HasSuffix(name, ".db-wal") || strings.HasSuffix(name, ".db-journal") || isShared(name)
}
