"""A store in Redis or what speaks its protocol, shared by all processes. Nothing has to be purged.

Redis forgets what it has not written to disk when it dies, what it evicts, and what a replica had not heard of yet when it
took over: use appendonly yes, appendfsync always and maxmemory-policy noeviction, or duplicates slip through.
"""

from __future__ import annotations

import json
import math
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Union

from ..crypto.decode import from_base64, to_base64
from .store import RESERVED, LeaseLostError, Outcome, Reservation, StoreTransaction

RedisValue = Union[str, bytes, int, float]


class RedisClient(Protocol):
    """A client of redis-py or valkey-py: you make it, connect it and close it."""

    def execute_command(self, *args: Any) -> Any: ...


# A script compares the holder's token and changes the key in one step. The time is the caller's. Redis also expires
# entries by its own clock. A client that lost the reply sends a script again: if it finds its own token, the first call
# succeeded.
_RESERVE = """local held = redis.call('GET', KEYS[1])
if held then
  local entry = cjson.decode(held)
  if entry.token == ARGV[4] and not entry.outcome then return false end
  if not entry['until'] or entry['until'] > tonumber(ARGV[3]) then return held end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false"""
_HELD = """local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
"""
_HOLDS = f"{_HELD}return 1"
_COMPLETE = f"""{_HELD}local at = 4
while at <= #ARGV do
  local size = tonumber(ARGV[at])
  local command = {{}}
  for i = 1, size do command[i] = ARGV[at + i] end
  redis.call(unpack(command))
  at = at + size + 1
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1"""
_RELEASE = f"{_HELD}return redis.call('DEL', KEYS[1])"
_REMEMBER = """local known = redis.call('GET', KEYS[1])
if known == ARGV[1] then return 1 end
if known and (known == '1' or tonumber(string.match(known, '^%d+')) > tonumber(ARGV[3])) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1"""


class RedisQueue:
    """Commands that Redis runs in the very step that completes a handler's key.

    Redis undoes nothing: a command that fails, as on a key of another type, leaves those before it done and the key open,
    and a retry does them again. Queue one command, or only such as cannot fail. In a cluster their keys have to be in the
    slot of the store's own, by a hash tag in its prefix.
    """

    def __init__(self) -> None:
        self._commands: list[RedisValue] = []
        self._ended = False
        self._lock = threading.Lock()

    def add(self, *command: RedisValue) -> None:
        """Adds a command, such as `add("INCRBY", "balance", 5)`. Raises a RuntimeError if the handler has returned."""
        if not command:
            raise ValueError("a command has a name")
        with self._lock:
            if self._ended:
                raise RuntimeError("the handler has returned: nothing can be queued any more")
            self._commands += [len(command), *command]

    def end(self) -> list[RedisValue]:
        """Takes no more commands. Answers the words of all, each command with its length before it."""
        with self._lock:
            self._ended = True
            return self._commands


class RedisStore:
    def __init__(self, client: RedisClient, *, prefix: str = "godwit:") -> None:
        """`prefix` is put before every key."""
        self._client = client
        self._prefix = prefix

    def _run(self, script: str, scope: str, *args: RedisValue) -> Any:
        return self._client.execute_command("EVAL", script, 1, f"{self._prefix}key:{scope}", *args)

    def reserve(self, scope: str, fingerprint: str, token: str, now: float, lease_until: float) -> Reservation:
        entry = json.dumps({"token": token, "fingerprint": fingerprint, "until": _millis(lease_until)})
        held = self._run(_RESERVE, scope, entry, ttl(lease_until, now), _millis(now), token)
        if held is None:
            return RESERVED
        found = json.loads(held)
        outcome = found.get("outcome")
        if outcome is None:
            return Reservation("in-progress", found["fingerprint"])
        body = None if outcome["body"] is None else from_base64(outcome["body"])
        return Reservation("completed", found["fingerprint"], Outcome(outcome["status"], outcome["headers"], body))

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        return self._complete(scope, fingerprint, token, outcome, now, expires_at, [])

    def _complete(
        self,
        scope: str,
        fingerprint: str,
        token: str,
        outcome: Outcome,
        now: float,
        expires_at: float,
        commands: list[RedisValue],
    ) -> bool:
        body = None if outcome.body is None else to_base64(outcome.body)
        kept = {"status": outcome.status, "headers": dict(outcome.headers), "body": body}
        entry = {"token": token, "fingerprint": fingerprint, "until": _millis(expires_at), "outcome": kept}
        return int(self._run(_COMPLETE, scope, token, json.dumps(entry), ttl(expires_at, now), *commands)) == 1

    @contextmanager
    def begin(self, scope: str, token: str, limit: float | None = None) -> Iterator[StoreTransaction]:
        """The handler queues commands (`redis_of`), for the Redis that the store is in."""
        if int(self._run(_HOLDS, scope, token)) != 1:
            raise LeaseLostError("the lease ended before the handler began")
        transaction = _RedisTransaction(self)
        try:
            yield transaction
        finally:
            transaction.handle.end()

    def release(self, scope: str, token: str) -> None:
        self._run(_RELEASE, scope, token)

    def remember(self, value: str, until: float, now: float) -> bool:
        key, mark = f"{self._prefix}nonce:{value}", f"{_millis(until)} {uuid.uuid4()}"
        args = (mark, ttl(until, now), _millis(now))
        return int(self._client.execute_command("EVAL", _REMEMBER, 1, key, *args)) == 1

    def purge(self, now: float, limit: int) -> int:
        return 0


class _RedisTransaction:
    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self.handle = RedisQueue()

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        return self._store._complete(scope, fingerprint, token, outcome, now, expires_at, self.handle.end())


def _millis(seconds: float) -> int:
    return math.floor(seconds * 1000)


def ttl(until: float, now: float) -> str:
    return str(max(1, math.ceil((until - now) * 1000)))
