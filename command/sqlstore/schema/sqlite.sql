CREATE TABLE ~command_records (
    tenant          TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    command_id      TEXT NOT NULL, -- the first command's
    status          TEXT NOT NULL CHECK (status IN ('in_progress', 'executed', 'failed', 'rejected', 'compensated')),
    substatus       TEXT NOT NULL,
    outcome_ref     TEXT NOT NULL,
    created_at      INTEGER NOT NULL, -- times are microseconds since 1970; 0 is none
    updated_at      INTEGER NOT NULL,
    ttl_expires_at  INTEGER NOT NULL,
    lease_until     INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    fingerprint     TEXT NOT NULL,
    mac             BLOB,
    document        TEXT NOT NULL, -- everything else
    outcome         BLOB,          -- sealed
    envelope        BLOB,          -- sealed
    PRIMARY KEY (idempotency_key, tenant)
) STRICT;

CREATE INDEX ~command_records_command ON ~command_records (command_id, tenant);

CREATE INDEX ~command_records_lost ON ~command_records (lease_until)
    WHERE status = 'in_progress' AND substatus <> 'awaiting_confirmation';

CREATE INDEX ~command_records_unconfirmed ON ~command_records (lease_until)
    WHERE status = 'in_progress' AND substatus = 'awaiting_confirmation';

CREATE INDEX ~command_records_expiry ON ~command_records (ttl_expires_at)
    WHERE status <> 'in_progress' AND ttl_expires_at > 0;

CREATE TABLE ~evidence_heads (
    tenant TEXT PRIMARY KEY,
    seq    INTEGER NOT NULL,
    hash   TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ~evidence_items (
    tenant       TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    key          TEXT NOT NULL,
    command_id   TEXT NOT NULL,
    submitted_id TEXT NOT NULL,
    hash         TEXT NOT NULL,
    line         BLOB NOT NULL, -- canonical JSON: this is what counts, the rest is there to find it
    PRIMARY KEY (tenant, seq)
) STRICT;

CREATE INDEX ~evidence_items_key ON ~evidence_items (tenant, key, seq) WHERE key <> '';

CREATE INDEX ~evidence_items_command ON ~evidence_items (tenant, command_id, seq) WHERE command_id <> '';

CREATE INDEX ~evidence_items_submitted ON ~evidence_items (tenant, submitted_id, seq) WHERE submitted_id <> '' AND submitted_id <> command_id;

CREATE TRIGGER ~evidence_items_change BEFORE UPDATE ON ~evidence_items
BEGIN
    SELECT RAISE(ABORT, 'evidence is never changed');
END;

CREATE TRIGGER ~evidence_items_removal BEFORE DELETE ON ~evidence_items
BEGIN
    SELECT RAISE(ABORT, 'evidence is never removed');
END;

-- A REPLACE fires no trigger of its deletion.
CREATE TRIGGER ~evidence_items_replacement BEFORE INSERT ON ~evidence_items
WHEN EXISTS (SELECT 1 FROM ~evidence_items WHERE tenant = NEW.tenant AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'evidence is never replaced');
END;

CREATE TRIGGER ~evidence_heads_removal BEFORE DELETE ON ~evidence_heads
BEGIN
    SELECT RAISE(ABORT, 'the head of a chain is never removed');
END;
