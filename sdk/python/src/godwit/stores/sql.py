"""A store in SQLite or PostgreSQL, shared by all processes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..crypto.decode import from_base64, to_base64
from .database import Database, SqlValue, Transaction, create_schema, table_name
from .store import RESERVED, Outcome, Reservation


class SqlStore:
    """Keep the clocks of the processes together: leases are compared with each one's own. Call `purge` now and then."""

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
        row = (scope, fingerprint, token, millis(lease_until))
        with self._database.transaction() as tx:
            for _ in range(5):
                # The row's own lock decides between two who try at the same time.
                if self._insert(tx, row) or self._take_over(tx, row, now):
                    return RESERVED
                found = tx.rows(
                    f"SELECT fingerprint, status, headers, body FROM {self._table} WHERE scope = %s", (scope,)
                )
                if found:
                    return _reservation(found[0])
                # Released between the statements: try again.
        return Reservation("in-progress", fingerprint)

    def _insert(self, tx: Transaction, row: Sequence[SqlValue]) -> bool:
        sql = f"INSERT INTO {self._table} (scope, fingerprint, token, until) VALUES (%s, %s, %s, %s)"
        return tx.count(f"{sql} ON CONFLICT (scope) DO NOTHING", row) > 0

    def _take_over(self, tx: Transaction, row: Sequence[SqlValue], now: float) -> bool:
        scope, fingerprint, token, until = row
        sql = f"""UPDATE {self._table} SET fingerprint = %s, token = %s, until = %s, status = NULL, headers = NULL,
  body = NULL WHERE scope = %s AND until <= %s"""
        return tx.count(sql, (fingerprint, token, until, scope, millis(now))) > 0

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        body = None if outcome.body is None else to_base64(outcome.body)
        sql = f"""UPDATE {self._table} SET status = %s, headers = %s, body = %s, until = %s
WHERE scope = %s AND token = %s AND status IS NULL"""
        params = (outcome.status, json.dumps(dict(outcome.headers)), body, millis(expires_at), scope, token)
        with self._database.transaction() as tx:
            return tx.count(sql, params) > 0

    def release(self, scope: str, token: str) -> None:
        with self._database.transaction() as tx:
            tx.count(f"DELETE FROM {self._table} WHERE scope = %s AND token = %s AND status IS NULL", (scope, token))

    def remember(self, value: str, until: float, now: float) -> bool:
        insert = f"INSERT INTO {self._nonces} (value, until) VALUES (%s, %s) ON CONFLICT (value) DO NOTHING"
        renew = f"UPDATE {self._nonces} SET until = %s WHERE value = %s AND until <= %s"
        with self._database.transaction() as tx:
            if tx.count(insert, (value, millis(until))) > 0:
                return True
            return tx.count(renew, (millis(until), value, millis(now))) > 0

    def purge(self, now: float) -> int:
        with self._database.transaction() as tx:
            return sum(
                tx.count(f"DELETE FROM {table} WHERE until <= %s", (millis(now),))
                for table in (self._table, self._nonces)
            )


def millis(seconds: float) -> int:
    return math.floor(seconds * 1000)


def _reservation(row: tuple[Any, ...]) -> Reservation:
    fingerprint, status, headers, body = row
    if status is None:
        return Reservation("in-progress", str(fingerprint))
    kept = None if body is None else from_base64(str(body))
    return Reservation("completed", str(fingerprint), Outcome(int(status), json.loads(headers), kept))
