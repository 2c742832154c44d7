-- The process that runs under each node name. Every process has a new random instance. The lock on the data directory shows
-- that the process is alive.
CREATE TABLE nodes (
    name     TEXT PRIMARY KEY,
    instance TEXT NOT NULL,
    holder   TEXT NOT NULL -- host and process, for people
) STRICT, WITHOUT ROWID;

-- Check values that prove that a key ring and an evidence key belong to this store.
CREATE TABLE key_checks (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
