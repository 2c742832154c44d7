-- The deliveries of an event that a fan-out stored, a row for each part. In the event's own row, each part would write the whole
-- list anew.
CREATE TABLE event_parts (
    event      INTEGER NOT NULL, -- events.n
    since      INTEGER NOT NULL, -- the fan-out's cursor before the part
    deliveries BLOB NOT NULL,
    PRIMARY KEY (event, since)
) STRICT, WITHOUT ROWID;
