-- What a tenant used on a day (UTC, days since 1970).
CREATE TABLE usage (
    tenant_id      BLOB NOT NULL,
    day            INTEGER NOT NULL,
    events         INTEGER NOT NULL,
    deliveries     INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    bytes_accepted INTEGER NOT NULL,
    bytes_sent     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_day ON usage (day);

ALTER TABLE tenants ADD COLUMN limits TEXT; -- those that differ from the server's
