-- Programs of schema 11 and later may run beside this one.
-- What they commit is not in the history.
--
-- The history for charts; package stats says what the bytes hold.
--
-- Each commit appends one row to the log. State 0: of a commit; 1: merged; 2: merged, and ready to be added to pages; 3: set aside, because it cannot
-- be decoded. The log has no index: it is always read as a whole, and its rows are deleted by their place. Rows stay in the table up to the size of a
-- page, since a separate table for long values would cost every commit an insert more.
CREATE TABLE stats_log (
    state int2 NOT NULL,
    data  bytea NOT NULL
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE stats_log ALTER data SET STORAGE EXTERNAL;

-- Pages of slots. The key begins with the time, so that the pages of the present are close together, and those of the past go in one piece. An update
-- changes no indexed column, and the free space keeps the new version in the same page.
CREATE TABLE stats (
    level    int2 NOT NULL,
    chunk    int8 NOT NULL,
    kind     int2 NOT NULL,
    owner    uuid NOT NULL,
    endpoint uuid NOT NULL,
    counts   bytea NOT NULL,
    latency  bytea NOT NULL,
    causes   bytea NOT NULL,
    PRIMARY KEY (level, chunk, kind, owner, endpoint)
) WITH (fillfactor = 70);
ALTER TABLE stats ALTER counts SET STORAGE MAIN, ALTER latency SET STORAGE EXTERNAL, ALTER causes SET STORAGE EXTERNAL;

-- When the history begins: one row.
CREATE TABLE stats_begin (
    one int2 PRIMARY KEY CHECK (one = 1),
    at  timestamptz NOT NULL
);

-- Deleted tenants whose pages are still to be removed.
CREATE TABLE stats_gone (
    tenant_id uuid PRIMARY KEY
);
