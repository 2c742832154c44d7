"""The idempotent processor of section 6.2: look up, lock, handle, mark; on an error release the lock, so that a retry can
process the event."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, Protocol, Union

from ..errors import DeliveryError
from ..profiles.profile import DAY, Answer, json_answer
from ..stores.store import LeaseLostError
from .webhooks import WebhookEvent


@dataclass(frozen=True)
class ProcessedEvent:
    event_id: str
    processed_at: datetime
    result: str


@dataclass(frozen=True)
class Duplicate:
    original: ProcessedEvent
    status: Literal["duplicate"] = "duplicate"


@dataclass(frozen=True)
class Concurrent:
    message: str
    status: Literal["concurrent"] = "concurrent"


@dataclass(frozen=True)
class Processed:
    result: str
    status: Literal["processed"] = "processed"


ProcessingResult = Union[Duplicate, Concurrent, Processed]


class ProcessedEvents(Protocol):
    """Where processed events are remembered. Every method is one atomic step, good across processes (CCW-IDM-7)."""

    def get(self, event_id: str) -> ProcessedEvent | None: ...

    def lock(self, event_id: str, event_type: str, now: datetime, expired_before: datetime) -> str | None:
        """Takes the lock; None if another holder has it or the event is processed. The token identifies the holder."""
        ...

    def mark_processed(self, event_id: str, token: str, result: str, now: datetime) -> bool:
        """Keeps the result. False, and nothing is kept, if the holder has lost the lock."""
        ...

    def release_lock(self, event_id: str, token: str) -> None: ...

    def cleanup(self, before: datetime) -> int:
        """Drops events received before a time; returns how many."""
        ...


EventHandler = Callable[[Any, WebhookEvent], str | None]
"""Handles the `data.object` of one type of event; what it answers is kept as the result."""


class WebhookProcessor:
    def __init__(
        self,
        events: ProcessedEvents,
        handlers: Mapping[str, EventHandler],
        *,
        lock_seconds: float = 300,
        retention: float = 30 * DAY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        handlers: by type of event. Other types are acknowledged with the result `unhandled` (CCW-IDM-12).
        lock_seconds: how long a lock holds. Defaults to 300 (CCW-IDM-6).
        retention: how long events are remembered, in seconds. Defaults to 30 days; the floor is 7 (CCW-IDM-9).
        """
        if retention < 7 * DAY:
            raise ValueError("events must be remembered for 7 days at least")
        self._events = events
        self._handlers = dict(handlers)
        self._lock_for = timedelta(seconds=lock_seconds)
        self._retention = timedelta(seconds=retention)
        self._clock = clock

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), timezone.utc)

    def process(self, event: WebhookEvent) -> ProcessingResult:
        """Processes an event once. An exception of the handler is raised again after the lock is released. A
        LeaseLostError says that the handler took so long that another process may have processed the event as well;
        a DeliveryError, which is answered 400, that the event has no id."""
        event_id = event.get("id")
        if not isinstance(event_id, str) or not event_id:  # such events could not be told apart
            raise DeliveryError("key-missing", "Event has no id")
        original = self._events.get(event_id)
        if original is not None:
            return Duplicate(original)
        now = self._now()
        token = self._events.lock(event_id, event["type"], now, now - self._lock_for)
        if token is None:
            return self._contended(event_id)
        try:
            result = self._handle(event)
        except BaseException:
            self._release(event_id, token)
            raise
        if not self._events.mark_processed(event_id, token, result, self._now()):
            raise LeaseLostError("the lock was lost while the event was handled")
        return Processed(result)

    def _contended(self, event_id: str) -> ProcessingResult:
        """Another process has it, or has just finished it."""
        original = self._events.get(event_id)
        return Concurrent("Event being processed") if original is None else Duplicate(original)

    def _release(self, event_id: str, token: str) -> None:
        try:
            self._events.release_lock(event_id, token)
        except Exception:
            pass  # it ends by itself, and the handler's own failure is the one to tell

    def _handle(self, event: WebhookEvent) -> str:
        handler = self._handlers.get(event["type"])
        if handler is None:
            return "unhandled"
        result = handler(event["data"]["object"], event)
        return "ok" if result is None else result

    def cleanup(self) -> int:
        """Drops events older than the retention; returns how many."""
        return self._events.cleanup(self._now() - self._retention)


def processing_answer(event: WebhookEvent, result: ProcessingResult) -> Answer:
    """The response: 200 for a processed event; 503 for one that is being processed, so that the sender retries."""
    if isinstance(result, Concurrent):
        return json_answer(503, {"error": result.message}, {"retry-after": "1"})
    return json_answer(200, {"received": True, "event_id": event["id"]})
