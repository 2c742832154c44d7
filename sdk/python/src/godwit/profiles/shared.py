"""Secrets as people configure them, and the parts that signature schemes have in common."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Union

from ..crypto.decode import from_hex
from ..crypto.keys import HmacKey, VerifyingKey
from ..errors import DeliveryError, WebhookSignatureError
from .profile import Check, Message

Secrets = Union[str, Sequence[str]]
"""One secret or several: while one is being replaced, both are good."""

_UNIX_SECONDS = re.compile(r"[0-9]{1,15}")
_POSITIVE = re.compile(r"[1-9][0-9]{0,8}")
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")


def secret_list(profile: str, secrets: Secrets) -> list[str]:
    """A receiver without a way to authenticate cannot be made (EDS-KEY-7)."""
    given = [secrets] if isinstance(secrets, str) else list(secrets or ())
    if not given or not all(isinstance(secret, str) and secret for secret in given):
        raise ValueError(f"{profile}: at least one secret is required, and none may be empty")
    return given


def text_keys(profile: str, secrets: Secrets, hash_name: Literal["sha1", "sha256"] = "sha256") -> list[VerifyingKey]:
    """HMAC keys of the secrets' UTF-8 text, prefix included (CCW-SIG-3, OJS-SIG-3)."""
    return [HmacKey(secret.encode(), hash_name) for secret in secret_list(profile, secrets)]


MAX_SIGNATURES = 16
"""How many entries of one header are tried: each costs its share of time, before anything is known of the sender."""


def decoded(signatures: Iterable[bytes | None]) -> list[bytes]:
    """The signatures that could be decoded; the others match nothing."""
    return [signature for signature in signatures if signature is not None]


def hex_macs(header: str, prefix: str) -> list[bytes] | None:
    """The MACs in a comma list whose entries have the prefix; None if no entry has it. What is no hex of a SHA-256 matches
    nothing and is dropped (CCW-SIG-12)."""
    entries = [entry.strip() for entry in header.split(",")]
    known = [entry[len(prefix) :] for entry in entries if entry.startswith(prefix)]
    if not known:
        return None
    return decoded(from_hex(digits) for digits in known if len(digits) == 64)[:MAX_SIGNATURES]


def any_verifies(keys: Iterable[VerifyingKey], message: bytes, signatures: Sequence[bytes]) -> bool:
    """Reports whether a key made one of the signatures. It tries all keys, so that the time reveals nothing."""
    good = False
    for key in keys:
        good |= key.verify_any(message, signatures)
    return good


def wire_bytes(text: str) -> bytes:
    """The bytes of a header's text. Servers decode them as Latin-1; what cannot have come from there matches nothing."""
    return text.encode("latin-1", "replace")


def unix_seconds(value: str | None) -> int:
    """Reads Unix seconds: digits only, so that 12x is not 12 (CCW-SIG-9)."""
    if value is None or not _UNIX_SECONDS.fullmatch(value):
        raise WebhookSignatureError("Invalid timestamp", "malformed-timestamp")
    return int(value)


def check_fresh(signed_at: int, check: Check) -> None:
    """Refuses times that are too old or too far ahead; the limit itself is accepted."""
    if check.tolerance is None:
        return
    if check.now - signed_at > check.tolerance:
        raise WebhookSignatureError("Timestamp outside tolerance", "too-old")
    if signed_at - check.now > check.tolerance:
        raise WebhookSignatureError("Timestamp outside tolerance", "from-future")


def mismatch() -> WebhookSignatureError:
    return WebhookSignatureError("Signature mismatch", "mismatch")


def required(message: Message, name: str) -> str:
    value = message.headers.get(name)
    if not value:
        raise WebhookSignatureError(f"{name} is missing", "missing")
    return value


def json_object(body: bytes) -> dict[str, Any] | None:
    """The body as a JSON object, or None."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def require_object(body: bytes) -> dict[str, Any]:
    value = json_object(body)
    if value is None:
        raise DeliveryError("payload-malformed", "the body is not a JSON object")
    return value


def text_member(value: Mapping[str, Any] | None, name: str) -> str | None:
    """A member that is a non-empty text, else None."""
    member = None if value is None else value.get(name)
    return member if isinstance(member, str) and member else None


def bounded_key(value: str | None, source: str) -> str:
    """A deduplication key must be bounded: it comes from outside and goes into a store."""
    if not value:
        raise DeliveryError("key-missing", f"{source} is missing")
    if not _PRINTABLE.fullmatch(value):
        raise DeliveryError("key-malformed", f"{source} must be 1 to 255 printable ASCII characters")
    return value


def body_key(body: bytes) -> str:
    """The key of deliveries to which the vendor gives no id of its own: the same bytes are the same delivery."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def positive_integer(value: str | None) -> int | None:
    return int(value) if value is not None and _POSITIVE.fullmatch(value) else None
