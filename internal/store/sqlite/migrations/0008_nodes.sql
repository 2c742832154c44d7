-- Which process runs under a node's name. The instance is random and new with every process. The lock on the data directory
-- says that the process lives.
CREATE TABLE nodes (
    name     TEXT PRIMARY KEY,
    instance TEXT NOT NULL,
    holder   TEXT NOT NULL -- host and process, for people
) STRICT, WITHOUT ROWID;

-- By what a key ring and an evidence key are known to be this store's own.
CREATE TABLE key_checks (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
