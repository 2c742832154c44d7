-- What an intermediary needs: where upstreams deliver to us, what they agreed to, what was not taken in, and what an
-- event brings along.

-- Null in the ordinary case, so that an ordinary event is as narrow as it was.
ALTER TABLE events ADD COLUMN carried json;
ALTER TABLE dead_letters ADD COLUMN event_carried json;

CREATE TABLE sources (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL,
    name        text COLLATE "C" NOT NULL,
    description text NOT NULL,
    scheme      text NOT NULL,
    settings    json,
    sealed      bytea,
    credentials json,
    adopt       boolean NOT NULL,
    mode        text NOT NULL,
    event_type  json,
    keep        json,
    status      text NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    version     bigint NOT NULL
);
CREATE INDEX sources_by_tenant ON sources (tenant_id, id);
CREATE UNIQUE INDEX sources_by_name ON sources (tenant_id, name) WHERE status <> 'deleted';

CREATE TABLE acknowledgments (
    id        uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    source_id uuid NOT NULL,
    version   text NOT NULL,
    terms     bytea,
    by        text NOT NULL,
    actor     text NOT NULL,
    at        timestamptz NOT NULL
);
CREATE INDEX acknowledgments_by_source ON acknowledgments (source_id, id);

CREATE TABLE rejections (
    id          uuid PRIMARY KEY,
    tenant_id   uuid NOT NULL,
    source_id   uuid NOT NULL,
    status      integer NOT NULL,
    code        text NOT NULL,
    reason      text NOT NULL,
    detail      text NOT NULL,
    remote_addr text NOT NULL,
    method      text NOT NULL,
    size        bigint NOT NULL,
    headers     json,
    at          timestamptz NOT NULL
);
CREATE INDEX rejections_by_source ON rejections (source_id, id);
CREATE INDEX rejections_by_time ON rejections (at);
