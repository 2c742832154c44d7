-- Browsers that have signed in, and links that make such a session once. Rows hold hashes of tokens and codes alone. What is not
-- searched is one document.
CREATE TABLE sessions (
    id           BLOB PRIMARY KEY,
    kind         TEXT NOT NULL, -- dashboard | portal
    hash         BLOB NOT NULL UNIQUE,
    tenant_id    BLOB NOT NULL,
    key_id       BLOB,
    link_id      BLOB,
    admin        INTEGER NOT NULL, -- has the scope admin
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    idle_until   INTEGER NOT NULL, -- not after expires_at
    expires_at   INTEGER NOT NULL,
    detail       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_tenant ON sessions (tenant_id, id);
CREATE INDEX sessions_key ON sessions (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX sessions_link ON sessions (link_id) WHERE link_id IS NOT NULL;
CREATE INDEX sessions_over ON sessions (idle_until);

CREATE TABLE sign_in_links (
    id         BLOB PRIMARY KEY,
    kind       TEXT NOT NULL, -- dashboard | portal
    hash       BLOB NOT NULL UNIQUE,
    tenant_id  BLOB NOT NULL,
    key_id     BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL, -- 0: not used
    session_id BLOB,
    detail     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_tenant ON sign_in_links (tenant_id, id);
CREATE INDEX sign_in_links_key ON sign_in_links (key_id) WHERE used_at = 0;
CREATE INDEX sign_in_links_over ON sign_in_links (expires_at);
