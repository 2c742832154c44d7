"""The idempotency key: its syntax, its scope, and the fingerprint of its payload."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import DeliveryError
from .httpsig.structured import InnerList, StructuredFieldError, parse_item, parse_list

_BARE = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~:/=@]+")


@dataclass(frozen=True)
class KeyPolicy:
    """The published format of Idempotency-Key. Defaults to 16 to 255 printable ASCII characters, quoted (IKH K-3)."""

    min_length: int = 16
    max_length: int = 255
    lenient: bool = False
    """Take a key without quotes as well. It compares equal to its quoted form (EDS T-1)."""


def parse_key(lines: Sequence[str], policy: KeyPolicy) -> str:
    """Reads Idempotency-Key: one field line that holds one String (RFC 9651). Parameters are ignored (IKH K-2)."""
    if not lines:
        raise DeliveryError("key-missing", "Idempotency-Key is required")
    if len(lines) > 1:
        raise DeliveryError("key-malformed", "Idempotency-Key must occur once")
    key = _read(lines[0], policy.lenient)
    if not policy.min_length <= len(key) <= policy.max_length:
        bounds = f"{policy.min_length} to {policy.max_length}"
        raise DeliveryError("key-length", f"Idempotency-Key must have {bounds} characters")
    return key


def _read(line: str, lenient: bool) -> str:
    if lenient and _BARE.fullmatch(line):
        return line
    wanted = "Idempotency-Key must be a string in double quotes"
    try:
        value = parse_item([line]).value
    except StructuredFieldError as error:
        raise DeliveryError("key-malformed", f"{wanted}: {_explain(line, error)}") from None
    if not isinstance(value, str):
        raise DeliveryError("key-malformed", wanted)
    return value


def _explain(line: str, error: StructuredFieldError) -> str:
    try:
        members = parse_list([line])
    except StructuredFieldError:
        return str(error)
    several = len(members) > 1 and not any(isinstance(m, InnerList) for m in members)
    return "it has several values" if several else str(error)


def scope_of(principal: str, uri: str, key: str) -> str:
    """The id under which a delivery is remembered.

    It is a digest over principal, URI and key, each with its length before it, so that no two different triples run
    together (EDS-KEY-5, IKH-SEC-6) and no text of a sender reaches a store.
    """
    return digest_of(principal.encode(), uri.encode(), key.encode())


def fingerprint_of(content_type: str, body: bytes) -> str:
    """SHA-256 of media type and body: what a sender may not change under one key."""
    return digest_of(content_type.partition(";")[0].strip().lower().encode(), body)


def digest_of(*parts: bytes) -> str:
    """SHA-256 over the parts, each with its length before it: no two different lists run together."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
