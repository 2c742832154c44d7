-- Programs of schema 11 and later may run beside this one.
--
-- Environments own tenants. Every tenant from before belongs to the first one. The home tenant of an environment has its id.
CREATE TABLE environments (
    id         uuid PRIMARY KEY,
    uid        text COLLATE "C" NOT NULL,
    name       text NOT NULL,
    settings   json,
    version    bigint NOT NULL,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz
);
CREATE UNIQUE INDEX environments_by_uid ON environments (uid) WHERE deleted_at IS NULL;

ALTER TABLE tenants
    ADD COLUMN environment_id uuid NOT NULL DEFAULT '00000000-0000-7000-8000-000000000000',
    ADD COLUMN uid text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN home boolean NOT NULL DEFAULT false,
    ADD COLUMN inherits text[], -- names of the settings that the environment lends; the columns then hold nothing
    ADD COLUMN own_types int NOT NULL DEFAULT 0,
    ADD COLUMN version bigint NOT NULL DEFAULT 1;
CREATE UNIQUE INDEX tenants_by_uid ON tenants (environment_id, uid) WHERE uid <> '' AND deleted_at IS NULL;
CREATE INDEX tenants_by_environment ON tenants (environment_id, id);
CREATE INDEX event_types_by_name ON event_types (name, tenant_id);

INSERT INTO environments (id, uid, name, settings, version)
    VALUES ('00000000-0000-7000-8000-000000000000', 'default', 'Default', '{"live":true}', 1);
INSERT INTO tenants (id, name, require_idempotency_key, home)
    VALUES ('00000000-0000-7000-8000-000000000000', 'Default', false, true);

-- A tenant's row has the number of its event types, so that a tenant without any costs no lookup. A trigger keeps it, since programs of an
-- earlier schema write event types too.
UPDATE tenants AS t SET own_types = n.types
    FROM (SELECT tenant_id, count(*) AS types FROM event_types GROUP BY tenant_id) AS n WHERE n.tenant_id = t.id;

CREATE FUNCTION count_event_types() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE tenants SET own_types = own_types + 1 WHERE id = NEW.tenant_id;
    ELSE
        UPDATE tenants SET own_types = own_types - 1 WHERE id = OLD.tenant_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_event_types AFTER INSERT OR DELETE ON event_types FOR EACH ROW EXECUTE FUNCTION count_event_types();

-- What an environment lends is part of its tenants, which nodes cache.
CREATE FUNCTION note_environment_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM raise_config_version('environment', NEW.id, NULL, NULL);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER note_environment_change AFTER UPDATE ON environments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_environment_change();
