-- No index begins with the tenant: a statement that is planned while the table is empty takes any that fits, and would then read all that
-- a tenant has.
CREATE TABLE ~command_records (
    tenant          text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    command_id      text COLLATE "C" NOT NULL, -- the first command's
    status          text NOT NULL CHECK (status IN ('in_progress', 'executed', 'failed', 'rejected', 'compensated')),
    substatus       text NOT NULL,
    outcome_ref     text NOT NULL,
    created_at      bigint NOT NULL, -- times are microseconds since 1970; 0 is none
    updated_at      bigint NOT NULL,
    ttl_expires_at  bigint NOT NULL,
    lease_until     bigint NOT NULL,
    version         bigint NOT NULL,
    fingerprint     text NOT NULL,
    mac             bytea,
    document        text NOT NULL, -- everything else, as JSON
    outcome         bytea,         -- sealed
    envelope        bytea,         -- sealed
    PRIMARY KEY (idempotency_key, tenant)
);

CREATE INDEX ~command_records_command ON ~command_records (command_id, tenant);

CREATE INDEX ~command_records_lost ON ~command_records (lease_until)
    WHERE status = 'in_progress' AND substatus <> 'awaiting_confirmation';

CREATE INDEX ~command_records_unconfirmed ON ~command_records (lease_until)
    WHERE status = 'in_progress' AND substatus = 'awaiting_confirmation';

CREATE INDEX ~command_records_expiry ON ~command_records (ttl_expires_at)
    WHERE status <> 'in_progress' AND ttl_expires_at > 0;

-- The last link of each tenant's chain. Whoever appends locks it first; a chain that has nothing in it yet has seq 0.
CREATE TABLE ~evidence_heads (
    tenant text COLLATE "C" PRIMARY KEY,
    seq    bigint NOT NULL,
    hash   text NOT NULL,
    at     bigint NOT NULL
) WITH (fillfactor = 40);

CREATE TABLE ~evidence_items (
    tenant       text COLLATE "C" NOT NULL,
    seq          bigint NOT NULL,
    key          text COLLATE "C" NOT NULL,
    command_id   text COLLATE "C" NOT NULL,
    submitted_id text COLLATE "C" NOT NULL,
    hash         text NOT NULL,
    line         bytea NOT NULL, -- canonical JSON: this is what counts, the rest is there to find it
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX ~evidence_items_key ON ~evidence_items (tenant, key, seq) WHERE key <> '';

CREATE INDEX ~evidence_items_command ON ~evidence_items (tenant, command_id, seq) WHERE command_id <> '';

CREATE INDEX ~evidence_items_submitted ON ~evidence_items (tenant, submitted_id, seq) WHERE submitted_id <> '' AND submitted_id <> command_id;

CREATE FUNCTION ~evidence_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'evidence is append-only: % of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER ~evidence_items_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ~evidence_items
    FOR EACH STATEMENT EXECUTE FUNCTION ~evidence_refuse_change();

CREATE TRIGGER ~evidence_heads_stay BEFORE DELETE OR TRUNCATE ON ~evidence_heads
    FOR EACH STATEMENT EXECUTE FUNCTION ~evidence_refuse_change();
