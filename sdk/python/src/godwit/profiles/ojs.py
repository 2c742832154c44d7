"""The Open Job Spec's webhook deliveries. They are deduplicated by delivery id (OJS-DLV-20)."""

from __future__ import annotations

from typing import ClassVar

from ..idempotency import KeyPolicy
from .profile import Answer, Authentication, Check, Identity, Message, Profile, json_answer
from .shared import Secrets, bounded_key, json_object, text_keys, text_member
from .timestamped import TimestampedScheme


class Ojs(Profile):
    name: ClassVar[str] = "ojs"
    signs_time: ClassVar[bool] = True
    always_dedup: ClassVar[bool] = True
    key_source: ClassVar[str] = "the header X-OJS-Delivery-ID"

    def __init__(self, secrets: Secrets, *, principal: str = "ojs") -> None:
        """`secrets`: all that are good. `principal`: who sends here; deduplication is per principal."""
        keys = text_keys(self.name, secrets)
        self._scheme = TimestampedScheme("x-ojs-signature", "x-ojs-timestamp", principal, keys, strict_prefix=False)

    def authenticate(self, message: Message, check: Check) -> Authentication:
        return self._scheme.authenticate(message, check)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        key = bounded_key(message.headers.get("x-ojs-delivery-id"), "X-OJS-Delivery-ID")
        event = json_object(message.body)
        return Identity(key, text_member(event, "id") or key, text_member(event, "type") or "", delivery_id=key)

    def success(self, identity: Identity) -> Answer:
        return json_answer(200, {"received": True})
