-- The history for charts; package stats says what the blobs hold.
--
-- Each commit appends one row to the log. State 0: of a commit; 1: merged; 2: merged, and ready to be added to pages; 3: set aside, because it cannot
-- be decoded.
CREATE TABLE stats_log (
    n     INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,
    data  BLOB NOT NULL
) STRICT;

-- Pages of slots. The key begins with the time, so that the pages of the present are close together, and those of the past go in one piece.
CREATE TABLE stats (
    level    INTEGER NOT NULL,
    chunk    INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    owner    BLOB NOT NULL,
    endpoint BLOB NOT NULL,
    counts   BLOB NOT NULL,
    latency  BLOB NOT NULL,
    causes   BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX stats_key ON stats (level, chunk, kind, owner, endpoint);

-- When the history begins: one row.
CREATE TABLE stats_begin (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
) STRICT;

-- Deleted tenants whose pages are still to be removed.
CREATE TABLE stats_gone (
    tenant_id BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;
