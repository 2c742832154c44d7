-- event_id is the first event that was accepted under the key. Earlier releases kept its id only in the location of the
-- answer.
ALTER TABLE idempotency_records ADD COLUMN event_id BLOB;
UPDATE idempotency_records SET event_id = unhex(replace(substr(location, -36), '-', '')) WHERE location GLOB '*evt_*';
