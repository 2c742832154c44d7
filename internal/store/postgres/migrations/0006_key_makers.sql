-- made_by lists the principals that made a key. The last one made the request.
ALTER TABLE api_keys ADD COLUMN made_by uuid[] NOT NULL DEFAULT '{}';
