"""How the client talks to a server."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, TypeVar, Union, cast
from urllib.parse import quote, urlencode

from ..httpsig.structured import serialize_string
from .errors import GodwitError
from .retry import Retry, insist

T = TypeVar("T")
QueryValue = Union[str, int, bool, Sequence[str], Mapping[str, str], None]

_BASE_URL = re.compile(r"https?://[^/?#@\s]+(/[^?#\s]*)?")
_API_KEY = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Payload:
    """A payload that is sent byte for byte, under its own media type."""

    body: bytes
    content_type: str


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The API does not redirect, and an API key must not follow where a stranger points."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Transport:
    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 30,
        context: ssl.SSLContext | None = None,
        retry: Retry | None = None,
    ) -> None:
        """`base_url`: the server's address, such as https://hooks.example.com. `timeout`: seconds without an answer, or
        without anything new in a stream. `context`: how to check the server's certificate. `retry`: repeat requests that got
        no answer or may be accepted later, under one key each; `Retry()` takes the defaults."""
        if not _BASE_URL.fullmatch(base_url):
            raise ValueError("base_url is not the URL of a server")
        if not _API_KEY.fullmatch(api_key):
            raise ValueError("the API key is missing or not one")
        self._base = base_url.rstrip("/")
        self._api_key = api_key
        self._timeout = timeout
        self._retry = retry
        https = urllib.request.HTTPSHandler(context=context or ssl.create_default_context())
        self._opener = urllib.request.build_opener(_NoRedirects, https)

    def _insist(self, method: str, call: dict[str, Any], request: Callable[[dict[str, Any]], T]) -> T:
        """Makes a request, and repeats it under the same key."""
        headers = call.get("headers") or {}
        keyed = "Idempotency-Key" in headers
        if keyed and self._retry is not None and headers["Idempotency-Key"] is None:
            call = {**call, "headers": {**headers, "Idempotency-Key": str(uuid.uuid4())}}
        # A DELETE is not repeated: the repeat could not tell what it has just deleted from what never was there.
        again = keyed or method in ("GET", "PUT")
        return insist(self._retry if again else None, lambda: request(call))

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, QueryValue] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: object = None,
    ) -> HTTPResponse:
        request = urllib.request.Request(self._base + path + _query(query or {}), method=method)
        request.add_header("Authorization", f"Bearer {self._api_key}")
        for name, value in (headers or {}).items():
            if value is not None:
                # Keys are structured-field Strings on the wire.
                request.add_header(name, serialize_string(value) if name == "Idempotency-Key" else value)
        if isinstance(body, Payload):
            request.data = body.body
            request.add_header("Content-Type", body.content_type)
        elif body is not None:
            request.data = json.dumps(body, ensure_ascii=False).encode()
            request.add_header("Content-Type", "application/json")
        try:
            return cast(HTTPResponse, self._opener.open(request, timeout=self._timeout))
        except urllib.error.HTTPError as error:
            with error:
                raise _failure(error) from None

    def _bytes(self, method: str, path: str, **call: Any) -> bytes:
        def read(call: dict[str, Any]) -> bytes:
            with self._open(method, path, **call) as response:
                return response.read()  # a response that was cut off does not count

        return self._insist(method, call, read)

    def _json(self, method: str, path: str, **call: Any) -> Any:
        body = self._bytes(method, path, **call)
        return json.loads(body) if body else None

    def _lines(self, method: str, path: str, **call: Any) -> Iterator[Any]:
        """Newline-delimited JSON, item by item."""
        with self._insist(method, call, lambda call: self._open(method, path, **call)) as response:
            for line in response:
                if line.strip():
                    yield json.loads(line)

    def _events(self, method: str, path: str, **call: Any) -> Iterator[Any]:
        """Server-sent events: the data of each, as JSON."""
        data: list[bytes] = []
        with self._insist(method, call, lambda call: self._open(method, path, **call)) as response:
            for line in response:
                line = line.rstrip(b"\r\n")
                if line.startswith(b"data:"):
                    data.append(line[5:].lstrip())
                elif not line and data:
                    yield json.loads(b"\n".join(data))
                    data = []


def every_item(list_page: Callable[[str | None], Any]) -> Iterator[Any]:
    """Follows next_cursor through all pages of a list: `every_item(lambda cursor: client.list_events(cursor=cursor))`."""
    cursor: str | None = None
    while True:
        page = list_page(cursor)
        yield from page["items"]
        cursor = page.get("next_cursor")
        if not cursor:
            return


def path_segment(value: str) -> str:
    return quote(value, safe="")


def _query(values: Mapping[str, QueryValue]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, (str, int)):
            pairs.append((name, str(value)))
        elif isinstance(value, Mapping):
            pairs += [(name.removesuffix("NAME") + key, text) for key, text in value.items()]
        else:
            pairs.append((name, ",".join(value)))
    return f"?{urlencode(pairs)}" if pairs else ""


def _failure(error: urllib.error.HTTPError) -> GodwitError:
    try:
        document = json.loads(error.read())
    except (ValueError, OSError):
        document = None  # not the server's own answer, perhaps a proxy's: the status has to do
    problem = document if isinstance(document, dict) else {}
    listed = problem.get("errors")
    fields = [f for f in listed if isinstance(f, dict)] if isinstance(listed, list) else []

    def text(name: str) -> str | None:
        value = problem.get(name)
        return value if isinstance(value, str) else None

    what = text("detail") or text("title") or str(error.reason)
    # The server's detail names most fields already.
    unsaid = [f for f in fields if str(f.get("detail")) not in what]
    parts = [f"{error.code} {what}".strip(), *(f"{f.get('field')}: {f.get('detail')}" for f in unsaid)]
    return GodwitError(
        error.code,
        text("code") or "",
        "; ".join(parts),
        text("request_id"),
        error.headers.get("retry-after"),
        fields,
    )
