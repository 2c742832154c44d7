-- Programs of schema 11 and later may run beside this one.
--
-- Endpoints may have an id that their owner chose, unique in the tenant. Event types count their changes.
ALTER TABLE endpoints ADD COLUMN uid text COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX endpoints_by_uid ON endpoints (tenant_id, uid) WHERE uid <> '' AND status <> 'deleted';
ALTER TABLE event_types ADD COLUMN version bigint NOT NULL DEFAULT 1;
