-- Programs of schema 8 and later may run beside this one.
--
-- Every transaction that changes the configuration (endpoints and their secrets, API keys, tenants, event types) raises the
-- config version when it commits, and lists what it changed. A node compares the version with the one it has applied, in the
-- transaction that stores events, and so learns of a change before it stores an event that the change concerns. Triggers raise
-- the version, so that the changes of programs of an earlier schema count too.
--
-- The upper 48 bits of the version count the transactions. The lower 16 are random: a database that was restored from a backup
-- has other versions than the one that the nodes knew, even when as many changes have followed.
CREATE TABLE config_version (
    one     boolean PRIMARY KEY CHECK (one),
    version bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE config_changes (
    version   bigint NOT NULL,
    kind      text COLLATE "C" NOT NULL, -- endpoint | key | tenant | event_type | start
    id        uuid, -- of the endpoint, key or tenant
    tenant_id uuid,
    name      text  -- of the event type
);
CREATE INDEX config_changes_by_version ON config_changes (version);

INSERT INTO config_version (one, version) VALUES (true, 65536 + floor(random() * 65536)::bigint);
INSERT INTO config_changes (version, kind) SELECT version, 'start' FROM config_version;

-- raise_config_version runs when a transaction commits, after it has locked its rows. Its lock on the counter is the last
-- one, so that it adds no deadlock. The lock is held until the commit ends, so that the order of versions is the order of commits.
-- A transaction raises the version once, whatever it changes. Every 1,000 versions it removes those that are more than 20,000
-- old; a node that is further behind reads everything again.
CREATE FUNCTION raise_config_version(kind text, id uuid, tenant_id uuid, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    raised text := current_setting('godwit.config_version', true);
    next bigint;
BEGIN
    IF coalesce(raised, '') = '' THEN
        UPDATE config_version AS c SET version = (((c.version >> 16) + 1) << 16) + floor(random() * 65536)::bigint
            RETURNING c.version INTO next;
        PERFORM set_config('godwit.config_version', next::text, true);
        IF (next >> 16) % 1000 = 0 THEN
            DELETE FROM config_changes AS c WHERE c.version < ((next >> 16) - 20000) << 16;
        END IF;
    ELSE
        next := raised;
    END IF;
    INSERT INTO config_changes (version, kind, id, tenant_id, name) VALUES (next, kind, id, tenant_id, name);
END $$;

-- The table's name and the event decide which row is meant: a deleted one has only its old form.
CREATE FUNCTION note_config_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        changed := OLD;
    ELSE
        changed := NEW;
    END IF;
    CASE TG_TABLE_NAME
        WHEN 'endpoints' THEN PERFORM raise_config_version('endpoint', changed.id, changed.tenant_id, NULL);
        WHEN 'endpoint_secrets' THEN PERFORM raise_config_version('endpoint', changed.endpoint_id, changed.tenant_id, NULL);
        WHEN 'api_keys' THEN PERFORM raise_config_version('key', changed.id, changed.tenant_id, NULL);
        WHEN 'tenants' THEN PERFORM raise_config_version('tenant', changed.id, changed.id, NULL);
        WHEN 'event_types' THEN PERFORM raise_config_version('event_type', NULL, changed.tenant_id, changed.name);
    END CASE;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER note_config_change AFTER INSERT OR UPDATE OR DELETE ON endpoints
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER INSERT OR UPDATE OR DELETE ON endpoint_secrets
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_config_change();
-- New keys and tenants are in no cache.
CREATE CONSTRAINT TRIGGER note_config_change AFTER UPDATE OR DELETE ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER UPDATE OR DELETE ON tenants
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_config_change();
CREATE CONSTRAINT TRIGGER note_config_change AFTER INSERT OR UPDATE OR DELETE ON event_types
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_config_change();
