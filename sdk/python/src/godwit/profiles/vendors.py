"""Vendors whose scheme is a shared secret: GitHub, Stripe, Shopify, Slack.

Their documentation as of 2026 is the source; it wins where it has changed since. GitHub and Shopify sign no time, and
the header that identifies a delivery is not signed either: deduplication is the only defence against a replay, and only
against one that changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

from ..crypto.decode import from_base64
from ..errors import WebhookSignatureError
from ..idempotency import KeyPolicy
from .profile import Answer, Authentication, Check, Identity, Message, Profile
from .shared import (
    Secrets,
    any_verifies,
    body_key,
    bounded_key,
    check_fresh,
    decoded,
    hex_macs,
    json_object,
    mismatch,
    positive_integer,
    require_object,
    required,
    text_keys,
    text_member,
    unix_seconds,
)


class GitHub(Profile):
    """`X-Hub-Signature-256: sha256=<hex>` over the body; the delivery's GUID is the key."""

    name: ClassVar[str] = "github"
    signs_time: ClassVar[bool] = False
    key_source: ClassVar[str] = "the header X-GitHub-Delivery"

    def __init__(self, secrets: Secrets, *, principal: str = "github") -> None:
        self._keys = text_keys(self.name, secrets)
        self._principal = principal

    def authenticate(self, message: Message, check: Check) -> Authentication:
        header = required(message, "x-hub-signature-256")
        if not header.startswith("sha256="):
            raise WebhookSignatureError("Invalid signature format", "malformed")
        if not any_verifies(self._keys, message.body, hex_macs(header, "sha256=") or []):
            raise mismatch()
        return Authentication(self._principal)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        key = bounded_key(message.headers.get("x-github-delivery"), "X-GitHub-Delivery")
        return Identity(key, key, message.headers.get("x-github-event") or "", delivery_id=key)


class Stripe(Profile):
    """`Stripe-Signature: t=<time>,v1=<hex>[,v1=…]` over `<t>.<body>`.

    The same event may be sent again with another count of pending_webhooks in it, so bodies are not compared.
    """

    name: ClassVar[str] = "stripe"
    signs_time: ClassVar[bool] = True
    fingerprint: ClassVar[bool] = False
    key_source: ClassVar[str] = "the member id of the event"

    def __init__(self, secrets: Secrets, *, principal: str = "stripe") -> None:
        self._keys = text_keys(self.name, secrets)
        self._principal = principal

    def authenticate(self, message: Message, check: Check) -> Authentication:
        header = required(message, "stripe-signature")
        pairs = [pair.strip().partition("=") for pair in header.split(",")]
        timestamp = next((value for name, _, value in pairs if name == "t"), None)
        signed_at = unix_seconds(timestamp)
        check_fresh(signed_at, check)
        macs = hex_macs(header, "v1=") or []
        if not any_verifies(self._keys, f"{timestamp}.".encode() + message.body, macs):
            raise mismatch()
        return Authentication(self._principal, signed_at=signed_at, proof=timestamp)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        event = require_object(message.body)
        key = bounded_key(text_member(event, "id"), "the event's id")
        return Identity(key, key, text_member(event, "type") or "")


class Shopify(Profile):
    """`X-Shopify-Hmac-Sha256` is base64 over the body; the event's id is the key, else the webhook's."""

    name: ClassVar[str] = "shopify"
    signs_time: ClassVar[bool] = False
    key_source: ClassVar[str] = "the header X-Shopify-Event-Id, else X-Shopify-Webhook-Id"

    def __init__(self, secrets: Secrets, *, principal: str = "shopify") -> None:
        self._keys = text_keys(self.name, secrets)
        self._principal = principal

    def authenticate(self, message: Message, check: Check) -> Authentication:
        mac = from_base64(required(message, "x-shopify-hmac-sha256"))
        if not any_verifies(self._keys, message.body, decoded([mac])):
            raise mismatch()
        return Authentication(self._principal)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        delivery_id = message.headers.get("x-shopify-webhook-id")
        key = bounded_key(message.headers.get("x-shopify-event-id") or delivery_id, "X-Shopify-Event-Id")
        return Identity(key, key, message.headers.get("x-shopify-topic") or "", delivery_id=delivery_id)


class Slack(Profile):
    """`X-Slack-Signature: v0=<hex>` over `v0:<time>:<body>`. Its challenge is answered once it has proved itself."""

    name: ClassVar[str] = "slack"
    signs_time: ClassVar[bool] = True
    key_source: ClassVar[str] = "the member event_id; the digest of the body where there is none"

    def __init__(self, secrets: Secrets, *, principal: str = "slack") -> None:
        self._keys = text_keys(self.name, secrets)
        self._principal = principal

    def authenticate(self, message: Message, check: Check) -> Authentication:
        header = required(message, "x-slack-signature")
        if not header.startswith("v0="):
            raise WebhookSignatureError("Invalid signature format", "malformed")
        timestamp = message.headers.get("x-slack-request-timestamp")
        signed_at = unix_seconds(timestamp)
        check_fresh(signed_at, check)
        if not any_verifies(self._keys, f"v0:{timestamp}:".encode() + message.body, hex_macs(header, "v0=") or []):
            raise mismatch()
        return Authentication(self._principal, signed_at=signed_at, proof=timestamp)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        envelope = json_object(message.body)
        inner = envelope.get("event") if envelope is not None else None
        event = inner if isinstance(inner, dict) else None
        key = bounded_key(text_member(envelope, "event_id") or body_key(message.body), "event_id")
        event_type = text_member(event, "type") or text_member(envelope, "type") or ""
        retries = positive_integer(message.headers.get("x-slack-retry-num")) or 0
        return Identity(key, key, event_type, attempt=retries + 1)

    def handshake(self, message: Message) -> Answer | None:
        envelope = json_object(message.body)
        challenge = text_member(envelope, "challenge")
        if challenge is None or text_member(envelope, "type") != "url_verification":
            return None
        return Answer(200, {"content-type": "text/plain; charset=utf-8"}, challenge.encode())
