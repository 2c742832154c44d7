"""Content-Digest (RFC 9530)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Sequence

from ..crypto.decode import to_base64
from ..errors import WebhookSignatureError
from .structured import Item, parse_dictionary

_ALGORITHMS = {"sha-256": "sha256", "sha-512": "sha512"}


def content_digest(body: bytes) -> str:
    """The value of Content-Digest for a body."""
    return f"sha-256=:{to_base64(hashlib.sha256(body).digest())}:"


def verify_content_digest(lines: Sequence[str], body: bytes, only: Collection[str] | None = None) -> None:
    """Checks Content-Digest against the body.

    Of the digests in the field those with sha-256 or sha-512 have to match, and one of the two has to be there; the
    others are broken or checksums and count for nothing. With `only`, just the members named there count: a signature
    may cover single members.
    """
    known = 0
    for name, member in parse_dictionary(lines).items():
        algorithm = _ALGORITHMS.get(name)
        if algorithm is None or (only is not None and name not in only):
            continue
        if not isinstance(member, Item) or not isinstance(member.value, bytes):
            raise WebhookSignatureError(f"Content-Digest: {name} is not a byte sequence", "malformed")
        if not hmac.compare_digest(member.value, hashlib.new(algorithm, body).digest()):
            raise WebhookSignatureError(f"Content-Digest: {name} differs from the body's", "digest-mismatch")
        known += 1
    if known == 0:
        raise WebhookSignatureError("Content-Digest has no sha-256 or sha-512", "digest-mismatch")
