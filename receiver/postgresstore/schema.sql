CREATE TABLE IF NOT EXISTS webhook_receipts (
  scope VARCHAR(64) PRIMARY KEY,
  fingerprint VARCHAR(64) NOT NULL,
  token VARCHAR(64) NOT NULL,
  status INTEGER,
  headers TEXT,
  body TEXT,
  until BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS webhook_receipts_until ON webhook_receipts (until);
CREATE TABLE IF NOT EXISTS webhook_nonces (value VARCHAR(64) PRIMARY KEY, until BIGINT NOT NULL);
CREATE INDEX IF NOT EXISTS webhook_nonces_until ON webhook_nonces (until);
CREATE TABLE IF NOT EXISTS webhook_inbox (
  id VARCHAR(64) PRIMARY KEY,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  delivery TEXT NOT NULL,
  received_at TEXT NOT NULL,
  state VARCHAR(10) NOT NULL DEFAULT 'waiting',
  attempt INTEGER NOT NULL DEFAULT 0,
  token VARCHAR(64) NOT NULL DEFAULT '',
  at BIGINT NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS webhook_inbox_due ON webhook_inbox (state, at);
CREATE INDEX IF NOT EXISTS webhook_inbox_open ON webhook_inbox (at, received_at, id) WHERE state IN ('waiting', 'claimed');
