-- What was commanded, and the evidence of it.

-- free_at is when a key may be given to a new command, lost_at when its holder counts as dead; each is null where that
-- cannot come. They follow from the rest of the row, so that nobody can write one without the other.
--
-- No index begins with the tenant: a statement that is planned while the table is empty takes any that fits, and would then
-- read all that a tenant has.
CREATE TABLE command_records (
    tenant          text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    command_id      text COLLATE "C" NOT NULL, -- the first command's
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
ALTER TABLE command_records ALTER outcome SET STORAGE EXTERNAL, ALTER envelope SET STORAGE EXTERNAL; -- what is sealed does not compress
CREATE INDEX command_records_by_command ON command_records (command_id, tenant);
CREATE INDEX command_records_free ON command_records (free_at) WHERE free_at IS NOT NULL;
CREATE INDEX command_records_lost ON command_records (lost_at) WHERE lost_at IS NOT NULL;

-- The last link of each tenant's chain. Whoever appends locks it first; a chain that has nothing in it yet has seq 0.
CREATE TABLE evidence_heads (
    tenant text COLLATE "C" PRIMARY KEY,
    seq    bigint NOT NULL,
    hash   text NOT NULL,
    at     timestamptz
) WITH (fillfactor = 40);

-- The line is what counts: canonical JSON, to the byte. The rest is there to find it.
CREATE TABLE evidence_items (
    tenant       text COLLATE "C" NOT NULL,
    seq          bigint NOT NULL,
    key          text COLLATE "C", -- these three are null where the item has none; submitted_id also where it is the command's
    command_id   text COLLATE "C",
    submitted_id text COLLATE "C",
    hash         text NOT NULL,
    line         bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX evidence_items_by_key ON evidence_items (tenant, key, seq) WHERE key IS NOT NULL;
CREATE INDEX evidence_items_by_command ON evidence_items (tenant, command_id, seq) WHERE command_id IS NOT NULL;
CREATE INDEX evidence_items_by_submitted ON evidence_items (tenant, submitted_id, seq) WHERE submitted_id IS NOT NULL;

-- Evidence is only ever added.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'evidence is append-only: % of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER evidence_items_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON evidence_items
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER evidence_heads_stay BEFORE DELETE OR TRUNCATE ON evidence_heads
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
