-- Keys live for a day, as long as events are kept, or for the minutes in which a signature is fresh. So records do not
-- expire in the order they were stored, and need an index.
CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);
