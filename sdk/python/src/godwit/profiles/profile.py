"""The interface between a receiver and a dialect."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..headers import Headers
from ..idempotency import KeyPolicy

DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Message:
    """A request as it arrived."""

    method: str
    url: str
    """The address as the sender used it."""
    headers: Headers
    body: bytes = field(repr=False)
    """The raw bytes, before any decoding."""


@dataclass(frozen=True)
class Check:
    now: int
    """The receiver's clock in Unix seconds."""
    tolerance: float | None
    """Largest age and lead of a signed time in seconds; None: freshness is not checked."""


@dataclass(frozen=True)
class Authentication:
    """The result of a verification."""

    principal: str
    """The authenticated producer: configured, never taken from the request (EDS-KEY-6)."""
    signed_at: int | None = None
    """The signed time in Unix seconds, where the scheme has one."""
    nonce: str | None = None
    """A value that occurs in one attempt only and is refused when it is seen again."""
    proof: str | None = None
    """With the body, it distinguishes one attempt from another. It replaces a nonce where deduplication is off."""
    covered: frozenset[str] = frozenset()
    """Names of header fields that the signature covers."""


@dataclass(frozen=True)
class Identity:
    """The contents of a delivery."""

    key: str
    """The deduplication key: duplicates have the same."""
    event_id: str
    """The event's id, in the sender's form."""
    event_type: str = ""
    delivery_id: str | None = None
    attempt: int | None = None
    """1 for the first, where the sender tells."""


@dataclass(frozen=True)
class Answer:
    """The response to the sender. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def json_answer(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Answer:
    body = json.dumps(value, separators=(",", ":")).encode()
    return Answer(status, {"content-type": "application/json", **(headers or {})}, body)


NOT_FOUND = json_answer(404, {"error": "Not found"})
"""The answer of an application that serves one path, at any other."""


class Profile(ABC):
    name: ClassVar[str]
    methods: tuple[str, ...] = ("POST",)
    signs_time: ClassVar[bool]
    """Whether a time is signed, so that freshness can be checked."""
    signs_target: bool = False
    """Whether the address is signed. If it is not, an attacker who repeats a captured request can choose host and
    query."""
    always_dedup: ClassVar[bool] = False
    """Whether deduplication cannot be turned off (CT-32)."""
    window_floor: ClassVar[int] = DAY
    """The shortest deduplication window in seconds that needs no agreement."""
    lease: ClassVar[float] = 60
    """How long a holder may take before its key is free again, in seconds."""
    fingerprint: ClassVar[bool] = True
    """Whether a repeat is compared with the first body by default."""
    problems: ClassVar[bool] = False
    """Whether errors are problem details; else they are {"error": …}."""
    key_source: ClassVar[str]
    """Where the key comes from, for people."""

    @abstractmethod
    def authenticate(self, message: Message, check: Check) -> Authentication:
        """Verifies, or raises a WebhookSignatureError."""

    @abstractmethod
    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        """Reads the identity of an authenticated message, or raises a DeliveryError."""

    def success(self, identity: Identity) -> Answer:
        """The answer to an accepted delivery when the handler does not say otherwise."""
        return Answer(200)

    def handshake(self, message: Message) -> Answer | None:
        """Answers an authenticated handshake that is no event."""
        return None
