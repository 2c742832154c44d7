"""Order among Open Job Spec events: they arrive in any order, and their `time` says which came first (OJS-DLV-17)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

Event = Mapping[str, Any]
E = TypeVar("E", bound=Event)

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def rfc3339_nanoseconds(text: str) -> int | None:
    """The instant of an RFC 3339 time in nanoseconds since 1970; None if it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    try:
        whole = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone.utc)
    except ValueError:
        return None
    offset = timedelta(0)
    if match.group(9):
        offset = timedelta(hours=int(match.group(10)), minutes=int(match.group(11)))
        if match.group(9) == "-":
            offset = -offset
    since = whole - _EPOCH - offset
    seconds = since.days * 86400 + since.seconds + (1 if second == 60 else 0)
    return seconds * 10**9 + int((match.group(7) or "").ljust(9, "0")[:9])


def time_of(event: Event) -> int:
    """A sort key: the instant of `time`, not its text, because RFC 3339 has many spellings of one instant."""
    text = event.get("time")
    instant = rfc3339_nanoseconds(text) if isinstance(text, str) else None
    return -(2**127) if instant is None else instant


def sort_by_time(events: Iterable[E]) -> list[E]:
    """The events by time, oldest first. Events of one instant keep their order."""
    return sorted(events, key=time_of)


class NewestBySubject:
    """Keeps the newest event of each subject, whatever the order of arrival.

    Apply an event only if `takes` says so, and a late job.started never overwrites job.completed.
    """

    def __init__(self) -> None:
        self._newest: dict[str, Event] = {}
        self._lock = threading.Lock()

    def takes(self, event: Event) -> bool:
        subject = str(event.get("subject") or "")
        with self._lock:
            known = self._newest.get(subject)
            if known is not None and time_of(event) <= time_of(known):
                return False
            self._newest[subject] = event
            return True

    def forget(self, subject: str) -> None:
        """Forgets a subject, for example when its job has ended: nothing else bounds the memory."""
        with self._lock:
            self._newest.pop(subject, None)

    def get(self, subject: str) -> Event | None:
        return self._newest.get(subject)
