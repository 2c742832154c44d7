-- Endpoints may have an id that their owner chose, unique in the tenant. Event types count their changes.
ALTER TABLE endpoints ADD COLUMN uid TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX endpoints_uid ON endpoints (tenant_id, uid) WHERE uid <> '' AND status <> 'deleted';
ALTER TABLE event_types ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
