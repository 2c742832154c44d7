// Package sqlite is the embedded store: one file in a data directory, nothing to install.
//
//	Commit, Advance, ClaimDue, changes ──► turn ──► the one writer connection ──► WAL, synced ──► acknowledged
//	lists, lookups ──► any of a few readers, each in a snapshot of its own: they never wait for the writer
//	checkpointer ──► copies the WAL into the file beside both
//
// The connections use the SQLite driver directly, not through database/sql: statements stay prepared for the life of a
// connection, and the overhead of database/sql per call would be a large part of the cost of a row.
//
// An ordinary delivery is written once: until its first result it is listed in the row of its event (see handover), and its
// own row is first written with that result and the first attempt. A delivery that takes longer has a row that changes, and
// separate rows for further attempts.
//
// A write is acknowledged after fsync (synchronous=FULL). Only claims are not synced: they are void after a restart, and every
// write that depends on one is synced after it.
//
// The package deliberately has no foreign keys, no memory-mapped reads (an I/O error would be a fatal signal instead of
// an error value) and reads no clock. One process serves a data directory at a time: see Options.Exclusive.
package sqlite
