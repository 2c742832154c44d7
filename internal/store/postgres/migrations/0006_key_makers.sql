-- Which principals made a key, the last being the one that asked for it.
ALTER TABLE api_keys ADD COLUMN made_by uuid[] NOT NULL DEFAULT '{}';
