"""Ids as the dialects render them: one event has the same 128 bits in each."""

from __future__ import annotations

import hashlib
import re
import uuid

_CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_BASE32_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PUBLIC_ID = re.compile(r"([A-Z]{3})-([A-HJ-NP-Z2-9]{6})-([A-HJ-NP-Z2-9])")
_UUID_ID = re.compile(r"evt_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BASE32_ID = re.compile(r"evt_([0-7][0-9A-HJKMNP-TV-Z]{25})")


def is_public_id(text: str) -> bool:
    """Says whether a public id such as WEB-X2M8KD-Z has the right check character (CCW-API-4)."""
    match = _PUBLIC_ID.fullmatch(text.strip().upper())
    if match is None:
        return False
    entity, code, check = match.groups()
    return _CODE_ALPHABET[hashlib.sha256(f"{entity}|{code}".encode()).digest()[0] % 32] == check


def event_id_to_uuid(event_id: str) -> str | None:
    """`evt_` and base32, as CYBERCUBE has it, to `evt_` and UUID, as the others have it; None if it is neither."""
    if _UUID_ID.fullmatch(event_id):
        return event_id
    match = _BASE32_ID.fullmatch(event_id)
    if match is None:
        return None
    value = 0
    for character in match.group(1):
        value = value << 5 | _BASE32_ALPHABET.index(character)
    return f"evt_{uuid.UUID(int=value)}"


def event_id_to_base32(event_id: str) -> str | None:
    """The other way."""
    as_uuid = event_id_to_uuid(event_id)
    if as_uuid is None:
        return None
    value = uuid.UUID(as_uuid[4:]).int
    return "evt_" + "".join(_BASE32_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))
