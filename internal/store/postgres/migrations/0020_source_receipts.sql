-- Programs of schema 11 and later may run beside this one.
-- When each source last received an authentic request, to the minute. It is apart from the sources, since a change of these tells every node.
CREATE TABLE source_receipts (
    source_id   uuid PRIMARY KEY,
    received_at timestamptz NOT NULL
);
