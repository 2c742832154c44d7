// Package backup copies the data of a server on SQLite to another place, while the server runs, and brings it back.
//
//	Write:   database (one snapshot) + key ring + evidence key + certificates ──► checked ──► DIR.partial-… ──► renamed to DIR
//	Restore: DIR ──► checksums, schema, lock of the data directory ──► old files set aside ──► keys, then the database, renamed into place
//
// A backup is a directory: the files of a data directory and backup.json, which names them with their checksums. Both operations
// are atomic: an interrupted one leaves no backup, or a data directory without a database.
//
// The package does not back up PostgreSQL, which has better means of its own (see Advice).
package backup

// Advice says how a server on PostgreSQL is backed up and restored.
const Advice = `the store is PostgreSQL: back it up and restore it with its own programs.
  one moment in time:   pg_dump --format=custom --file=godwit.dump "$GODWIT_STORE"
                        pg_restore --dbname="$NEW_STORE" godwit.dump          (all nodes stopped; they find the new store at their start)
  any moment in time:   pg_basebackup --pgdata=DIR --wal-method=stream, with WAL archiving (archive_command)
Keep the key ring and the evidence key with it: without them the dump cannot be used. docs/operations.md says what a restore means`
