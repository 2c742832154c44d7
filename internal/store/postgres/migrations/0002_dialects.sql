-- What the dialects need: formats of events, public codes, catalogues of event types, dead letters that stay when they
-- were replayed, a log of an endpoint's attempts.

-- Null stands for the ordinary case in all three, so that an ordinary event is as narrow as it was.
ALTER TABLE events
    ADD COLUMN format      text, -- null: the producer's own bytes
    ADD COLUMN source_id   text, -- null: the id is ours
    ADD COLUMN occurred_at timestamptz; -- null: when it was accepted

-- A delivery has at most one open dead letter; those that were replayed stay until they expire.
ALTER TABLE dead_letters
    ADD COLUMN event_format      text,
    ADD COLUMN event_source_id   text,
    ADD COLUMN event_occurred_at timestamptz,
    ADD COLUMN replayed_at       timestamptz,
    DROP CONSTRAINT dead_letters_pkey;
CREATE UNIQUE INDEX dead_letters_open ON dead_letters (tenant_id, id) WHERE replayed_at IS NULL;
CREATE INDEX dead_letters_by_tenant ON dead_letters (tenant_id, id);

ALTER TABLE endpoints
    ADD COLUMN code       text NOT NULL DEFAULT '',
    ADD COLUMN reenable_at timestamptz;
CREATE UNIQUE INDEX endpoints_by_code ON endpoints (code) WHERE code <> '';

ALTER TABLE tenants
    ADD COLUMN code         text NOT NULL DEFAULT '',
    ADD COLUMN alert_emails text[],
    ADD COLUMN validation   text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX tenants_by_code ON tenants (code) WHERE code <> '';

-- Those that are there get a code: six characters that people do not mix up, drawn again while they are taken.
DO $$
DECLARE
    alphabet CONSTANT text := 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
    owner  text;
    member uuid;
    drawn  bytea;
    fresh  text;
BEGIN
    FOREACH owner IN ARRAY ARRAY['tenants', 'endpoints'] LOOP
        FOR member IN EXECUTE format('SELECT id FROM %I', owner) LOOP
            LOOP
                drawn := uuid_send(gen_random_uuid()); -- its first six bytes are all random
                SELECT string_agg(substr(alphabet, get_byte(drawn, i) % 32 + 1, 1), '') INTO fresh FROM generate_series(0, 5) AS i;
                BEGIN
                    EXECUTE format('UPDATE %I SET code = $1 WHERE id = $2', owner) USING fresh, member;
                    EXIT;
                EXCEPTION WHEN unique_violation THEN
                    NULL;
                END;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

ALTER TABLE endpoint_secrets
    ADD COLUMN hash text NOT NULL DEFAULT '', -- hexadecimal SHA-256 of what its owner was shown
    ADD COLUMN hint text NOT NULL DEFAULT ''; -- the last characters of it

ALTER TABLE endpoint_health
    ADD COLUMN streak      integer NOT NULL DEFAULT 0,
    ADD COLUMN degraded_at timestamptz,
    ADD COLUMN recent      bytea; -- the last hour, minute by minute

CREATE TABLE event_types (
    tenant_id   uuid NOT NULL,
    name        text COLLATE "C" NOT NULL,
    description text NOT NULL,
    deprecated  boolean NOT NULL,
    example     json,
    schemas     json, -- oldest first
    created_at  timestamptz,
    updated_at  timestamptz,
    PRIMARY KEY (tenant_id, name)
);

-- The log of an endpoint's attempts: what went through at the first try is found by its id; everything else, which may
-- have been tried long after it came, by when that was. Nothing of an ordinary delivery is in these two.
CREATE INDEX deliveries_eventful ON deliveries (endpoint_id, updated_at) WHERE attempts > 1 OR status <> 'accepted';
CREATE INDEX pending_deliveries_tried ON pending_deliveries (endpoint_id, updated_at) WHERE attempts > 0;
