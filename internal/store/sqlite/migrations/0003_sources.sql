-- Changes for intermediaries: sources that upstreams deliver to, acknowledgments of their agreement, rejected requests, and
-- the members that an event carries along.

-- The column comes after the body, because adding it elsewhere would rewrite every row. In the ordinary case it is NULL,
-- which takes no space and is read without the body's pages.
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
