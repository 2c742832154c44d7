-- Programs of schema 8 and later may run beside this one.
-- Uses of limited operations: how often a tenant did something in the last period, over all nodes.
CREATE TABLE allowances (
    tenant_id  uuid NOT NULL,
    name       text COLLATE "C" NOT NULL,
    at         timestamptz NOT NULL,
    expires_at timestamptz NOT NULL, -- when it leaves the period
    uses       int4 NOT NULL,
    PRIMARY KEY (tenant_id, name, at)
);
CREATE INDEX allowances_expired ON allowances (expires_at);
