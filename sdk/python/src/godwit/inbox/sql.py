"""A durable inbox in SQLite or PostgreSQL, shared by all receivers and workers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..receiver.delivery import moment, restored_delivery
from ..stores.database import Database, Transaction, create_schema, storable, table_name
from ..stores.sql import millis
from ..stores.store import LeaseLostError
from .inbox import ClaimedJob, InboxJob, JobTransaction


class _Undone(Exception):
    """Leaves a transaction without its writes."""


class SqlInbox:
    def __init__(self, database: Database, *, table: str = "webhook_inbox") -> None:
        self._database = database
        self._table = table_name(table)

    def schema(self) -> list[str]:
        """The statements that make the table; run them once, in your migrations or by `migrate`."""
        table = self._table
        statements = [
            f"""CREATE TABLE IF NOT EXISTS {table} (
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
)""",
            f"CREATE INDEX IF NOT EXISTS {table.replace('.', '_')}_due ON {table} (state, at)",
        ]
        if not self._database.one_writer:
            statements.append(
                f"""CREATE INDEX IF NOT EXISTS {table.replace(".", "_")}_open ON {table} (at, received_at, id)
WHERE state IN ('waiting', 'claimed')"""
            )
        return statements

    def migrate(self) -> SqlInbox:
        """Makes the table if it is not there; answers the inbox itself."""
        create_schema(self._database, self.schema())
        return self

    def enqueue(self, job: InboxJob) -> None:
        sql = f"""INSERT INTO {self._table} AS known (id, event_id, event_type, delivery, received_at, at)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id, event_type = excluded.event_type,
  delivery = excluded.delivery, received_at = excluded.received_at, state = 'waiting', attempt = 0, token = '',
  at = excluded.at, reason = '' WHERE known.state IN ('done', 'dead') AND known.at < %s"""
        document = json.dumps({"payload": job.payload, "delivery": dict(job.delivery)})
        names = (storable(job.event_id), storable(job.event_type))
        received = millis(moment(job.received_at).timestamp())
        with self._database.transaction() as tx:
            tx.count(sql, (job.id, *names, document, job.received_at, received, millis(job.replaces)))

    def claim(self, limit: int, lease_until: float, now: float) -> list[ClaimedJob]:
        if self._database.one_writer and not self._is_due(now):
            return []  # workers with nothing to do must not keep others from writing
        take = f"UPDATE {self._table} SET state = 'claimed', attempt = %s, token = %s, at = %s WHERE id = %s"
        bury = f"UPDATE {self._table} SET state = 'dead', at = %s, reason = 'cannot be read' WHERE id = %s"
        claimed = []
        with self._database.transaction() as tx:
            for row in self._due(tx, now, limit):
                job, attempt, token = _job(row), int(row[5]) + 1, str(uuid.uuid4())
                if job is None:  # it would be in the way of all others for ever
                    tx.count(bury, (millis(now), str(row[0])))
                    continue
                tx.count(take, (attempt, token, millis(lease_until), job.id))
                claimed.append(ClaimedJob(job, attempt, token))
        return claimed

    def _due(self, tx: Transaction, now: float, limit: int) -> list[tuple[Any, ...]]:
        """Goes along an index, so that a long queue is not sorted for each claim."""
        columns, order = "id, event_id, event_type, delivery, received_at, attempt", "ORDER BY at, received_at, id"
        if not self._database.one_writer:
            # Workers pass over what another is just claiming.
            sql = f"""SELECT {columns} FROM {self._table} WHERE state IN ('waiting', 'claimed') AND at <= %s
{order} LIMIT %s {self._database.skip_locked}"""
            return tx.rows(sql, (millis(now), limit))
        # Of one state alone the index has the order.
        of_state = f"SELECT id, at, received_at FROM {self._table} WHERE state = %s AND at <= %s {order} LIMIT %s"
        ids = f"SELECT id FROM (SELECT * FROM ({of_state}) UNION ALL SELECT * FROM ({of_state})) {order} LIMIT %s"
        sql = f"SELECT {columns} FROM {self._table} WHERE id IN ({ids}) {order}"
        bounds = (millis(now), limit)
        return tx.rows(sql, ("waiting", *bounds, "claimed", *bounds, limit))

    def _is_due(self, now: float) -> bool:
        sql = f"SELECT 1 FROM {self._table} WHERE state IN ('waiting', 'claimed') AND at <= %s LIMIT 1"
        with self._database.reading() as tx:
            return bool(tx.rows(sql, (millis(now),)))

    def _move(self, claimed: ClaimedJob, state: str, at: float, reason: str, refund: int = 0) -> bool:
        with self._database.transaction() as tx:
            return self._moved(tx, claimed, state, at, reason, refund)

    def _moved(self, tx: Transaction, claimed: ClaimedJob, state: str, at: float, reason: str, refund: int) -> bool:
        sql = f"""UPDATE {self._table} SET state = %s, at = %s, reason = %s, attempt = attempt - %s
WHERE id = %s AND token = %s AND state = 'claimed'"""
        params = (state, millis(at), storable(reason[:1000]), refund, claimed.job.id, claimed.token)
        return tx.count(sql, params) > 0

    def done(self, claimed: ClaimedJob, now: float) -> bool:
        return self._move(claimed, "done", now, "")

    def later(self, claimed: ClaimedJob, due_at: float, reason: str, interrupted: bool = False) -> bool:
        return self._move(claimed, "waiting", due_at, reason, int(interrupted))

    def dead(self, claimed: ClaimedJob, reason: str, now: float) -> bool:
        return self._move(claimed, "dead", now, reason)

    @contextmanager
    def begin(self, claimed: ClaimedJob, limit: float | None = None) -> Iterator[JobTransaction]:
        """The handler writes with the transaction itself (`sql_of`), in the database that the inbox is in."""
        try:
            with self._database.transaction(limit) as tx:
                if self._database.one_writer and not self._holds(tx, claimed):
                    raise LeaseLostError("the lease ended before the handler began")
                transaction = _SqlJobTransaction(self, tx, claimed)
                yield transaction
                if not transaction.ended:
                    raise _Undone
        except _Undone:
            pass

    def _holds(self, tx: Transaction, claimed: ClaimedJob) -> bool:
        sql = f"SELECT 1 FROM {self._table} WHERE id = %s AND token = %s AND state = 'claimed'"
        return bool(tx.rows(sql, (claimed.job.id, claimed.token)))

    def purge(self, before: float, limit: int = 1000) -> int:
        old = f"SELECT id FROM {self._table} WHERE state = 'done' AND at < %s LIMIT %s {self._database.skip_locked}"
        with self._database.transaction() as tx:
            return tx.count(f"DELETE FROM {self._table} WHERE id IN ({old})", (millis(before), limit))

    def states(self) -> dict[str, int]:
        """How many jobs are in which state."""
        counts = {"waiting": 0, "claimed": 0, "done": 0, "dead": 0}
        with self._database.reading() as tx:
            counts.update(
                {
                    str(state): int(n)
                    for state, n in tx.rows(f"SELECT state, COUNT(*) FROM {self._table} GROUP BY state")
                }
            )
        return counts


class _SqlJobTransaction:
    def __init__(self, inbox: SqlInbox, tx: Transaction, claimed: ClaimedJob) -> None:
        self._inbox = inbox
        self._claimed = claimed
        self.handle = tx
        self.ended = False

    def done(self, now: float) -> bool:
        self.ended = self._inbox._moved(self.handle, self._claimed, "done", now, "", 0)
        return self.ended


def _job(row: tuple[Any, ...]) -> InboxJob | None:
    """The job of a row, also of one that a receiver of another language wrote; None if it cannot be read."""
    try:
        document = json.loads(row[3])
        payload = document["payload"] if "payload" in document else document["data"]["payload"]
        restored_delivery(document["delivery"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return InboxJob(str(row[0]), str(row[1]), str(row[2]), payload, str(row[4]), document["delivery"])
