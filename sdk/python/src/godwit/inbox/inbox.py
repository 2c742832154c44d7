"""The inbox. A delivery is in it before its sender gets a 2xx, and leaves it when a worker has dealt with it.

    enqueue -> waiting -> claimed (leased by a worker) --> done
                  ^                                    |-> dead: refused by the handler, or out of attempts
                  `---- later: failed, or lease over <-'

A job's id is the digest of principal, endpoint and key under which its delivery is remembered, so enqueueing twice (a
crash between inbox and acknowledgement) makes one job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..httpsig.target import split_uri
from ..idempotency import scope_of
from ..profiles.shared import json_object
from ..receiver.delivery import Delivery, timestamp

JOB_NAME = "process-webhook"


@dataclass(frozen=True)
class InboxJob:
    id: str
    event_id: str
    event_type: str
    payload: Any = field(repr=False)
    """The payload as JSON, where it is an object; else its bytes in base64."""
    received_at: str
    delivery: Mapping[str, Any] = field(repr=False)
    """The whole delivery, from which a worker makes it again. Its body is in base64, whatever bytes it has."""
    name: str = JOB_NAME
    replaces: float = field(default=0, compare=False)
    """The beginning of the deduplication window: a job of the same id that ended before it was of another event."""

    @property
    def data(self) -> dict[str, Any]:
        """The message of a job in a queue. CYBERCUBE defines its four members (CCW-RCV-7)."""
        return {
            "event_id": self.event_id,
            "event_type": self.event_type,
            "payload": self.payload,
            "received_at": self.received_at,
        }


@dataclass(frozen=True)
class ClaimedJob:
    job: InboxJob
    attempt: int
    """1 for the first."""
    token: str
    """Token that proves which worker holds the job."""


class Enqueues(Protocol):
    def enqueue(self, job: InboxJob) -> None:
        """Keeps a job durably; returns when it is safe, raises if it is not. A job that is known already is left as it is,
        unless it ended before `replaces`."""
        ...


class Inbox(Enqueues, Protocol):
    """Times are seconds since 1970. Every method is one atomic step and may be called by any thread. Those that end a
    worker's hold on a job answer False, and change nothing, if it no longer has the job."""

    def claim(self, limit: int, lease_until: float, now: float) -> list[ClaimedJob]:
        """Leases up to `limit` jobs that are due, the one that has been for longest first. A new one is due when it was
        received."""
        ...

    def done(self, claimed: ClaimedJob, now: float) -> bool:
        """Marks a job done. It stays known until it is purged."""
        ...

    def later(self, claimed: ClaimedJob, due_at: float, reason: str, interrupted: bool = False) -> bool:
        """Puts a job back until a time. If the worker was stopped, that costs no attempt."""
        ...

    def dead(self, claimed: ClaimedJob, reason: str, now: float) -> bool:
        """Gives a job up. It stays, with the reason, for people to look at."""
        ...

    def purge(self, before: float, limit: int = 1000) -> int:
        """Drops at most `limit` jobs that were done before a time; returns how many."""
        ...


class JobTransaction(Protocol):
    @property
    def handle(self) -> Any:
        """The transaction that a handler writes with."""
        ...

    def done(self, now: float) -> bool:
        """Marks the job done; it counts at the end of the transaction."""
        ...


@runtime_checkable
class JobTransactor(Protocol):
    """An inbox that can commit a handler's effect together with the end of its job."""

    def begin(self, claimed: ClaimedJob, limit: float | None = None) -> AbstractContextManager[JobTransaction]:
        """A transaction for a worker. It is committed at the end of the block if the job was done in it, and leaves no
        trace otherwise. Raises a LeaseLostError if the job is known to be no longer the worker's. Where it keeps others
        from writing, it is undone when it has lasted for `limit` seconds, although the block goes on."""
        ...


class QueueInbox:
    """An inbox in a queue of yours, such as Celery's or RQ's: `push(name, data, job)` must raise if the job is not safe."""

    def __init__(self, push: Callable[[str, dict[str, Any], InboxJob], object]) -> None:
        self._push = push

    def enqueue(self, job: InboxJob) -> None:
        self._push(job.name, job.data, job)


def inbox_job(delivery: Delivery, scope: str | None = None, *, replaces: float = 0) -> InboxJob:
    """`scope`: the id under which a receiver remembers the delivery. Defaults to that of the whole address."""
    stored = delivery.stored()
    payload = json_object(delivery.body)
    return InboxJob(
        id=scope or scope_of(delivery.principal, split_uri(delivery.url).normalized, delivery.key),
        event_id=delivery.event_id,
        event_type=delivery.event_type,
        payload=stored["body"] if payload is None else payload,
        received_at=timestamp(delivery.received_at),
        delivery=stored,
        replaces=replaces,
    )
