-- Events that were posted for many tenants of an environment. Tenants without a result yet are in the list alone. It is a
-- separate table from the cursor, because an update writes a whole row; it goes when the broadcast is complete.
CREATE TABLE broadcasts (
    id             BLOB PRIMARY KEY,
    environment_id BLOB NOT NULL,
    principal      BLOB NOT NULL,
    type           TEXT NOT NULL,
    content_type   TEXT NOT NULL,
    for_all        INTEGER NOT NULL,
    tenants        INTEGER NOT NULL,
    done           INTEGER NOT NULL, -- position in the list
    accepted       INTEGER NOT NULL,
    skipped        INTEGER NOT NULL,
    deliveries     INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    completed_at   INTEGER NOT NULL  -- 0: open
) STRICT, WITHOUT ROWID;
CREATE INDEX broadcasts_environment ON broadcasts (environment_id, id);
CREATE INDEX broadcasts_open ON broadcasts (id) WHERE completed_at = 0;

CREATE TABLE broadcast_lists (
    n          INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE,
    attributes TEXT,
    carried    TEXT,
    body       BLOB,
    tenants    BLOB NOT NULL -- ids, one after the other
) STRICT;

CREATE TABLE broadcast_items (
    broadcast_id BLOB NOT NULL,
    tenant_id    BLOB NOT NULL,
    event_id     BLOB,
    reason       TEXT NOT NULL,
    detail       TEXT NOT NULL,
    PRIMARY KEY (broadcast_id, tenant_id)
) STRICT, WITHOUT ROWID;
