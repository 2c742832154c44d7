"""The signature of OJS and CYBERCUBE: `sha256=<hex>` of `<timestamp>.<raw body>`, several separated by commas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..crypto.keys import VerifyingKey
from ..errors import WebhookSignatureError
from .profile import Authentication, Check, Message
from .shared import any_verifies, check_fresh, hex_macs, mismatch, unix_seconds

_SCHEME = "sha256="


@dataclass(frozen=True)
class TimestampedScheme:
    signature_field: str
    timestamp_field: str
    principal: str
    keys: Sequence[VerifyingKey]
    strict_prefix: bool
    """Whether the first entry has to be sha256= (CCW-SIG-8); else other schemes are passed over (OJS-ROT-5)."""

    def authenticate(self, message: Message, check: Check) -> Authentication:
        timestamp = message.headers.get(self.timestamp_field)
        signature = message.headers.get(self.signature_field)
        signed_at = verify_timestamped(self.keys, message.body, signature, timestamp, check, self.strict_prefix)
        return Authentication(self.principal, signed_at=signed_at, proof=timestamp)


def verify_timestamped(
    keys: Sequence[VerifyingKey],
    body: bytes,
    signature: str | None,
    timestamp: str | None,
    check: Check,
    strict_prefix: bool,
) -> int:
    """The order of checks is the standard's: format, time, tolerance, MAC (CCW-SIG-14). Answers the signed time."""
    macs = _read_macs(signature or "", strict_prefix)
    signed_at = unix_seconds(timestamp)
    check_fresh(signed_at, check)
    if not any_verifies(keys, f"{timestamp}.".encode() + body, macs):
        raise mismatch()
    return signed_at


def _read_macs(header: str, strict_prefix: bool) -> list[bytes]:
    macs = hex_macs(header, _SCHEME)
    if macs is None or (strict_prefix and not header.lstrip().startswith(_SCHEME)):
        raise WebhookSignatureError("Invalid signature format", "malformed" if header else "missing")
    return macs
