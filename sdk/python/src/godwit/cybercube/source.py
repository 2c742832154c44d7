"""Source addresses: may a request have come from where deliveries come from? (CCW-HTTP-17)"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Union

SourceDocument = Union[Mapping[str, Any], Iterable[str], str]
"""The document at /.well-known/webhook-ips, its ranges, or its text form."""

_Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


def is_allowed_source(ip: str, document: SourceDocument) -> bool:
    """Says whether an address is in one of the published ranges.

    It is an extra bar, never a replacement for verification; behind a proxy, take the address from what the proxy vouches
    for.
    """
    address = _address(ip)
    return address is not None and any(_contains(text, address) for text in _ranges(document))


def _address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    # An IPv4 address as sockets of IPv6 show it.
    return getattr(address, "ipv4_mapped", None) or address


def _contains(text: str, address: _Address) -> bool:
    try:
        return address in ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False


def _ranges(document: SourceDocument) -> list[str]:
    if isinstance(document, str):
        lines = [line.partition("#")[0].strip() for line in document.splitlines()]
        return [line for line in lines if line]
    listed = document.get("production", []) if isinstance(document, Mapping) else document
    return [text for text in listed if isinstance(text, str)]
