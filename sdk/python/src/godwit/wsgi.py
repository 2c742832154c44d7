"""WSGI: a receiver as application, as middleware before one, and a bound on requests.

A WSGI server shows the request's address decoded. Where it also shows it as it was sent (RAW_URI, REQUEST_URI: gunicorn,
uWSGI, Werkzeug, mod_wsgi), that is used; else it is encoded again in the usual way, which only fails for senders that
spell their addresses in an unusual one and sign them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http.client import responses
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .errors import IncompleteBodyError
from .headers import Headers
from .httpsig.target import PATH_CHARACTERS, join_uri
from .profiles.profile import NOT_FOUND, Answer
from .ratelimit import RATE_LIMIT_EXCEEDED, RateLimiter
from .receiver.exchange import Request
from .receiver.receiver import Receiver

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_CHUNK = 64 << 10
_MAX_DRAIN = 1 << 20
"""How much of a refused body is still taken, so that the sender gets to read the answer (EDS T-39)."""


class WebhookApp:
    """A WSGI application that answers every request by a receiver."""

    def __init__(self, receiver: Receiver, path: str | None = None) -> None:
        """`path`: the only one that is answered, beside that of the page that states the policy. Defaults to any: then
        each path is an endpoint of its own, and only senders that sign the address are held to theirs."""
        self._receiver = receiver
        self._paths = None if path is None else (path, receiver.docs_path)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = _Body(environ)
        if self._paths is not None and environ.get("PATH_INFO", "") not in self._paths:
            body.drain()
            return _respond(NOT_FOUND, start_response)
        answer = self._receiver.receive(request_of(environ), body.read)
        body.drain()
        return _respond(answer, start_response)


class WebhookMiddleware:
    """Answers one path, and the page that states the policy, by a receiver; everything else goes to the application."""

    def __init__(self, app: WSGIApplication, receiver: Receiver, path: str = "/webhooks") -> None:
        self._app = app
        self._webhooks = WebhookApp(receiver)
        self._path = path
        self._docs_path = receiver.docs_path

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        is_page = path == self._docs_path and environ["REQUEST_METHOD"] in ("GET", "HEAD")
        return (self._webhooks if path == self._path or is_page else self._app)(environ, start_response)


class RateLimitMiddleware:
    """Puts a bound before an application: 1000 requests a minute and address by default (CCW-LIM-12)."""

    def __init__(
        self,
        app: WSGIApplication,
        limiter: RateLimiter | None = None,
        key: Callable[[Mapping[str, Any]], str] = lambda environ: str(environ.get("REMOTE_ADDR", "")),
    ) -> None:
        self._app = app
        self._limiter = limiter or RateLimiter()
        self._key = key

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        verdict = self._limiter.take(self._key(environ))
        if not verdict.allowed:
            _Body(environ).drain()
            headers = {"content-type": "application/json", **verdict.headers}
            return _respond(Answer(429, headers, RATE_LIMIT_EXCEEDED), start_response)

        def started(status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Callable[[bytes], object]:
            all_headers = [*headers, *verdict.headers.items()]
            return start_response(status, all_headers, exc_info) if exc_info else start_response(status, all_headers)

        return self._app(environ, started)


def request_of(environ: Mapping[str, Any]) -> Request:
    return Request(
        method=str(environ["REQUEST_METHOD"]).upper(),
        url=_url(environ),
        headers=Headers(_fields(environ)),
        ip=environ.get("REMOTE_ADDR") or None,
        early_data=environ.get("SSL_EARLY_DATA") == "1",
    )


def _fields(environ: Mapping[str, Any]) -> list[tuple[str, str]]:
    fields = [(name[5:].replace("_", "-"), str(value)) for name, value in environ.items() if name.startswith("HTTP_")]
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            fields.append((name.replace("_", "-"), str(environ[name])))
    return fields


def _url(environ: Mapping[str, Any]) -> str:
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if not target:
        path = str(environ.get("SCRIPT_NAME", "")) + str(environ.get("PATH_INFO", ""))
        query = environ.get("QUERY_STRING")
        # The text is bytes in the guise of Latin-1.
        target = quote(path.encode("latin-1", "replace"), safe=PATH_CHARACTERS) + (f"?{query}" if query else "")
    if str(target).lower().startswith(("http://", "https://")):
        return str(target)
    host = environ.get("HTTP_HOST") or f"{environ.get('SERVER_NAME', 'localhost')}:{environ.get('SERVER_PORT', '80')}"
    return join_uri(str(environ.get("wsgi.url_scheme", "http")), str(host), str(target or "/"))


class _Body:
    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._stream = environ.get("wsgi.input")
        length = str(environ.get("CONTENT_LENGTH") or "")
        self._left = int(length) if length.isascii() and length.isdigit() and len(length) < 19 else None
        # Without a length only a server that ends the stream itself can be read from; others would wait for ever.
        self._unreadable = False
        if self._left is None and not environ.get("wsgi.input_terminated"):
            self._left = 0
            self._unreadable = "chunked" in str(environ.get("HTTP_TRANSFER_ENCODING", "")).lower()

    def _next(self, size: int) -> bytes:
        if self._stream is None or self._left == 0:
            return b""
        wanted = size if self._left is None else min(size, self._left)
        try:
            data: bytes = self._stream.read(wanted)
        except OSError as error:
            self._left = 0
            raise IncompleteBodyError from error
        if self._left is not None:
            if not data:
                self._left = 0
                raise IncompleteBodyError
            self._left -= len(data)
        elif not data:
            self._left = 0
        return data

    def read(self, limit: int) -> bytes | None:
        if self._unreadable:
            raise IncompleteBodyError
        parts: list[bytes] = []
        size = 0
        while True:
            data = self._next(min(_CHUNK, limit + 1 - size))
            if not data:
                return b"".join(parts)
            size += len(data)
            if size > limit:
                return None
            parts.append(data)

    def drain(self) -> None:
        if self._left is not None and self._left > _MAX_DRAIN:
            return  # too much to take, so the connection will break anyway
        left = _MAX_DRAIN
        try:
            while left > 0:
                data = self._next(min(_CHUNK, left))
                if not data:
                    return
                left -= len(data)
        except IncompleteBodyError:
            return


def _respond(answer: Answer, start_response: StartResponse) -> Iterable[bytes]:
    headers = [
        ("-".join(part.capitalize() for part in name.split("-")), value) for name, value in answer.headers.items()
    ]
    body = answer.body or b""
    if answer.status not in (204, 205, 304):
        headers.append(("Content-Length", str(len(body))))
    start_response(f"{answer.status} {responses.get(answer.status, 'Status')}", headers)
    return [body] if body else []
