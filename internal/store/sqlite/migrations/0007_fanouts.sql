-- The remaining work for events with too many deliveries for one transaction. The lists are in a separate table from the
-- cursor, because an update writes a whole row.
CREATE TABLE fanouts (
    id   BLOB PRIMARY KEY,
    done INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE fanout_lists (
    n           INTEGER PRIMARY KEY,
    id          BLOB NOT NULL UNIQUE,
    tenant_id   BLOB NOT NULL,
    run_trigger TEXT NOT NULL,
    events      BLOB NOT NULL, -- ids, one after the other
    endpoints   BLOB NOT NULL
) STRICT;
