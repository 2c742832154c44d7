-- Programs of schema 11 and later may run beside this one.
-- They cannot sign for endpoints that their environment signs for: such attempts fail and are repeated.
--
-- Which keys sign deliveries to an endpoint: empty for its own, or "environment". The keys of an environment are secrets whose endpoint_id and
-- tenant_id are the environment's id.
ALTER TABLE endpoints ADD COLUMN signing text NOT NULL DEFAULT '';

-- A change of an environment's key is one of the environment: it concerns one row, whatever the number of endpoints.
CREATE OR REPLACE FUNCTION note_config_change() RETURNS trigger LANGUAGE plpgsql AS $$
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
        WHEN 'endpoint_secrets' THEN
            IF changed.endpoint_id = changed.tenant_id THEN
                PERFORM raise_config_version('environment', changed.tenant_id, NULL, NULL);
            ELSE
                PERFORM raise_config_version('endpoint', changed.endpoint_id, changed.tenant_id, NULL);
            END IF;
        WHEN 'api_keys' THEN PERFORM raise_config_version('key', changed.id, changed.tenant_id, NULL);
        WHEN 'tenants' THEN PERFORM raise_config_version('tenant', changed.id, changed.id, NULL);
        WHEN 'event_types' THEN PERFORM raise_config_version('event_type', NULL, changed.tenant_id, changed.name);
    END CASE;
    RETURN NULL;
END $$;
