-- Which keys sign deliveries to an endpoint: empty for its own, or "environment". The keys of an environment are secrets whose endpoint_id and
-- tenant_id are the environment's id.
ALTER TABLE endpoints ADD COLUMN signing TEXT NOT NULL DEFAULT '';
