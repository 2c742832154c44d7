"""A durable inbox in SQLite or PostgreSQL, shared by all receivers and workers."""

from __future__ import annotations

import json
import uuid
from typing import Any

from ..stores.database import Database, create_schema, table_name
from ..stores.sql import millis
from .inbox import ClaimedJob, InboxJob


class SqlInbox:
    def __init__(self, database: Database, *, table: str = "webhook_inbox") -> None:
        self._database = database
        self._table = table_name(table)

    def schema(self) -> list[str]:
        """The statements that make the table; run them once, in your migrations or by `migrate`."""
        table = self._table
        return [
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

    def migrate(self) -> SqlInbox:
        """Makes the table if it is not there; answers the inbox itself."""
        create_schema(self._database, self.schema())
        return self

    def enqueue(self, job: InboxJob) -> None:
        sql = f"""INSERT INTO {self._table} (id, event_id, event_type, delivery, received_at)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"""
        document = json.dumps({"payload": job.payload, "delivery": dict(job.delivery)})
        with self._database.transaction() as tx:
            tx.count(sql, (job.id, job.event_id, job.event_type, document, job.received_at))

    def claim(self, limit: int, lease_until: float, now: float) -> list[ClaimedJob]:
        # Workers of PostgreSQL pass over what another is just claiming; SQLite has one writer at a time anyway.
        due = f"""SELECT id, event_id, event_type, delivery, received_at, attempt FROM {self._table}
WHERE state IN ('waiting', 'claimed') AND at <= %s ORDER BY received_at, id LIMIT %s {self._database.skip_locked}"""
        take = f"UPDATE {self._table} SET state = 'claimed', attempt = %s, token = %s, at = %s WHERE id = %s"
        claimed = []
        with self._database.transaction() as tx:
            for row in tx.rows(due, (millis(now), limit)):
                job, attempt, token = _job(row), int(row[5]) + 1, str(uuid.uuid4())
                tx.count(take, (attempt, token, millis(lease_until), job.id))
                claimed.append(ClaimedJob(job, attempt, token))
        return claimed

    def _move(self, claimed: ClaimedJob, state: str, at: float, reason: str) -> None:
        sql = f"""UPDATE {self._table} SET state = %s, at = %s, reason = %s
WHERE id = %s AND token = %s AND state = 'claimed'"""
        with self._database.transaction() as tx:
            tx.count(sql, (state, millis(at), reason[:1000], claimed.job.id, claimed.token))

    def done(self, claimed: ClaimedJob, now: float) -> None:
        self._move(claimed, "done", now, "")

    def later(self, claimed: ClaimedJob, due_at: float, reason: str) -> None:
        self._move(claimed, "waiting", due_at, reason)

    def dead(self, claimed: ClaimedJob, reason: str, now: float) -> None:
        self._move(claimed, "dead", now, reason)

    def purge(self, before: float) -> int:
        with self._database.transaction() as tx:
            return tx.count(f"DELETE FROM {self._table} WHERE state = 'done' AND at < %s", (millis(before),))

    def states(self) -> dict[str, int]:
        """How many jobs are in which state."""
        counts = {"waiting": 0, "claimed": 0, "done": 0, "dead": 0}
        with self._database.transaction() as tx:
            counts.update(
                {
                    str(state): int(n)
                    for state, n in tx.rows(f"SELECT state, COUNT(*) FROM {self._table} GROUP BY state")
                }
            )
        return counts


def _job(row: tuple[Any, ...]) -> InboxJob:
    document = json.loads(row[3])
    return InboxJob(str(row[0]), str(row[1]), str(row[2]), document["payload"], str(row[4]), document["delivery"])
