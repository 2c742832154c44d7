"""The results that a handler returns for a delivery. None means accepted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True)
class Accepted:
    """The event is taken; the sender need not send it again.

    The body, if any, is text, bytes, or a value that is sent as JSON. Status and headers default to the profile's own.
    """

    body: Any = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        # Checked before the result is kept: no server would send it, now or to a repeat.
        for name, value in self.headers.items():
            if not (isinstance(value, str) and _NAME.fullmatch(name) and _VALUE.fullmatch(value)):
                raise ValueError(f"Accepted with a header that cannot be sent: {name!r}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if isinstance(self.body, (bytes, bytearray)):
            content, media_type = bytes(self.body), "application/octet-stream"
        elif isinstance(self.body, str):
            content, media_type = self.body.encode(), "text/plain; charset=utf-8"
        elif self.body is not None:
            content, media_type = json.dumps(self.body, separators=(",", ":")).encode(), "application/json"
        else:
            content, media_type = None, ""
        if media_type:
            headers.setdefault("content-type", media_type)
        object.__setattr__(self, "headers", headers)
        object.__setattr__(self, "content", content)


@dataclass(frozen=True)
class RetryAfter:
    """The event cannot be processed now; the sender should retry, not before the given time: with 503, or 429 if it sends too much.

    Of 0 seconds the receiver makes its own `retry_after`, and a worker its next wait.
    """

    seconds: float = 0
    reason: str = "try again later"
    status: int = 503


@dataclass(frozen=True)
class Reject:
    """It will never be taken as it is. The refusal, with a status from 400 to 499, is kept and repeated to repeats."""

    status: int = 422
    reason: str = "rejected"


Result = Union[Accepted, RetryAfter, Reject]

_TRANSIENT = frozenset({408, 425, 429})
"""The statuses that ask a sender to retry: they do not fit a final refusal."""


def result_fault(result: object, allow_multi_status: bool) -> str | None:
    """Returns the error in a result, or None."""
    if isinstance(result, Accepted):
        status = 200 if result.status is None else result.status
        if not 200 <= status <= 299:
            return f"Accepted with status {status}"
        if status == 207 and not allow_multi_status:
            return "answered 207 without an agreement on its meaning"
        return None
    if isinstance(result, RetryAfter):
        if not (math.isfinite(result.seconds) and result.seconds >= 0):
            return "RetryAfter without a number of seconds"
        return None if result.status in (503, 429) else f"RetryAfter with status {result.status}"
    if isinstance(result, Reject):
        fits = 400 <= result.status <= 499 and result.status not in _TRANSIENT
        return None if fits else f"Reject with status {result.status}"
    return "the handler answered something else than Accepted, RetryAfter or Reject"
