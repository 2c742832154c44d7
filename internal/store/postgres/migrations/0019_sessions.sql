-- Programs of schema 11 and later may run beside this one.
--
-- Browsers that have signed in, and links that make such a session once. Rows hold hashes of tokens and codes alone. What is not
-- searched is one document.
CREATE TABLE sessions (
    id           uuid PRIMARY KEY,
    kind         text COLLATE "C" NOT NULL, -- dashboard | portal
    hash         bytea NOT NULL UNIQUE,
    tenant_id    uuid NOT NULL,
    key_id       uuid,
    link_id      uuid,
    admin        boolean NOT NULL, -- has the scope admin
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    idle_until   timestamptz NOT NULL, -- not after expires_at
    expires_at   timestamptz NOT NULL,
    detail       json NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_tenant ON sessions (tenant_id, id);
CREATE INDEX sessions_by_key ON sessions (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX sessions_by_link ON sessions (link_id) WHERE link_id IS NOT NULL;
CREATE INDEX sessions_over ON sessions (idle_until);

CREATE TABLE sign_in_links (
    id         uuid PRIMARY KEY,
    kind       text COLLATE "C" NOT NULL, -- dashboard | portal
    hash       bytea NOT NULL UNIQUE,
    tenant_id  uuid NOT NULL,
    key_id     uuid,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz,
    session_id uuid,
    detail     json NOT NULL
);
CREATE INDEX sign_in_links_by_tenant ON sign_in_links (tenant_id, id);
CREATE INDEX sign_in_links_by_key ON sign_in_links (key_id) WHERE used_at IS NULL;
CREATE INDEX sign_in_links_over ON sign_in_links (expires_at);

-- A session that has ended leaves the caches of all nodes. Its uses do not: they change nothing that a cache decides by.
CREATE FUNCTION note_session_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM raise_config_version('session', OLD.id, OLD.tenant_id, NULL);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER note_session_end AFTER DELETE ON sessions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_session_end();
