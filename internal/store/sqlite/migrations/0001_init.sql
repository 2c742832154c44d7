-- Ids are the 16 bytes of a UUID. Times are microseconds since 1970 in UTC; 0 means none. Documents are JSON, NULL when
-- empty. Tables that hold payloads have an integer key: a wide row in a WITHOUT ROWID table costs an overflow page, and
-- retention follows insertion order. There are no foreign keys: the transitions of package store keep rows consistent, and a
-- check for each row would slow the hot path.

CREATE TABLE tenants (
    id                      BLOB PRIMARY KEY,
    name                    TEXT NOT NULL,
    require_idempotency_key INTEGER NOT NULL,
    created_at              INTEGER NOT NULL,
    deleted_at              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    id         BLOB PRIMARY KEY,
    tenant_id  BLOB NOT NULL,
    principal  BLOB NOT NULL,
    name       TEXT NOT NULL,
    hint       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    scopes     TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, id);

CREATE TABLE endpoints (
    id            BLOB PRIMARY KEY,
    tenant_id     BLOB NOT NULL,
    url           TEXT NOT NULL,
    method        TEXT NOT NULL,
    profile       TEXT NOT NULL,
    description   TEXT NOT NULL,
    patterns      TEXT,
    filter        TEXT,
    policy        TEXT,
    metadata      TEXT,
    sealed        BLOB,
    sealed_info   TEXT,
    status        TEXT NOT NULL,
    status_reason TEXT NOT NULL,
    status_at     INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL
) STRICT;
CREATE INDEX endpoints_tenant ON endpoints (tenant_id, id);

CREATE TABLE secrets (
    id          BLOB PRIMARY KEY,
    endpoint_id BLOB NOT NULL,
    tenant_id   BLOB NOT NULL,
    algorithm   TEXT NOT NULL,
    sealed      BLOB,
    public_key  BLOB,
    created_at  INTEGER NOT NULL,
    not_before  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX secrets_endpoint ON secrets (endpoint_id, id);
CREATE INDEX secrets_public ON secrets (id) WHERE public_key IS NOT NULL;

CREATE TABLE health (
    endpoint_id          BLOB PRIMARY KEY,
    consecutive_failures INTEGER NOT NULL,
    consecutive_terminal INTEGER NOT NULL,
    accepted             INTEGER NOT NULL,
    transient            INTEGER NOT NULL,
    terminal             INTEGER NOT NULL,
    last_accepted_at     INTEGER NOT NULL,
    last_failure_at      INTEGER NOT NULL,
    last_reason          TEXT NOT NULL,
    avg_duration_ms      REAL NOT NULL,
    hold_until           INTEGER NOT NULL,
    sunset_at            INTEGER NOT NULL,
    circuit_open_at      INTEGER NOT NULL,
    probe_at             INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- kept_since is the time from which retention counts: created_at, or the time an event was restored from a dead letter.
CREATE TABLE events (
    n            INTEGER PRIMARY KEY,
    tenant_id    BLOB NOT NULL,
    id           BLOB NOT NULL,
    type         TEXT NOT NULL,
    key          TEXT NOT NULL,
    content_type TEXT NOT NULL,
    attributes   TEXT,
    principal    BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    kept_since   INTEGER NOT NULL,
    body         BLOB
) STRICT;
CREATE UNIQUE INDEX events_id ON events (tenant_id, id);

-- claim_epoch is 0 while no node holds the delivery in memory.
CREATE TABLE deliveries (
    n             INTEGER PRIMARY KEY,
    tenant_id     BLOB NOT NULL,
    id            BLOB NOT NULL,
    event_id      BLOB NOT NULL,
    endpoint_id   BLOB NOT NULL,
    status        TEXT NOT NULL,
    claim_epoch   INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    reason        TEXT NOT NULL,
    attempts      INTEGER NOT NULL,
    last_status   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    run_trigger   TEXT NOT NULL,
    run_actor     TEXT NOT NULL,
    run_attempts  INTEGER NOT NULL,
    run_first_at  INTEGER NOT NULL,
    run_refreshed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX deliveries_id ON deliveries (tenant_id, id);
CREATE INDEX deliveries_event ON deliveries (event_id);
CREATE INDEX deliveries_endpoint ON deliveries (endpoint_id, id);
-- deliveries_due lists waiting deliveries by endpoint. deliveries_claimed lists deliveries in memory in the order they came,
-- so that a burst to many endpoints touches few pages. A delivery that is accepted at once never enters the first.
CREATE INDEX deliveries_due ON deliveries (endpoint_id, due_at) WHERE status = 'pending' AND claim_epoch = 0;
CREATE INDEX deliveries_claimed ON deliveries (claim_epoch) WHERE status = 'pending' AND claim_epoch > 0;
-- The states that people search for, and that an ordinary success never enters. The condition has no IN: SQLite would build
-- a set for every row that changes.
CREATE INDEX deliveries_ended ON deliveries (tenant_id, status, id) WHERE status <> 'pending' AND status <> 'accepted';

-- Tenant, event and endpoint of an attempt are those of its delivery.
CREATE TABLE attempts (
    delivery_id BLOB NOT NULL,
    n           INTEGER NOT NULL,
    id          BLOB NOT NULL,
    run_trigger TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    url         TEXT NOT NULL,
    status      INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    reason      TEXT NOT NULL,
    class       TEXT NOT NULL,
    next_at     INTEGER NOT NULL,
    verdict     TEXT,
    trace       TEXT,
    PRIMARY KEY (delivery_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    n                INTEGER PRIMARY KEY,
    tenant_id        BLOB NOT NULL,
    id               BLOB NOT NULL,
    event_id         BLOB NOT NULL,
    endpoint_id      BLOB NOT NULL,
    status           TEXT NOT NULL,
    due_at           INTEGER NOT NULL,
    reason           TEXT NOT NULL,
    attempts         INTEGER NOT NULL,
    last_status      INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    run_trigger      TEXT NOT NULL,
    run_actor        TEXT NOT NULL,
    run_attempts     INTEGER NOT NULL,
    run_first_at     INTEGER NOT NULL,
    run_refreshed    INTEGER NOT NULL,
    dead_at          INTEGER NOT NULL,
    last_detail      TEXT NOT NULL,
    type             TEXT NOT NULL,
    key              TEXT NOT NULL,
    content_type     TEXT NOT NULL,
    attributes       TEXT,
    principal        BLOB NOT NULL,
    event_created_at INTEGER NOT NULL,
    body             BLOB
) STRICT;
CREATE UNIQUE INDEX dead_letters_id ON dead_letters (tenant_id, id);
CREATE INDEX dead_letters_endpoint ON dead_letters (endpoint_id, id);

-- status is 0 while the first request is in progress.
CREATE TABLE idempotency_records (
    n            INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    tenant_id    BLOB NOT NULL,
    fingerprint  BLOB NOT NULL,
    status       INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    location     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    body         BLOB
) STRICT;

CREATE TABLE notices (
    id              BLOB PRIMARY KEY,
    tenant_id       BLOB NOT NULL,
    endpoint_id     BLOB NOT NULL,
    delivery_id     BLOB NOT NULL,
    event_id        BLOB NOT NULL,
    kind            TEXT NOT NULL,
    detail          TEXT NOT NULL,
    link            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    acknowledged_at INTEGER NOT NULL,
    acknowledged_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_tenant ON notices (tenant_id, id);
CREATE INDEX notices_created ON notices (created_at);

CREATE TABLE leases (
    shard      INTEGER PRIMARY KEY,
    owner      TEXT NOT NULL,
    epoch      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
WITH RECURSIVE shards (shard) AS (SELECT 0 UNION ALL SELECT shard + 1 FROM shards WHERE shard < 63)
INSERT INTO leases SELECT shard, '', 0, 0 FROM shards;

-- Ping writes this row to find out whether the store takes writes.
CREATE TABLE heartbeat (beats INTEGER NOT NULL) STRICT;
INSERT INTO heartbeat VALUES (0);
