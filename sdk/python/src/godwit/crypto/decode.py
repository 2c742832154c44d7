"""Strict decoders. They return None for malformed input and never raise."""

from __future__ import annotations

import base64
import binascii
import re

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")


def from_hex(digits: str) -> bytes | None:
    return bytes.fromhex(digits) if _HEX.fullmatch(digits) else None


def from_base64(encoded: str) -> bytes | None:
    """Decodes base64 with or without padding, of either alphabet."""
    bare = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    if not _BASE64.fullmatch(bare) or len(bare) % 4 == 1:
        return None
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4))
    except (binascii.Error, ValueError):
        return None


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
