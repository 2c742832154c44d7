-- Programs of schema 11 and later may run beside this one.
--
-- Events that were posted for many tenants of an environment. Tenants without a result yet are in work alone: concatenated ids.
-- It is stored outside of the row, like the body, so that moving the cursor does not write it again.
CREATE TABLE broadcasts (
    id             uuid PRIMARY KEY,
    environment_id uuid NOT NULL,
    principal      uuid NOT NULL,
    type           text NOT NULL,
    content_type   text NOT NULL,
    for_all        boolean NOT NULL,
    tenants        int4 NOT NULL,
    done           int4 NOT NULL, -- position in work
    accepted       int4 NOT NULL,
    skipped        int4 NOT NULL,
    deliveries     int4 NOT NULL,
    created_at     timestamptz NOT NULL,
    completed_at   timestamptz, -- null: open
    attributes     json,
    carried        json,
    body           bytea NOT NULL,
    work           bytea NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE broadcasts ALTER body SET STORAGE EXTERNAL, ALTER work SET STORAGE EXTERNAL;
CREATE INDEX broadcasts_by_environment ON broadcasts (environment_id, id);
CREATE INDEX broadcasts_open ON broadcasts (id) WHERE completed_at IS NULL;

CREATE TABLE broadcast_items (
    broadcast_id uuid NOT NULL,
    tenant_id    uuid NOT NULL,
    event_id     uuid,
    reason       text NOT NULL,
    detail       text NOT NULL,
    PRIMARY KEY (broadcast_id, tenant_id)
);
