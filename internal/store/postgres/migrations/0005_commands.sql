-- Records of commands and their evidence.

-- free_at is when a new command may use the key, lost_at when the command's holder counts as dead; each is null if that
-- cannot happen. They are generated from the rest of the row, so that they cannot contradict it.
--
-- No index starts with the tenant: a statement that is planned while the table is empty takes any index that fits, and would
-- later read all records of a tenant.
CREATE TABLE command_records (
    tenant          text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    command_id      text COLLATE "C" NOT NULL, -- of the first command
    status          text NOT NULL CHECK (status IN ('in_progress', 'executed', 'failed', 'rejected', 'compensated')),
    substatus       text NOT NULL,
    outcome_ref     text, -- null until it is terminal
    created_at      timestamptz,
    updated_at      timestamptz,
    ttl_expires_at  timestamptz, -- null: never
    lease_until     timestamptz,
    version         bigint NOT NULL,
    fingerprint     text NOT NULL,
    outcome         bytea, -- sealed
    envelope        bytea, -- sealed
    document        json NOT NULL, -- everything else
    mac             bytea,
    free_at         timestamptz GENERATED ALWAYS AS (CASE
        WHEN status <> 'in_progress' THEN ttl_expires_at
        WHEN substatus = 'awaiting_confirmation' THEN coalesce(lease_until, '-infinity') END) STORED,
    lost_at         timestamptz GENERATED ALWAYS AS (CASE
        WHEN status = 'in_progress' AND substatus <> 'awaiting_confirmation' THEN coalesce(lease_until, '-infinity') END) STORED,
    PRIMARY KEY (idempotency_key, tenant)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE command_records ALTER outcome SET STORAGE EXTERNAL, ALTER envelope SET STORAGE EXTERNAL; -- sealed values do not compress
CREATE INDEX command_records_by_command ON command_records (command_id, tenant);
CREATE INDEX command_records_free ON command_records (free_at) WHERE free_at IS NOT NULL;
CREATE INDEX command_records_lost ON command_records (lost_at) WHERE lost_at IS NOT NULL;

-- The last link of each tenant's chain. A transaction that appends locks it first. An empty chain has seq 0.
CREATE TABLE evidence_heads (
    tenant text COLLATE "C" PRIMARY KEY,
    seq    bigint NOT NULL,
    hash   text NOT NULL,
    at     timestamptz
) WITH (fillfactor = 40);

-- line is the item itself: canonical JSON, exact to the byte. The other columns repeat members of it for searches.
CREATE TABLE evidence_items (
    tenant       text COLLATE "C" NOT NULL,
    seq          bigint NOT NULL,
    key          text COLLATE "C", -- null if the item has none, as are the next two; submitted_id also if it equals command_id
    command_id   text COLLATE "C",
    submitted_id text COLLATE "C",
    hash         text NOT NULL,
    line         bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX evidence_items_by_key ON evidence_items (tenant, key, seq) WHERE key IS NOT NULL;
CREATE INDEX evidence_items_by_command ON evidence_items (tenant, command_id, seq) WHERE command_id IS NOT NULL;
CREATE INDEX evidence_items_by_submitted ON evidence_items (tenant, submitted_id, seq) WHERE submitted_id IS NOT NULL;

-- Evidence is only appended.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'evidence is append-only: % of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER evidence_items_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON evidence_items
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER evidence_heads_stay BEFORE DELETE OR TRUNCATE ON evidence_heads
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
