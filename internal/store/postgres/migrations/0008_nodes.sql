-- Which process runs under a node's name. The instance is random and new with every process; it is empty before the first.
-- The process holds an advisory lock for its instance on a connection of its own, which ends with the process. Times are
-- those of the database.
CREATE TABLE nodes (
    name       text COLLATE "C" PRIMARY KEY,
    instance   text COLLATE "C" NOT NULL,
    holder     text NOT NULL, -- host and process, for people
    claimed_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL
);

-- By what a key ring and an evidence key are known to be this store's own.
CREATE TABLE key_checks (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);
