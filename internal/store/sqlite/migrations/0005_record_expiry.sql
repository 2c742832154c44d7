-- Keys live for a day, for as long as events are kept, or for the minutes in which a signature is fresh: they do not run out
-- in the order they were stored.
CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);
