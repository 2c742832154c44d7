"""A bound on requests in a window of time, after the sample of CYBERCUBE's standard (CCW-LIM-12)."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

RATE_LIMIT_EXCEEDED = b'{"error":"Rate limit exceeded"}'
"""The body of a request over the limit."""

_MAX_KEYS = 10_000


@dataclass(frozen=True)
class RateLimitVerdict:
    allowed: bool
    headers: Mapping[str, str]
    """ratelimit-limit, -remaining and -reset; with retry-after when the request is over the limit."""


class RateLimiter:
    """Counts by key, such as the sender's address, in windows that begin with a key's first request."""

    def __init__(self, limit: int = 1000, window: float = 60, clock: Callable[[], float] = time.time) -> None:
        if limit <= 0 or window <= 0:
            raise ValueError("rate limit: limit and window must be above 0")
        self._limit = limit
        self._window = window
        self._clock = clock
        self._windows: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def take(self, key: str = "") -> RateLimitVerdict:
        now = self._clock()
        with self._lock:
            count, until = self._windows.get(key, (0, 0.0))
            if until <= now:
                if len(self._windows) >= _MAX_KEYS:
                    self._sweep(now)
                count, until = 0, now + self._window
            count += 1
            self._windows[key] = (count, until)
        allowed = count <= self._limit
        reset = str(math.ceil(until - now))
        headers = {
            "ratelimit-limit": str(self._limit),
            "ratelimit-remaining": str(max(0, self._limit - count)),
            "ratelimit-reset": reset,
        }
        if not allowed:
            headers["retry-after"] = reset
        return RateLimitVerdict(allowed, headers)

    def _sweep(self, now: float) -> None:
        """Keys come from outside: past the bound the oldest windows go first."""
        for key in [key for key, (_, until) in self._windows.items() if until <= now]:
            del self._windows[key]
        while len(self._windows) >= _MAX_KEYS:
            del self._windows[next(iter(self._windows))]
