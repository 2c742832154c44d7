"""PayPal's offline scheme: RSA with SHA-256 over `<transmission id>|<transmission time>|<webhook id>|<CRC-32 of the body>`.

The certificate is given by you, pinned or by a function; it is never fetched from the address that the request names.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import ClassVar, Union

from ..crypto.decode import from_base64
from ..crypto.rsa import RsaPublicKey, rsa_key
from ..errors import WebhookSignatureError
from ..idempotency import KeyPolicy
from ..ordering import rfc3339_nanoseconds
from .profile import Authentication, Check, Identity, Message, Profile
from .shared import (
    any_verifies,
    bounded_key,
    check_fresh,
    decoded,
    mismatch,
    require_object,
    required,
    text_member,
    wire_bytes,
)

CertificateSource = Union[str, Sequence[str], Callable[[str], str | None]]
"""PEM of the certificate (or public key) that signs, or several, while one is being replaced; or a function that knows it
by its address, whose host has been checked to be PayPal's."""

_CERTIFICATE_URL = re.compile(r"https://([A-Za-z0-9.-]+)(?::443)?/[^\s#]*")
_MAX_CACHED = 16


class PayPal(Profile):
    name: ClassVar[str] = "paypal"
    signs_time: ClassVar[bool] = True
    key_source: ClassVar[str] = "the member id of the event"

    def __init__(self, *, webhook_id: str, certificate: CertificateSource, principal: str = "paypal") -> None:
        """`webhook_id`: the id of the webhook in PayPal's dashboard: it is signed, but not sent."""
        if not webhook_id:
            raise ValueError("paypal: webhook_id is required")
        if not certificate:
            raise ValueError("paypal: a certificate is required")
        self._webhook_id = webhook_id
        self._principal = principal
        self._find = certificate if callable(certificate) else None
        pinned = [certificate] if isinstance(certificate, str) else [] if callable(certificate) else certificate
        self._pinned = [rsa_key(pem) for pem in pinned]
        self._cache: dict[str, RsaPublicKey] = {}

    def _keys_for(self, url: str) -> list[RsaPublicKey]:
        if self._find is None:
            return self._pinned
        pem = self._find(url)
        if pem is None:
            raise WebhookSignatureError("the certificate is not known", "unknown-key")
        key = self._cache.get(pem) or rsa_key(pem)
        if len(self._cache) < _MAX_CACHED:
            self._cache[pem] = key
        return [key]

    def authenticate(self, message: Message, check: Check) -> Authentication:
        transmission = required(message, "paypal-transmission-id")
        time = required(message, "paypal-transmission-time")
        signature = from_base64(required(message, "paypal-transmission-sig"))
        if required(message, "paypal-auth-algo").upper() != "SHA256WITHRSA":
            raise WebhookSignatureError("the algorithm is not SHA256withRSA", "algorithm-mismatch")
        address = _certificate_url(required(message, "paypal-cert-url"))
        instant = rfc3339_nanoseconds(time)
        if instant is None:
            raise WebhookSignatureError("Invalid timestamp", "malformed-timestamp")
        signed_at = instant // 10**9
        check_fresh(signed_at, check)
        signed = f"{transmission}|{time}|{self._webhook_id}|{zlib.crc32(message.body)}"
        if not any_verifies(self._keys_for(address), wire_bytes(signed), decoded([signature])):
            raise mismatch()
        return Authentication(self._principal, signed_at=signed_at, proof=f"{transmission} {time}")

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        event = require_object(message.body)
        key = bounded_key(text_member(event, "id"), "the event's id")
        return Identity(key, key, text_member(event, "event_type") or "")


def _certificate_url(value: str) -> str:
    """The certificate has to be one of PayPal's, over TLS: a function that fetches it must not be led elsewhere."""
    match = _CERTIFICATE_URL.fullmatch(value)
    host = "" if match is None else match.group(1).lower()
    if host != "paypal.com" and not host.endswith(".paypal.com"):
        raise WebhookSignatureError("the certificate is not at paypal.com", "unknown-key")
    return value
