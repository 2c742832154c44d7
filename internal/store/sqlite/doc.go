// Package sqlite is the embedded store: one file in a data directory, nothing to install.
//
//	Commit, Advance, ClaimDue, changes ──► turn ──► the one writer connection ──► WAL, synced ──► acknowledged
//	lists, lookups ──► any of a few readers, each in a snapshot of its own: they never wait for the writer
//	checkpointer ──► copies the WAL into the file beside both
//
// The connections use the SQLite driver directly, not through database/sql: statements stay prepared for a connection's
// life, and what database/sql does for every call is a sizeable part of what a row costs here.
//
// An ordinary delivery is written once: from the commit of its event to its first result the row of the event names it
// (see handover), and its row begins with that result and the first attempt in it. What takes longer is as it always was:
// a row that changes, and further attempts in rows of their own.
//
// A write is acknowledged after fsync (synchronous=FULL). A claim alone is not synced: it means nothing after a restart,
// and whatever relies on it is synced after it.
//
// The package deliberately has no foreign keys, no memory-mapped reads (an I/O error would be a fatal signal instead of
// an error value) and reads no clock. One process serves a data directory at a time: see Options.Exclusive.
package sqlite
