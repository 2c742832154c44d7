-- When each source last received an authentic request, to the minute. It is apart from the sources, since it is not part of their configuration.
CREATE TABLE source_receipts (
    source_id   BLOB PRIMARY KEY,
    received_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
