"""CYBERCUBE webhooks. They are deduplicated by the event's id, whichever attempt brings it (CCW-IDM-2)."""

from __future__ import annotations

from typing import ClassVar

from ..idempotency import KeyPolicy
from .profile import DAY, Answer, Authentication, Check, Identity, Message, Profile, json_answer
from .shared import Secrets, bounded_key, positive_integer, require_object, text_keys, text_member
from .timestamped import TimestampedScheme


class Cybercube(Profile):
    name: ClassVar[str] = "cybercube"
    signs_time: ClassVar[bool] = True
    always_dedup: ClassVar[bool] = True
    window_floor: ClassVar[int] = 7 * DAY
    lease: ClassVar[float] = 300  # the lock of CCW-IDM-6
    key_source: ClassVar[str] = "the member id of the event"

    def __init__(self, secrets: Secrets, *, principal: str = "cybercube") -> None:
        """`secrets`: all that are good. `principal`: who sends here; deduplication is per principal."""
        keys = text_keys(self.name, secrets)
        self._scheme = TimestampedScheme(
            "x-webhook-signature", "x-webhook-timestamp", principal, keys, strict_prefix=True
        )

    def authenticate(self, message: Message, check: Check) -> Authentication:
        return self._scheme.authenticate(message, check)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        event = require_object(message.body)
        key = bounded_key(text_member(event, "id"), "the event's id")
        return Identity(
            key,
            key,
            text_member(event, "type") or "",
            delivery_id=message.headers.get("x-webhook-id"),
            attempt=positive_integer(message.headers.get("x-webhook-delivery-attempt")),
        )

    def success(self, identity: Identity) -> Answer:
        return json_answer(200, {"received": True, "event_id": identity.event_id})
