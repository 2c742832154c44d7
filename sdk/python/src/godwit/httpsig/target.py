"""The target URI of a request, split and put together without decoding anything."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import WebhookSignatureError

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
