-- Which principals made a key: a JSON list of key ids, the last being the one that asked for it.
ALTER TABLE api_keys ADD COLUMN made_by TEXT;
