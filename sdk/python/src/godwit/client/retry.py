"""Repeats of requests."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TypeVar

from .errors import GodwitError

T = TypeVar("T")


@dataclass(frozen=True)
class Retry:
    """How a request is repeated if its response was lost or it may be accepted later.

    The repeat is the same request under the same key, so the server carries it out once. Responses that need a correction
    (400, 401, 403, 404, 422 and the like) are not repeated."""

    max: int = 10
    """The largest number of repeats."""
    elapsed: float = 30
    """Seconds for all repeats together; must be shorter than the server remembers keys."""
    base: float = 0.25
    """The largest delay before the first repeat in seconds; it doubles with each further one."""
    cap: float = 10
    """The largest delay in seconds."""


def insist(retry: Retry | None, request: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Makes a request, and repeats it if that is allowed and may help."""
    began = time.monotonic()
    repeats = 0
    while True:
        try:
            return request()
        except (GodwitError, OSError, HTTPException, json.JSONDecodeError) as error:
            if retry is None or repeats >= retry.max or not _passes(error):
                raise
            wait = _delay(retry, repeats, error)
            if time.monotonic() + wait - began > retry.elapsed:
                raise
        sleep(wait)
        repeats += 1


def _passes(error: Exception) -> bool:
    """Whether the same request may succeed later. Without a complete response the server may have received the request."""
    if not isinstance(error, GodwitError):
        return True
    if error.status == 409:
        return error.code == "idempotency-in-progress"
    return error.status >= 500 or error.status in (408, 421, 425, 429)


def _delay(retry: Retry, repeats: int, error: Exception) -> float:
    """A random part of a window that doubles, and at least what the server asks for."""
    window = min(retry.base * 2 ** min(repeats, 30), retry.cap)
    asked = retry_after(error.retry_after) if isinstance(error, GodwitError) else 0
    return random.uniform(0, window) + asked


def retry_after(value: str | None) -> float:
    """Seconds of a Retry-After field in either form; other text counts as absent."""
    if not value:
        return 0
    if value.isascii() and value.isdigit():
        return min(int(value), 2**31)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return 0
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max((at - datetime.now(timezone.utc)).total_seconds(), 0)
