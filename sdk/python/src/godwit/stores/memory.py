"""A store in this process alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from .store import RESERVED, Outcome, Reservation


@dataclass(frozen=True)
class _Entry:
    fingerprint: str
    token: str
    outcome: Outcome | None
    until: float


class MemoryStore:
    """For tests, and for receivers that run as one process and may forget at a restart.

    Expired entries are dropped now and then, so that it does not grow without bound.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._values: dict[str, float] = {}
        self._sweep_at = 0.0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries) + len(self._values)

    def reserve(self, scope: str, fingerprint: str, token: str, now: float, lease_until: float) -> Reservation:
        with self._lock:
            self._sweep(now)
            entry = self._entries.get(scope)
            if entry is None or entry.until <= now:
                self._entries[scope] = _Entry(fingerprint, token, None, lease_until)
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
            self._entries[scope] = _Entry(fingerprint, token, outcome, expires_at)
            return True

    def release(self, scope: str, token: str) -> None:
        with self._lock:
            if self._held(scope, token):
                del self._entries[scope]

    def _held(self, scope: str, token: str) -> bool:
        entry = self._entries.get(scope)
        return entry is not None and entry.token == token and entry.outcome is None

    def remember(self, value: str, until: float, now: float) -> bool:
        with self._lock:
            self._sweep(now)
            if self._values.get(value, now) > now:
                return False
            self._values[value] = until
            return True

    def purge(self, now: float) -> int:
        with self._lock:
            return self._drop(now)

    def _sweep(self, now: float) -> None:
        if now >= self._sweep_at:
            self._sweep_at = now + 60
            self._drop(now)

    def _drop(self, now: float) -> int:
        scopes = [scope for scope, entry in self._entries.items() if entry.until <= now]
        values = [value for value, until in self._values.items() if until <= now]
        for scope in scopes:
            del self._entries[scope]
        for value in values:
            del self._values[value]
        return len(scopes) + len(values)
