-- What is left to do for events whose deliveries are too many for one transaction. The lists stand apart from the cursor: an
-- update writes a whole row.
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
