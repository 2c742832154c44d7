-- The history for charts; package stats says what the blobs hold.
--
-- Each commit appends one row to the log. State 0: of a commit; 1: merged; 2: merged, and ready to be added to pages; 3: set aside, because it cannot
-- be decoded.
CREATE TABLE stats_log (
    n     INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,
    data  BLOB NOT NULL
) STRICT;

-- Pages of slots. The key begins with the time, so that the pages of the present are close together, and those of the past go in one piece. Latencies are
-- apart, since they are long, and a question about all endpoints reads their counts alone.
CREATE TABLE stats (
    level    INTEGER NOT NULL,
    chunk    INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    owner    BLOB NOT NULL,
    endpoint BLOB NOT NULL,
    counts   BLOB NOT NULL,
    causes   BLOB NOT NULL,
    PRIMARY KEY (level, chunk, kind, owner, endpoint)
) STRICT, WITHOUT ROWID;
CREATE TABLE stats_latency (
    level    INTEGER NOT NULL,
    chunk    INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    owner    BLOB NOT NULL,
    endpoint BLOB NOT NULL,
    latency  BLOB NOT NULL,
    PRIMARY KEY (level, chunk, kind, owner, endpoint)
) STRICT, WITHOUT ROWID;

-- When the history begins: one row.
CREATE TABLE stats_begin (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
) STRICT;

-- Deleted tenants whose pages are still to be removed.
CREATE TABLE stats_gone (
    tenant_id BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;
