"""Sections 3.4 and 11.2 of the standard: the verify function and the class, with their error texts."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from ..crypto.keys import HmacKey
from ..errors import WebhookSignatureError
from ..profiles.profile import Check
from ..profiles.timestamped import verify_timestamped


class _EventData(TypedDict):
    object: Any


class WebhookEventData(_EventData, total=False):
    previous_attributes: Any


class WebhookEvent(TypedDict):
    id: str
    type: str
    api_version: str
    created_at: str
    data: WebhookEventData
    account_id: str
    livemode: bool


class CybercubeWebhooks:
    """Verifies and parses webhooks. Give it all secrets that are good: the new one and the old."""

    def __init__(self, secret: str | Sequence[str], clock: Callable[[], float] = time.time) -> None:
        secrets = [secret] if isinstance(secret, str) else list(secret or ())
        if not secrets or not all(isinstance(s, str) and s.startswith("whsec_") for s in secrets):
            raise ValueError("Invalid webhook secret format")
        self._keys = [HmacKey(s.encode()) for s in secrets]
        self._clock = clock

    def construct_event(
        self, payload: bytes | str, signature: str | None, timestamp: str | None, tolerance: float = 300
    ) -> WebhookEvent:
        """Verifies the raw body and parses it.

        Raises a WebhookSignatureError if it is not authentic, and a ValueError if it is not JSON.
        """
        body = payload.encode() if isinstance(payload, str) else bytes(payload)
        verify_timestamped(
            self._keys, body, signature, timestamp, Check(int(self._clock()), tolerance), strict_prefix=True
        )
        return cast(WebhookEvent, json.loads(body))


@dataclass(frozen=True)
class VerificationResult:
    valid: bool
    error: str | None = None


def verify_webhook_signature(
    payload: bytes | str,
    signature: str | None,
    timestamp: str | None,
    secret: str | Sequence[str],
    tolerance: float = 300,
    clock: Callable[[], float] = time.time,
) -> VerificationResult:
    """The verify function (CCW-SIG-7). The secret may be several."""
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    keys = [HmacKey(s.encode()) for s in ([secret] if isinstance(secret, str) else secret)]
    try:
        verify_timestamped(keys, body, signature, timestamp, Check(int(clock()), tolerance), strict_prefix=True)
    except WebhookSignatureError as error:
        outside = error.reason in ("too-old", "from-future")
        return VerificationResult(False, "Timestamp outside tolerance window" if outside else error.message)
    return VerificationResult(True)


def sign_webhook(payload: bytes | str, secret: str, timestamp: int) -> str:
    """`sha256=<hex>` over `<timestamp>.<payload>` (CCW-SIG-16): for tests of your own receiver."""
    body = payload.encode() if isinstance(payload, str) else bytes(payload)
    return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
