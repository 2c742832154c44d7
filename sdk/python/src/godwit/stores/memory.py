"""A store in this process alone."""

from __future__ import annotations

import heapq
import threading
from dataclasses import dataclass

from .store import RESERVED, Outcome, Reservation


@dataclass(frozen=True)
class _Entry:
    fingerprint: str
    token: str
    outcome: Outcome | None
    until: float


class StoreFullError(Exception):
    """A store in memory has reached its bound."""


class MemoryStore:
    """For tests, and for receivers that run as one process and may forget at a restart. It drops what has expired as it
    goes."""

    def __init__(self, max_entries: int = 1_000_000) -> None:
        """`max_entries`: how many keys and nonces are remembered at most. Beyond it new ones are refused (503), because
        forgetting one would let a duplicate through. Defaults to 1,000,000."""
        if max_entries < 1:
            raise ValueError("store: max_entries must be above 0")
        self._max = max_entries
        self._entries: dict[str, _Entry] = {}
        self._values: dict[str, float] = {}
        self._expiry: list[tuple[float, str, bool]] = []  # a heap: what ends first; the flag says that it is a value
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries) + len(self._values)

    def reserve(self, scope: str, fingerprint: str, token: str, now: float, lease_until: float) -> Reservation:
        with self._lock:
            self._sweep(now, 4)
            entry = self._entries.get(scope)
            if entry is None or entry.until <= now:
                self._make_room(now, entry is not None)
                self._put(scope, _Entry(fingerprint, token, None, lease_until))
                return RESERVED
            if entry.outcome is None:
                return Reservation("in-progress", entry.fingerprint)
            return Reservation("completed", entry.fingerprint, entry.outcome)

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        with self._lock:
            if not self._held(scope, token):
                return False
            self._put(scope, _Entry(fingerprint, token, outcome, expires_at))
            return True

    def release(self, scope: str, token: str) -> None:
        with self._lock:
            if self._held(scope, token):
                del self._entries[scope]

    def _put(self, scope: str, entry: _Entry) -> None:
        self._entries[scope] = entry
        heapq.heappush(self._expiry, (entry.until, scope, False))

    def _held(self, scope: str, token: str) -> bool:
        entry = self._entries.get(scope)
        return entry is not None and entry.token == token and entry.outcome is None

    def remember(self, value: str, until: float, now: float) -> bool:
        with self._lock:
            self._sweep(now, 4)
            known = self._values.get(value)
            if known is not None and known > now:
                return False
            self._make_room(now, known is not None)
            self._values[value] = until
            heapq.heappush(self._expiry, (until, value, True))
            return True

    def purge(self, now: float, limit: int) -> int:
        with self._lock:
            return self._sweep(now, limit)

    def _make_room(self, now: float, known: bool) -> None:
        if known or len(self._entries) + len(self._values) < self._max:
            return
        self._sweep(now, self._max)
        if len(self._entries) + len(self._values) >= self._max:
            raise StoreFullError("the store in memory is full")

    def _sweep(self, now: float, limit: int) -> int:
        """Drops at most `limit` entries that have expired. What was given another end since it was queued stays: its later
        end is queued as well."""
        dropped = 0
        while dropped < limit and self._expiry and self._expiry[0][0] <= now:
            _, key, is_value = heapq.heappop(self._expiry)
            if is_value:
                if key in self._values and self._values[key] <= now:
                    del self._values[key]
                    dropped += 1
            elif key in self._entries and self._entries[key].until <= now:
                del self._entries[key]
                dropped += 1
        return dropped
