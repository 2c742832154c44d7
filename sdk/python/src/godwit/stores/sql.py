"""A store in SQLite or PostgreSQL, shared by all processes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..crypto.decode import from_base64, to_base64
from .database import Database, Transaction, create_schema, table_name
from .store import RESERVED, LeaseLostError, Outcome, Reservation, StoreTransaction


class _Undone(Exception):
    """Leaves a transaction without its writes."""


class SqlStore:
    """Keep the clocks of the processes together: leases are compared with each one's own."""

    def __init__(
        self, database: Database, *, table: str = "webhook_receipts", nonce_table: str = "webhook_nonces"
    ) -> None:
        self._database = database
        self._table = table_name(table)
        self._nonces = table_name(nonce_table)

    def schema(self) -> list[str]:
        """The statements that make the tables; run them once, in your migrations or by `migrate`."""
        table, nonces = self._table, self._nonces
        return [
            f"""CREATE TABLE IF NOT EXISTS {table} (
  scope VARCHAR(64) PRIMARY KEY,
  fingerprint VARCHAR(64) NOT NULL,
  token VARCHAR(64) NOT NULL,
  status INTEGER,
  headers TEXT,
  body TEXT,
  until BIGINT NOT NULL
)""",
            f"CREATE INDEX IF NOT EXISTS {table.replace('.', '_')}_until ON {table} (until)",
            f"CREATE TABLE IF NOT EXISTS {nonces} (value VARCHAR(64) PRIMARY KEY, until BIGINT NOT NULL)",
            f"CREATE INDEX IF NOT EXISTS {nonces.replace('.', '_')}_until ON {nonces} (until)",
        ]

    def migrate(self) -> SqlStore:
        """Makes the tables if they are not there; answers the store itself."""
        create_schema(self._database, self.schema())
        return self

    def reserve(self, scope: str, fingerprint: str, token: str, now: float, lease_until: float) -> Reservation:
        if self._database.one_writer:  # a repeat writes nothing, and so need not wait for who does
            with self._database.reading() as tx:
                known = self._find(tx, scope)
            if known is not None and known[-1] > millis(now):
                return _reservation(known)
        with self._database.transaction() as tx:
            for _ in range(5):
                if self._take(tx, scope, fingerprint, token, now, lease_until):
                    return RESERVED
                known = self._find(tx, scope)
                if known is not None:
                    return _reservation(known)
                # Released between the statements: try again.
        return Reservation("in-progress", fingerprint)

    def _take(self, tx: Transaction, scope: str, fingerprint: str, token: str, now: float, until: float) -> bool:
        """Takes a key that is new or has expired: the row's own lock decides between two who try."""
        sql = f"""INSERT INTO {self._table} AS held (scope, fingerprint, token, until) VALUES (%s, %s, %s, %s)
ON CONFLICT (scope) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token, until = excluded.until,
  status = NULL, headers = NULL, body = NULL WHERE held.until <= %s"""
        return tx.count(sql, (scope, fingerprint, token, millis(until), millis(now))) > 0

    def _find(self, tx: Transaction, scope: str) -> tuple[Any, ...] | None:
        sql = f"SELECT fingerprint, status, headers, body, until FROM {self._table} WHERE scope = %s"
        found = tx.rows(sql, (scope,))
        return found[0] if found else None

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        with self._database.transaction() as tx:
            return self._complete(tx, scope, token, outcome, expires_at)

    def _complete(self, tx: Transaction, scope: str, token: str, outcome: Outcome, expires_at: float) -> bool:
        body = None if outcome.body is None else to_base64(outcome.body)
        sql = f"""UPDATE {self._table} SET status = %s, headers = %s, body = %s, until = %s
WHERE scope = %s AND token = %s AND status IS NULL"""
        params = (outcome.status, json.dumps(dict(outcome.headers)), body, millis(expires_at), scope, token)
        return tx.count(sql, params) > 0

    @contextmanager
    def begin(self, scope: str, token: str, limit: float | None = None) -> Iterator[StoreTransaction]:
        """The handler writes with the transaction itself (`sql_of`), in the database that the store is in."""
        try:
            with self._database.transaction(limit) as tx:
                # With one writer no other caller can take the key from here on. Otherwise the row stays free until it
                # is completed, so that repeats are answered; a holder that has lost it finds out then.
                if self._database.one_writer and not self._holds(tx, scope, token):
                    raise LeaseLostError("the lease ended before the handler began")
                transaction = _SqlTransaction(self, tx)
                yield transaction
                if not transaction.completed:
                    raise _Undone
        except _Undone:
            pass

    def _holds(self, tx: Transaction, scope: str, token: str) -> bool:
        sql = f"SELECT 1 FROM {self._table} WHERE scope = %s AND token = %s AND status IS NULL"
        return bool(tx.rows(sql, (scope, token)))

    def release(self, scope: str, token: str) -> None:
        with self._database.transaction() as tx:
            tx.count(f"DELETE FROM {self._table} WHERE scope = %s AND token = %s AND status IS NULL", (scope, token))

    def remember(self, value: str, until: float, now: float) -> bool:
        sql = f"""INSERT INTO {self._nonces} AS known (value, until) VALUES (%s, %s)
ON CONFLICT (value) DO UPDATE SET until = excluded.until WHERE known.until <= %s"""
        with self._database.transaction() as tx:
            return tx.count(sql, (value, millis(until), millis(now))) > 0

    def purge(self, now: float, limit: int) -> int:
        dropped = 0
        with self._database.transaction() as tx:
            for table, key in ((self._table, "scope"), (self._nonces, "value")):
                expired = f"SELECT {key} FROM {table} WHERE until <= %s LIMIT %s {self._database.skip_locked}"
                sql = f"DELETE FROM {table} WHERE {key} IN ({expired})"
                dropped += tx.count(sql, (millis(now), limit - dropped))
        return dropped


class _SqlTransaction:
    def __init__(self, store: SqlStore, tx: Transaction) -> None:
        self._store = store
        self.handle = tx
        self.completed = False

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        self.completed = self._store._complete(self.handle, scope, token, outcome, expires_at)
        return self.completed


def millis(seconds: float) -> int:
    return math.floor(seconds * 1000)


def _reservation(row: tuple[Any, ...]) -> Reservation:
    fingerprint, status, headers, body, _ = row
    if status is None:
        return Reservation("in-progress", str(fingerprint))
    kept = None if body is None else from_base64(str(body))
    return Reservation("completed", str(fingerprint), Outcome(int(status), json.loads(headers), kept))
