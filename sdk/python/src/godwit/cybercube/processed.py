"""Where processed events are remembered: in memory, in Redis, or in the standard's own table (CCW-IDM-8)."""

from __future__ import annotations

import json
import threading
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from ..profiles.profile import DAY
from ..receiver.delivery import moment, timestamp
from ..stores.database import Database, create_schema, storable, table_name
from ..stores.redis import RedisClient
from .processor import ProcessedEvent


@dataclass(frozen=True)
class _Entry:
    token: str
    received_at: datetime
    processed: ProcessedEvent | None = None


class MemoryProcessedEvents:
    """In this process alone."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._mutex = threading.Lock()

    def get(self, event_id: str) -> ProcessedEvent | None:
        with self._mutex:
            entry = self._entries.get(event_id)
            return None if entry is None else entry.processed

    def lock(self, event_id: str, event_type: str, now: datetime, expired_before: datetime) -> str | None:
        with self._mutex:
            held = self._entries.get(event_id)
            if held is not None and (held.processed is not None or held.received_at > expired_before):
                return None
            token = str(uuid.uuid4())
            self._entries[event_id] = _Entry(token, now)
            return token

    def mark_processed(self, event_id: str, token: str, result: str, now: datetime) -> bool:
        with self._mutex:
            held = self._entries.get(event_id)
            if held is None or held.token != token or held.processed is not None:
                return False
            self._entries[event_id] = replace(held, processed=ProcessedEvent(event_id, now, result))
            return True

    def release_lock(self, event_id: str, token: str) -> None:
        with self._mutex:
            held = self._entries.get(event_id)
            if held is not None and held.token == token and held.processed is None:
                del self._entries[event_id]

    def cleanup(self, before: datetime) -> int:
        with self._mutex:
            old = [event_id for event_id, entry in self._entries.items() if entry.received_at < before]
            for event_id in old:
                del self._entries[event_id]
            return len(old)


class SqlProcessedEvents:
    """In the standard's table.

    A pending row is the lock, and the time it was received is the holder's token: a row is taken over only when that time
    is old enough, and it gets a new one then.
    """

    def __init__(self, database: Database, *, table: str = "processed_webhook_events") -> None:
        self._database = database
        self._table = table_name(table)

    def schema(self) -> list[str]:
        """The schema of section 6.3; run it once, in your migrations or by `migrate`."""
        return [
            f"""CREATE TABLE IF NOT EXISTS {self._table} (
  event_id VARCHAR(30) PRIMARY KEY,
  event_type VARCHAR(100) NOT NULL,
  received_at TIMESTAMPTZ NOT NULL DEFAULT {self._database.now},
  processed_at TIMESTAMPTZ,
  processing_status VARCHAR(20) NOT NULL DEFAULT 'pending',
  result TEXT
)""",
            f"CREATE INDEX IF NOT EXISTS idx_received_at ON {self._table} (received_at)",
        ]

    def migrate(self) -> SqlProcessedEvents:
        """Makes the table if it is not there; answers itself."""
        create_schema(self._database, self.schema())
        return self

    def get(self, event_id: str) -> ProcessedEvent | None:
        sql = f"""SELECT processed_at, result FROM {self._table}
WHERE event_id = %s AND processing_status = 'processed'"""
        with self._database.reading() as tx:
            rows = tx.rows(sql, (event_id,))
        return ProcessedEvent(event_id, _moment(rows[0][0]), str(rows[0][1] or "")) if rows else None

    def lock(self, event_id: str, event_type: str, now: datetime, expired_before: datetime) -> str | None:
        token = timestamp(now)
        insert = f"""INSERT INTO {self._table} (event_id, event_type, received_at) VALUES (%s, %s, %s)
ON CONFLICT (event_id) DO NOTHING"""
        take_over = f"""UPDATE {self._table} SET received_at = %s
WHERE event_id = %s AND processing_status = 'pending' AND received_at <= %s"""
        with self._database.transaction() as tx:
            if tx.count(insert, (event_id, event_type, token)) > 0:
                return token
            return token if tx.count(take_over, (token, event_id, timestamp(expired_before))) > 0 else None

    def mark_processed(self, event_id: str, token: str, result: str, now: datetime) -> bool:
        sql = f"""UPDATE {self._table} SET processing_status = 'processed', processed_at = %s, result = %s
WHERE event_id = %s AND processing_status = 'pending' AND received_at = %s"""
        with self._database.transaction() as tx:
            return tx.count(sql, (timestamp(now), storable(result), event_id, token)) > 0

    def release_lock(self, event_id: str, token: str) -> None:
        sql = f"DELETE FROM {self._table} WHERE event_id = %s AND processing_status = 'pending' AND received_at = %s"
        with self._database.transaction() as tx:
            tx.count(sql, (event_id, token))

    def cleanup(self, before: datetime) -> int:
        with self._database.transaction() as tx:
            return tx.count(f"DELETE FROM {self._table} WHERE received_at < %s", (timestamp(before),))


def _moment(value: object) -> datetime:
    """Drivers of PostgreSQL answer a datetime, SQLite the text that was written."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return moment(str(value))


# One step each, and a script that was sent again because its reply got lost finds its own token.
_LOCK = """if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0"""
_MARK = """if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
redis.call('DEL', KEYS[1])
return 1"""
_UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisProcessedEvents:
    """In Redis or what speaks its protocol: a lock, and the event with its time to live. In a cluster, put a hash tag into
    the prefix."""

    def __init__(self, client: RedisClient, *, prefix: str = "godwit:", retention: float = 30 * DAY) -> None:
        """`retention`: how long events are remembered, in seconds. Defaults to 30 days; the floor is 7."""
        if retention < 7 * DAY:
            raise ValueError("events must be remembered for 7 days at least")
        self._client = client
        self._prefix = prefix
        self._retention = str(int(retention))

    def _run(self, script: str, event_id: str, *args: str) -> int:
        keys = (f"{self._prefix}lock:{event_id}", f"{self._prefix}processed:{event_id}")
        return int(self._client.execute_command("EVAL", script, len(keys), *keys, *args))

    def get(self, event_id: str) -> ProcessedEvent | None:
        held = self._client.execute_command("GET", f"{self._prefix}processed:{event_id}")
        if held is None:
            return None
        kept = json.loads(held)
        return ProcessedEvent(event_id, _moment(kept["at"]), kept["result"])

    def lock(self, event_id: str, event_type: str, now: datetime, expired_before: datetime) -> str | None:
        token = str(uuid.uuid4())
        ttl = str(max(1, (now - expired_before) // timedelta(milliseconds=1)))
        return token if self._run(_LOCK, event_id, token, ttl) == 1 else None

    def mark_processed(self, event_id: str, token: str, result: str, now: datetime) -> bool:
        value = json.dumps({"at": timestamp(now), "result": result})
        return self._run(_MARK, event_id, token, value, self._retention) == 1

    def release_lock(self, event_id: str, token: str) -> None:
        self._run(_UNLOCK, event_id, token)

    def cleanup(self, before: datetime) -> int:
        return 0
