-- Tenants and what they own.

CREATE TABLE tenants (
    id                      uuid PRIMARY KEY,
    name                    text NOT NULL,
    require_idempotency_key boolean NOT NULL,
    created_at              timestamptz,
    deleted_at              timestamptz
);

CREATE TABLE api_keys (
    id         uuid PRIMARY KEY,
    tenant_id  uuid NOT NULL,
    principal  uuid,
    name       text NOT NULL,
    hint       text NOT NULL,
    hash       bytea NOT NULL UNIQUE,
    scopes     text[],
    created_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, id);

CREATE TABLE endpoints (
    id            uuid PRIMARY KEY,
    tenant_id     uuid NOT NULL,
    url           text NOT NULL,
    method        text NOT NULL,
    profile       text NOT NULL,
    description   text NOT NULL,
    patterns      text[],
    filter        json,
    policy        json,
    metadata      json,
    sealed        bytea,
    sealed_info   json,
    status        text NOT NULL,
    status_reason text NOT NULL,
    status_at     timestamptz,
    created_at    timestamptz,
    updated_at    timestamptz,
    version       bigint NOT NULL
);
CREATE INDEX endpoints_by_tenant ON endpoints (tenant_id, id);

CREATE TABLE endpoint_secrets (
    id          uuid PRIMARY KEY,
    endpoint_id uuid NOT NULL,
    tenant_id   uuid NOT NULL,
    algorithm   text NOT NULL,
    sealed      bytea,
    public_key  bytea,
    created_at  timestamptz,
    not_before  timestamptz,
    expires_at  timestamptz
);
CREATE INDEX endpoint_secrets_by_endpoint ON endpoint_secrets (endpoint_id, id);
CREATE INDEX endpoint_secrets_public ON endpoint_secrets (id) WHERE public_key IS NOT NULL;

-- Written with every batch of results: room in the page keeps those updates from touching the index.
CREATE TABLE endpoint_health (
    endpoint_id          uuid PRIMARY KEY,
    consecutive_failures integer NOT NULL,
    consecutive_terminal integer NOT NULL,
    accepted             bigint NOT NULL,
    transient            bigint NOT NULL,
    terminal             bigint NOT NULL,
    avg_duration_ms      double precision NOT NULL,
    last_reason          text NOT NULL,
    last_accepted_at     timestamptz,
    last_failure_at      timestamptz,
    hold_until           timestamptz,
    sunset_at            timestamptz,
    circuit_open_at      timestamptz,
    probe_at             timestamptz,
    updated_at           timestamptz
) WITH (fillfactor = 40);

CREATE TABLE notices (
    id              uuid PRIMARY KEY,
    tenant_id       uuid NOT NULL,
    endpoint_id     uuid,
    delivery_id     uuid,
    event_id        uuid,
    kind            text NOT NULL,
    detail          text NOT NULL,
    link            text NOT NULL,
    created_at      timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text NOT NULL
);
CREATE INDEX notices_by_tenant ON notices (tenant_id, id);
CREATE INDEX notices_by_age ON notices (created_at);

CREATE TABLE idempotency_records (
    id                bytea PRIMARY KEY,
    tenant_id         uuid NOT NULL,
    event_id          uuid, -- first event accepted under the key: tells a repeat of this very accept from a replay
    fingerprint       bytea NOT NULL,
    response_status   integer, -- null while the first request is in progress
    response_type     text,
    response_location text,
    response_body     bytea,
    created_at        timestamptz,
    expires_at        timestamptz
);
CREATE INDEX idempotency_records_by_end ON idempotency_records (expires_at);

-- Ownership of shards.

CREATE TABLE leases (
    shard      smallint PRIMARY KEY,
    owner      text NOT NULL, -- empty: free
    epoch      bigint NOT NULL,
    expires_at timestamptz
) WITH (fillfactor = 40);
INSERT INTO leases (shard, owner, epoch) SELECT shard, '', 0 FROM generate_series(0, 63) AS shard;

-- expect fails the transaction with the given SQLSTATE unless as many rows were found as wanted: a commit assumes the
-- ordinary case, and this is how it hears that it was wrong without waiting for an answer in between.
CREATE FUNCTION expect(found_rows bigint, wanted bigint, state text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF found_rows <> wanted THEN
        RAISE EXCEPTION 'expected % rows, found %', wanted, found_rows USING ERRCODE = state;
    END IF;
END $$;

-- Events, finished deliveries and attempts: appended in the order of their ids, which is the order of time. Each day is
-- a partition, and retention drops it whole.

CREATE TABLE events (
    tenant_id    uuid NOT NULL,
    id           uuid NOT NULL,
    principal    uuid,
    created_at   timestamptz,
    type         text NOT NULL,
    key          text NOT NULL,
    content_type text NOT NULL,
    key_slot     bigint NOT NULL, -- hour of the id and a hash of the key: new entries of the index are neighbours
    deliveries   bytea NOT NULL, -- ids of its deliveries, 16 bytes each, in place of an index over deliveries
    attributes   json,
    body         bytea NOT NULL,
    PRIMARY KEY (tenant_id, id)
) PARTITION BY RANGE (id);
CREATE INDEX events_by_key ON events (key_slot);
CREATE TABLE events_default PARTITION OF events DEFAULT;

CREATE TABLE deliveries (
    tenant_id     uuid NOT NULL,
    id            uuid NOT NULL,
    event_id      uuid NOT NULL,
    endpoint_id   uuid NOT NULL,
    created_at    timestamptz,
    updated_at    timestamptz,
    due_at        timestamptz,
    run_first_at  timestamptz,
    attempts      integer NOT NULL,
    last_status   integer NOT NULL,
    run_attempts  integer NOT NULL,
    run_refreshed boolean NOT NULL,
    status        text NOT NULL,
    reason        text NOT NULL,
    run_trigger   text NOT NULL,
    run_actor     text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) PARTITION BY RANGE (id);
CREATE INDEX deliveries_by_endpoint ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_by_status ON deliveries (tenant_id, status, id) WHERE status <> 'accepted';
CREATE INDEX deliveries_again ON deliveries (tenant_id, id) WHERE run_trigger <> 'accept';
CREATE TABLE deliveries_default PARTITION OF deliveries DEFAULT;

CREATE TABLE attempts (
    delivery_id uuid NOT NULL,
    id          uuid NOT NULL,
    started_at  timestamptz,
    next_at     timestamptz,
    duration    bigint NOT NULL, -- microseconds
    n           integer NOT NULL,
    status      integer NOT NULL,
    trigger     text NOT NULL,
    outcome     text NOT NULL,
    reason      text NOT NULL,
    url         text NOT NULL,
    verdict     json, -- what the verdict says besides outcome and reason; null for an ordinary one
    trace       json,
    PRIMARY KEY (delivery_id, id)
) PARTITION BY RANGE (id);
CREATE TABLE attempts_default PARTITION OF attempts DEFAULT;

-- Work that is not finished, and nothing else. Rows come and go here at the full rate; the program vacuums it between the
-- server's own rounds. claim_epoch is 0, or the epoch of the shard's lease under which a node has the delivery in memory.
CREATE TABLE pending_deliveries (
    tenant_id     uuid NOT NULL,
    id            uuid NOT NULL,
    event_id      uuid NOT NULL,
    endpoint_id   uuid NOT NULL,
    claim_epoch   bigint NOT NULL,
    created_at    timestamptz,
    updated_at    timestamptz,
    due_at        timestamptz NOT NULL,
    run_first_at  timestamptz,
    attempts      integer NOT NULL DEFAULT 0,
    last_status   integer NOT NULL DEFAULT 0,
    run_attempts  integer NOT NULL DEFAULT 0,
    shard         smallint NOT NULL,
    run_refreshed boolean NOT NULL DEFAULT false,
    reason        text NOT NULL DEFAULT '',
    run_trigger   text NOT NULL,
    run_actor     text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.5
);
CREATE INDEX pending_deliveries_due ON pending_deliveries (shard, endpoint_id, due_at) WHERE claim_epoch = 0;

-- Events that were restored from a dead letter, and count as new from then on.
CREATE TABLE kept_events (
    tenant_id uuid NOT NULL,
    id        uuid NOT NULL,
    kept_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE dead_letters (
    tenant_id          uuid NOT NULL,
    id                 uuid NOT NULL,
    event_id           uuid NOT NULL,
    endpoint_id        uuid NOT NULL,
    created_at         timestamptz,
    updated_at         timestamptz,
    due_at             timestamptz,
    run_first_at       timestamptz,
    attempts           integer NOT NULL,
    last_status        integer NOT NULL,
    run_attempts       integer NOT NULL,
    run_refreshed      boolean NOT NULL,
    status             text NOT NULL,
    reason             text NOT NULL,
    run_trigger        text NOT NULL,
    run_actor          text NOT NULL,
    dead_at            timestamptz,
    last_detail        text NOT NULL,
    event_principal    uuid,
    event_created_at   timestamptz,
    event_type         text NOT NULL,
    event_key          text NOT NULL,
    event_content_type text NOT NULL,
    event_attributes   json,
    event_body         bytea NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX dead_letters_by_endpoint ON dead_letters (endpoint_id, id);
CREATE INDEX dead_letters_by_age ON dead_letters (dead_at);

-- One row that is written to learn whether the store takes writes.
CREATE TABLE write_probe (
    one boolean PRIMARY KEY CHECK (one),
    at  timestamptz NOT NULL
) WITH (fillfactor = 10);

-- Large bodies: the fast compression where the server has it, none where it does not.
DO $$
BEGIN
    ALTER TABLE events ALTER body SET COMPRESSION lz4;
    ALTER TABLE events_default ALTER body SET COMPRESSION lz4;
    ALTER TABLE dead_letters ALTER event_body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    ALTER TABLE events ALTER body SET STORAGE EXTERNAL;
    ALTER TABLE dead_letters ALTER event_body SET STORAGE EXTERNAL;
END $$;
