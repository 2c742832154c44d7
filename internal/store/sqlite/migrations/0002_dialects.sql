-- Changes for the dialects: the format of an event and its producer's id and time, dead letters that stay after a replay,
-- codes that people can read to each other, and a catalogue of event types.

-- The table is rebuilt so that the body stays the last column: reading a column behind a large body means reading all of its
-- pages. The column deliveries lists the deliveries of an event: id, endpoint, then the packed epoch and trigger, both empty
-- here.
CREATE TABLE events_new (
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
    format       TEXT NOT NULL,
    source_id    TEXT NOT NULL,
    occurred_at  INTEGER NOT NULL,
    deliveries   BLOB,
    body         BLOB
) STRICT;
INSERT INTO events_new
    SELECT n, tenant_id, id, type, key, content_type, attributes, principal, created_at, kept_since, '', '', 0,
        (SELECT unhex(group_concat(hex(d.id) || hex(d.endpoint_id) || '0000', '')) FROM deliveries d
            WHERE d.event_id = events.id AND d.tenant_id = events.tenant_id),
        body FROM events;
DROP TABLE events;
ALTER TABLE events_new RENAME TO events;
CREATE UNIQUE INDEX events_id ON events (tenant_id, id);

-- A handover names the events of one commit that have deliveries without a row: from the first to the last.
CREATE TABLE handovers (
    first INTEGER PRIMARY KEY,
    last  INTEGER NOT NULL
) STRICT;

-- first_attempt is the first attempt, packed. Further attempts are rows of the table attempts.
ALTER TABLE deliveries ADD COLUMN first_attempt BLOB;
DROP INDEX deliveries_event;

-- Deliveries with more than one attempt, by the time of the last. An ordinary success never enters this index.
CREATE INDEX deliveries_tried ON deliveries (endpoint_id, updated_at) WHERE attempts > 1;

-- replayed_at is 0 while a dead letter is open.
CREATE TABLE dead_letters_new (
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
    replayed_at      INTEGER NOT NULL,
    last_detail      TEXT NOT NULL,
    type             TEXT NOT NULL,
    key              TEXT NOT NULL,
    content_type     TEXT NOT NULL,
    attributes       TEXT,
    principal        BLOB NOT NULL,
    event_created_at INTEGER NOT NULL,
    format           TEXT NOT NULL,
    source_id        TEXT NOT NULL,
    occurred_at      INTEGER NOT NULL,
    body             BLOB
) STRICT;
INSERT INTO dead_letters_new
    SELECT n, tenant_id, id, event_id, endpoint_id, status, due_at, reason, attempts, last_status, created_at, updated_at,
        run_trigger, run_actor, run_attempts, run_first_at, run_refreshed, dead_at, 0, last_detail,
        type, key, content_type, attributes, principal, event_created_at, '', '', 0, body FROM dead_letters;
DROP TABLE dead_letters;
ALTER TABLE dead_letters_new RENAME TO dead_letters;
CREATE UNIQUE INDEX dead_letters_open ON dead_letters (tenant_id, id) WHERE replayed_at = 0;
CREATE INDEX dead_letters_id ON dead_letters (tenant_id, id);
CREATE INDEX dead_letters_endpoint ON dead_letters (endpoint_id, id);

ALTER TABLE tenants ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE tenants ADD COLUMN alert_emails TEXT;
ALTER TABLE tenants ADD COLUMN validation TEXT NOT NULL DEFAULT '';
ALTER TABLE endpoints ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE endpoints ADD COLUMN reenable_at INTEGER NOT NULL DEFAULT 0;

-- Existing rows get codes: a number of 30 bits for each row, five bits to a character. Multiplication by an odd factor makes
-- all numbers different; random numbers would collide sooner or later.
CREATE TABLE codes (id BLOB PRIMARY KEY, x INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO codes
    WITH draw AS MATERIALIZED (SELECT random() & 1073741823 AS start, (random() & 1073741823) | 1 AS factor),
        rows AS (SELECT id FROM tenants UNION ALL SELECT id FROM endpoints)
    SELECT id, (start + factor * row_number() OVER ()) & 1073741823 FROM rows, draw;
CREATE TABLE alphabet (a TEXT NOT NULL) STRICT;
INSERT INTO alphabet VALUES ('ABCDEFGHJKLMNPQRSTUVWXYZ23456789');
CREATE TABLE coded (id BLOB PRIMARY KEY, code TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO coded
    SELECT id, substr(a, 1 + (x >> 25 & 31), 1) || substr(a, 1 + (x >> 20 & 31), 1) || substr(a, 1 + (x >> 15 & 31), 1) ||
        substr(a, 1 + (x >> 10 & 31), 1) || substr(a, 1 + (x >> 5 & 31), 1) || substr(a, 1 + (x & 31), 1)
    FROM codes, alphabet;
UPDATE tenants SET code = (SELECT code FROM coded WHERE coded.id = tenants.id);
UPDATE endpoints SET code = (SELECT code FROM coded WHERE coded.id = endpoints.id);
DROP TABLE codes;
DROP TABLE alphabet;
DROP TABLE coded;
CREATE UNIQUE INDEX tenants_code ON tenants (code) WHERE code <> '';
CREATE UNIQUE INDEX endpoints_code ON endpoints (code) WHERE code <> '';

ALTER TABLE secrets ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE secrets ADD COLUMN hint TEXT NOT NULL DEFAULT '';

ALTER TABLE health ADD COLUMN streak INTEGER NOT NULL DEFAULT 0;
ALTER TABLE health ADD COLUMN degraded_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE health ADD COLUMN recent BLOB;

CREATE TABLE event_types (
    n           INTEGER PRIMARY KEY,
    tenant_id   BLOB NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    deprecated  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    example     TEXT NOT NULL,
    schemas     TEXT
) STRICT;
CREATE UNIQUE INDEX event_types_name ON event_types (tenant_id, name);
