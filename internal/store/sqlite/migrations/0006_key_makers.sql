-- made_by lists the principals that made a key: a JSON list of key ids. The last one made the request.
ALTER TABLE api_keys ADD COLUMN made_by TEXT;
