-- Uses of limited operations: how often a tenant did something in the last period.
CREATE TABLE allowances (
    tenant_id  BLOB NOT NULL,
    name       TEXT NOT NULL,
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, -- when it leaves the period
    uses       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX allowances_expired ON allowances (expires_at);
