"""The store of a receiver. It serves all its processes; every method is one atomic step and may be called by any thread.

Times are seconds since 1970 on the receiver's clock.

    reserve --> reserved (this caller holds the key until the lease ends)
      |            |- complete: the outcome is kept for the window, and every repeat gets it
      |            |- release:  the key is free, a repeat is a first request
      |            `- neither (the holder died): free when the lease ends
      |--> in-progress (another caller holds it)
      `--> completed (with the outcome)
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable


@dataclass(frozen=True)
class Outcome:
    """An answer that is given again to every repeat."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True)
class Reservation:
    state: Literal["reserved", "in-progress", "completed"]
    fingerprint: str = ""
    """That of the first request. "" if payloads are not compared."""
    outcome: Outcome | None = None
    """The answer, once the delivery is completed."""


RESERVED = Reservation("reserved")


class Store(Protocol):
    def reserve(self, scope: str, fingerprint: str, token: str, now: float, lease_until: float) -> Reservation:
        """Takes the key for the holder that `token` proves, if it is new or has expired.

        `scope` is the digest of principal, URI and key, `fingerprint` that of the payload.
        """
        ...

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        """Keeps the outcome until `expires_at`. False if this holder has lost the key meanwhile; then nothing is kept."""
        ...

    def release(self, scope: str, token: str) -> None:
        """Frees the key, if this holder still has it."""
        ...

    def remember(self, value: str, until: float, now: float) -> bool:
        """Remembers a value until a time. True if it was new, False if it is remembered already."""
        ...

    def purge(self, now: float, limit: int) -> int:
        """Drops at most `limit` expired entries; returns how many. Stores that expire entries by themselves return 0."""
        ...


class LeaseLostError(Exception):
    """A result cannot be kept: the lease had ended, and the key is no longer the holder's."""


class StoreTransaction(Protocol):
    @property
    def handle(self) -> Any:
        """The transaction that a handler writes with."""
        ...

    def complete(
        self, scope: str, fingerprint: str, token: str, outcome: Outcome, now: float, expires_at: float
    ) -> bool:
        """As of the store; it counts at the end of the transaction."""
        ...


@runtime_checkable
class Transactor(Protocol):
    """A store that can commit a handler's effect together with the completion of its key."""

    def begin(self, scope: str, token: str, limit: float | None = None) -> AbstractContextManager[StoreTransaction]:
        """A transaction for a holder. It is committed at the end of the block if the key was completed in it, and leaves
        no trace otherwise. Raises a LeaseLostError if the key is known to be no longer the holder's. Where it keeps
        others from writing, it is undone when it has lasted for `limit` seconds, although the block goes on."""
        ...
