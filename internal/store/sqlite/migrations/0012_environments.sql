-- Environments own tenants. Every tenant from before belongs to the first one. The home tenant of an environment has its id.
CREATE TABLE environments (
    id         BLOB PRIMARY KEY,
    uid        TEXT NOT NULL,
    name       TEXT NOT NULL,
    settings   TEXT,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX environments_uid ON environments (uid) WHERE deleted_at = 0;

ALTER TABLE tenants ADD COLUMN environment_id BLOB NOT NULL DEFAULT x'00000000000070008000000000000000';
ALTER TABLE tenants ADD COLUMN uid TEXT NOT NULL DEFAULT '';
ALTER TABLE tenants ADD COLUMN home INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN inherits TEXT; -- names of the settings that the environment lends; the columns then hold nothing
ALTER TABLE tenants ADD COLUMN own_types INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
CREATE UNIQUE INDEX tenants_uid ON tenants (environment_id, uid) WHERE uid <> '' AND deleted_at = 0;
CREATE INDEX tenants_environment ON tenants (environment_id, id);

UPDATE tenants SET own_types = (SELECT count(*) FROM event_types WHERE event_types.tenant_id = tenants.id);
CREATE INDEX event_types_shared ON event_types (name, tenant_id);

INSERT INTO environments (id, uid, name, settings, version, created_at, updated_at, deleted_at)
    VALUES (x'00000000000070008000000000000000', 'default', 'Default', '{"live":true}', 1, 0, 0, 0);
INSERT INTO tenants (id, name, require_idempotency_key, created_at, deleted_at, home)
    VALUES (x'00000000000070008000000000000000', 'Default', 0, 0, 0, 1);
