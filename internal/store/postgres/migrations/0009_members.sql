-- Programs of schema 8 and later may run beside this one.
-- Nodes announce themselves and share the shards. lease_until, by the database's clock, is when the leases of the process
-- expire; one row changes with each beat instead of the rows of all its leases, which every commit reads.
ALTER TABLE nodes
    ADD COLUMN address        text NOT NULL DEFAULT '',
    ADD COLUMN version        text NOT NULL DEFAULT '',
    ADD COLUMN schema_version integer NOT NULL DEFAULT 0,
    ADD COLUMN state          text NOT NULL DEFAULT 'running',
    ADD COLUMN lease_until    timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN shards         integer NOT NULL DEFAULT 0,
    ADD COLUMN held           integer NOT NULL DEFAULT 0,
    ADD COLUMN in_flight      integer NOT NULL DEFAULT 0,
    ADD COLUMN lag            interval NOT NULL DEFAULT '0';
ALTER TABLE nodes SET (fillfactor = 20);

-- A lease whose expires_at is infinity expires with its owner's lease_until. clean says of a released lease that its owner left
-- no claims.
ALTER TABLE leases ADD COLUMN clean boolean NOT NULL DEFAULT false;
