-- Pending deliveries of a tenant, newest first. A delivery that is accepted at its first attempt has no row before that, and never enters. The endpoint is in both
-- indexes so that a list of one endpoint reads the rows of no other.
CREATE INDEX deliveries_waiting ON deliveries (tenant_id, id, endpoint_id) WHERE status = 'pending';
DROP INDEX deliveries_ended;
CREATE INDEX deliveries_ended ON deliveries (tenant_id, status, id, endpoint_id) WHERE status <> 'pending' AND status <> 'accepted';

-- Where events with a key are: an index that costs the transaction of an accepted event nothing, since it is written afterwards, a segment of many events at a time. A
-- segment has the events from first to last by n. hashes has 8 bytes for each, sorted: 4 of a hash over tenant and key, and 4 of the distance from first.
CREATE TABLE event_keys (
    first  INTEGER PRIMARY KEY,
    last   INTEGER NOT NULL,
    hashes BLOB NOT NULL
) STRICT;
