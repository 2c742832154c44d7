"""The target URI of a request, split and put together without decoding anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from ..errors import WebhookSignatureError

PATH_CHARACTERS = "/:@!$&'()*+,;=~-._"
"""Characters that RFC 3986 allows in a path without escaping."""
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,;=:.\[\]_~-]+")
_URI = re.compile(r"(https?)://([^/?#@\s]+)([^?#\s]*)(?:\?([^#\s]*))?(?:#.*)?", re.IGNORECASE)


@dataclass(frozen=True)
class TargetUri:
    scheme: str
    host: str
    path: str
    query: str | None
    """Without the question mark; None if there is none."""

    @property
    def path_and_query(self) -> str:
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def usual_path(self) -> str:
        """The path in the one spelling that all of its spellings share: servers decode it before they route by it."""
        wide = any(character > "\xff" for character in self.path)  # else it is bytes in the guise of Latin-1
        path = self.path.encode("utf-8" if wide else "latin-1", "replace")
        return quote(unquote_to_bytes(path), safe=PATH_CHARACTERS)

    @property
    def authority(self) -> str:
        """The host in lower case, without the scheme's default port (RFC 9110, section 4.2.3)."""
        host = self.host.lower()
        default = ":443" if self.scheme == "https" else ":80"
        for port in (default, ":"):
            if host.endswith(port):
                return host[: -len(port)]
        return host

    @property
    def normalized(self) -> str:
        """The URI by which a receiver knows itself (EDS T-23)."""
        return f"{self.scheme}://{self.authority}{self.path_and_query}"


def split_uri(uri: str) -> TargetUri:
    match = _URI.fullmatch(uri)
    if match is None:
        raise WebhookSignatureError("the target URI is not an absolute http URI", "malformed")
    scheme, host, path, query = match.groups()
    return TargetUri(scheme.lower(), host, path or "/", query)


def join_uri(scheme: str, host: str, target: str) -> str:
    """The address of a request to a host. What is no host gives an address that nothing can be read from: a `/` in it
    would move the path."""
    return f"{scheme}://{host if _HOST.fullmatch(host) else ''}{target}"
