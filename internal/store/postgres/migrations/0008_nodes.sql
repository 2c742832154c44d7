-- The process that runs under each node name. Every process has a new random instance; before the first process it is empty.
-- The process holds an advisory lock for its instance on a separate connection, which ends with the process. Times are those
-- of the database.
CREATE TABLE nodes (
    name       text COLLATE "C" PRIMARY KEY,
    instance   text COLLATE "C" NOT NULL,
    holder     text NOT NULL, -- host and process, for people
    claimed_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL
);

-- Check values that prove that a key ring and an evidence key belong to this store.
CREATE TABLE key_checks (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);
