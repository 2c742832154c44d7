-- Programs of schema 11 and later may run beside this one.
-- They count no usage.
--
-- What a tenant used on a day (UTC). Each process adds to rows of its own slot, so that commits of several nodes do not wait for each
-- other; a reader adds the slots up. An update changes no indexed column, and the free space keeps the new version in the same page.
CREATE TABLE usage (
    tenant_id      uuid NOT NULL,
    day            date NOT NULL,
    slot           int4 NOT NULL,
    events         bigint NOT NULL,
    deliveries     bigint NOT NULL,
    attempts       bigint NOT NULL,
    bytes_accepted bigint NOT NULL,
    bytes_sent     bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, slot)
) WITH (fillfactor = 80);
CREATE INDEX usage_by_day ON usage (day);

ALTER TABLE tenants ADD COLUMN limits json; -- those that differ from the server's
