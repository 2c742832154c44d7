-- Records of commands and their evidence.

-- document holds the members that no query searches by. ttl_expires_at is 0 for a window without an end, and counts once the
-- status is final. outcome and envelope are sealed; they come last, so that other columns can be read without them.
CREATE TABLE command_records (
    tenant          TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    command_id      TEXT NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('in_progress', 'executed', 'failed', 'rejected', 'compensated')),
    substatus       TEXT NOT NULL,
    outcome_ref     TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    ttl_expires_at  INTEGER NOT NULL,
    lease_until     INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    fingerprint     TEXT NOT NULL,
    mac             BLOB,
    document        TEXT NOT NULL,
    outcome         BLOB,
    envelope        BLOB,
    PRIMARY KEY (tenant, idempotency_key)
) STRICT;
CREATE INDEX command_records_command ON command_records (tenant, command_id);
CREATE INDEX command_records_lease ON command_records (lease_until)
    WHERE status = 'in_progress' AND substatus <> 'awaiting_confirmation';
CREATE INDEX command_records_unconfirmed ON command_records (lease_until)
    WHERE status = 'in_progress' AND substatus = 'awaiting_confirmation';
CREATE INDEX command_records_expiry ON command_records (ttl_expires_at)
    WHERE status <> 'in_progress' AND ttl_expires_at > 0;

-- line is the item exactly as it is exported and hashed. The other columns repeat members of it for searches.
CREATE TABLE evidence_items (
    tenant       TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    key          TEXT NOT NULL,
    command_id   TEXT NOT NULL,
    submitted_id TEXT NOT NULL,
    hash         TEXT NOT NULL,
    line         BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT;
CREATE INDEX evidence_items_key ON evidence_items (tenant, key, seq) WHERE key <> '';
CREATE INDEX evidence_items_command ON evidence_items (tenant, command_id, seq) WHERE command_id <> '';
-- A first submission has the id of the command, and is found by that id.
CREATE INDEX evidence_items_submitted ON evidence_items (tenant, submitted_id, seq)
    WHERE submitted_id <> '' AND submitted_id <> command_id;

-- Evidence is only appended (IDS-EVD-8). The chain shows if the triggers were removed and an item changed. REPLACE deletes a
-- row without firing the delete trigger, so a third trigger is needed.
CREATE TRIGGER evidence_items_change BEFORE UPDATE ON evidence_items
BEGIN
    SELECT RAISE(ABORT, 'evidence is never changed');
END;
CREATE TRIGGER evidence_items_removal BEFORE DELETE ON evidence_items
BEGIN
    SELECT RAISE(ABORT, 'evidence is never removed');
END;
CREATE TRIGGER evidence_items_replacement BEFORE INSERT ON evidence_items
WHEN EXISTS (SELECT 1 FROM evidence_items WHERE tenant = NEW.tenant AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'evidence is never replaced');
END;

CREATE TABLE evidence_heads (
    tenant TEXT PRIMARY KEY,
    seq    INTEGER NOT NULL,
    hash   TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
