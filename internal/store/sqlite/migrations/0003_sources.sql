-- What an intermediary needs: where upstreams deliver to us, what they agreed to, what was not taken in, and what an
-- event brings along.

-- Behind the body, since a new column can stand nowhere else without writing every row anew. NULL, which is the ordinary
-- case, takes no byte there and is known without reading the body's pages.
ALTER TABLE events ADD COLUMN carried TEXT;
ALTER TABLE dead_letters ADD COLUMN carried TEXT;

CREATE TABLE sources (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    scheme      TEXT NOT NULL,
    settings    TEXT,
    sealed      BLOB,
    credentials TEXT,
    adopt       INTEGER NOT NULL,
    mode        TEXT NOT NULL,
    event_type  TEXT,
    keep        TEXT,
    status      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    version     INTEGER NOT NULL
) STRICT;
CREATE INDEX sources_tenant ON sources (tenant_id, id);
CREATE UNIQUE INDEX sources_name ON sources (tenant_id, name) WHERE status <> 'deleted';

CREATE TABLE acknowledgments (
    id        BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    source_id BLOB NOT NULL,
    version   TEXT NOT NULL,
    terms     BLOB,
    by        TEXT NOT NULL,
    actor     TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX acknowledgments_source ON acknowledgments (source_id, id);

CREATE TABLE rejections (
    id          BLOB PRIMARY KEY,
    tenant_id   BLOB NOT NULL,
    source_id   BLOB NOT NULL,
    status      INTEGER NOT NULL,
    code        TEXT NOT NULL,
    reason      TEXT NOT NULL,
    detail      TEXT NOT NULL,
    remote_addr TEXT NOT NULL,
    method      TEXT NOT NULL,
    size        INTEGER NOT NULL,
    headers     TEXT,
    at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX rejections_source ON rejections (source_id, id);
CREATE INDEX rejections_at ON rejections (at);
