-- How an environment's portal looks, and which pages may frame it. It is apart from the settings, since these are read with every tenant.
ALTER TABLE environments ADD COLUMN portal TEXT;
