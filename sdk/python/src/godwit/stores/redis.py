"""A store in Redis or what speaks its protocol, shared by all processes. Leases and windows end by Redis' own clock.

Use an instance that does not evict keys (maxmemory-policy noeviction) and writes to disk, or duplicates slip through.
"""

from __future__ import annotations

import json
import math
from typing import Any, Protocol

from ..crypto.decode import from_base64, to_base64
from .store import RESERVED, Outcome, Reservation


class RedisClient(Protocol):
    """A client of redis-py or valkey-py: you make it, connect it and close it."""

    def execute_command(self, *args: Any) -> Any: ...


# The holder's token is compared and the key changed in one step; only a script does that.
_RESERVE = """local held = redis.call('GET', KEYS[1])
if held then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false"""
_COMPLETE = """local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1"""
_RELEASE = """local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
return redis.call('DEL', KEYS[1])"""


class RedisStore:
    def __init__(self, client: RedisClient, *, prefix: str = "godwit:") -> None:
        """`prefix` is put before every key."""
        self._client = client
        self._prefix = prefix

    def _run(self, script: str, scope: str, *args: str) -> Any:
        return self._client.execute_command("EVAL", script, 1, f"{self._prefix}key:{scope}", *args)

    def reserve(self, scope: str, fingerprint: str, token: str, now: float, lease_until: float) -> Reservation:
        entry = json.dumps({"token": token, "fingerprint": fingerprint})
        held = self._run(_RESERVE, scope, entry, ttl(lease_until, now))
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
        body = None if outcome.body is None else to_base64(outcome.body)
        kept = {"status": outcome.status, "headers": dict(outcome.headers), "body": body}
        entry = json.dumps({"token": token, "fingerprint": fingerprint, "outcome": kept})
        return int(self._run(_COMPLETE, scope, token, entry, ttl(expires_at, now))) == 1

    def release(self, scope: str, token: str) -> None:
        self._run(_RELEASE, scope, token)

    def remember(self, value: str, until: float, now: float) -> bool:
        key = f"{self._prefix}nonce:{value}"
        return self._client.execute_command("SET", key, "1", "NX", "PX", ttl(until, now)) is not None

    def purge(self, now: float) -> int:
        return 0


def ttl(until: float, now: float) -> str:
    return str(max(1, math.ceil((until - now) * 1000)))
