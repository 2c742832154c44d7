"""ASGI: a receiver as application, as middleware before one, and a bound on requests.

Stores, and handlers that are plain functions, run in threads; handlers that are coroutine functions run in the event loop.
A sender that hangs up, or a server that cancels the request, does not cut a handler off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from .errors import IncompleteBodyError
from .headers import Headers
from .httpsig.target import PATH_CHARACTERS, join_uri
from .profiles.profile import NOT_FOUND, Answer
from .ratelimit import RATE_LIMIT_EXCEEDED, RateLimiter
from .receiver.exchange import Request
from .receiver.receiver import Receiver

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_MAX_DRAIN = 1 << 20
_DRAIN_SECONDS = 1.0
"""How much of a refused body is still taken, and for how long, so that the sender reads the answer (EDS T-39)."""


_SHUTDOWN_SECONDS = 25.0
"""How long handlers that exceeded their time may continue when the server stops."""


class WebhookApp:
    """An ASGI application that answers every request by a receiver."""

    def __init__(self, receiver: Receiver, path: str | None = None) -> None:
        """`path`: the only one that is answered, beside that of the page that states the policy. Defaults to any: then
        each path is an endpoint of its own, and only senders that sign the address are held to theirs."""
        self._receiver = receiver
        self._paths = None if path is None else (path, receiver.docs_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"webhooks do not come by {scope['type']}")
        body = _Body(receive)
        if self._paths is not None and scope["path"] not in self._paths:
            await body.drain()
            await _respond(NOT_FOUND, send)
            return
        answer = await self._receiver.receive_async(request_of(scope), body.read)
        if body.disconnected:
            return
        await body.drain()
        await _respond(answer, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """At the end it waits for handlers whose time was over: the server has waited for the others."""
        while True:
            event = await receive()
            ends = event["type"] == "lifespan.shutdown"
            if ends:
                await asyncio.to_thread(self._receiver.wait, _SHUTDOWN_SECONDS)
            await send({"type": f"{event['type']}.complete"})
            if ends:
                return


class WebhookMiddleware:
    """Answers one path, and the page that states the policy, by a receiver; everything else goes to the application."""

    def __init__(self, app: Application, receiver: Receiver, path: str = "/webhooks") -> None:
        self._app = app
        self._webhooks = WebhookApp(receiver)
        self._path = path
        self._docs_path = receiver.docs_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._webhooks if scope["type"] == "http" and self._is_ours(scope) else self._app
        await app(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        path = scope["path"]
        return bool(path == self._path or (path == self._docs_path and scope["method"] in ("GET", "HEAD")))


class RateLimitMiddleware:
    """Puts a bound before an application: 1000 requests a minute and address by default (CCW-LIM-12)."""

    def __init__(
        self,
        app: Application,
        limiter: RateLimiter | None = None,
        key: Callable[[Scope], str] = lambda scope: _ip(scope) or "",
    ) -> None:
        self._app = app
        self._limiter = limiter or RateLimiter()
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        verdict = self._limiter.take(self._key(scope))
        if not verdict.allowed:
            await _Body(receive).drain()
            headers = {"content-type": "application/json", **verdict.headers}
            await _respond(Answer(429, headers, RATE_LIMIT_EXCEEDED), send)
            return

        async def limited(event: Event) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": [*event.get("headers", []), *_encoded(verdict.headers)]}
            await send(event)

        await self._app(scope, receive, limited)


def request_of(scope: Scope) -> Request:
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    return Request(
        method=str(scope["method"]).upper(),
        url=_url(scope, headers),
        headers=headers,
        ip=_ip(scope),
        early_data=bool((scope.get("extensions") or {}).get("tls", {}).get("early_data")),
    )


def _ip(scope: Scope) -> str | None:
    client = scope.get("client")
    return str(client[0]) if client else None


def _url(scope: Scope, headers: Headers) -> str:
    """The address as it went over the wire, where the server shows it."""
    raw = scope.get("raw_path")
    path = raw.partition(b"?")[0].decode("latin-1") if raw else quote(scope["path"], safe=PATH_CHARACTERS)
    query = scope.get("query_string", b"").decode("latin-1")
    server = scope.get("server") or ("localhost", None)
    host = headers.get("host") or (server[0] if server[1] is None else f"{server[0]}:{server[1]}")
    target = (path or "/") + (f"?{query}" if query else "")
    return join_uri(str(scope.get("scheme", "http")), host, target)


class _Body:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._more = True
        self.disconnected = False

    async def _next(self) -> bytes:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            self._more = False
            self.disconnected = True
            raise IncompleteBodyError
        self._more = bool(event.get("more_body", False))
        data: bytes = event.get("body", b"")
        return data

    async def read(self, limit: int) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        while self._more:
            data = await self._next()
            size += len(data)
            if size > limit:
                return None
            parts.append(data)
        return b"".join(parts)

    async def drain(self) -> None:
        if not self._more:
            return
        try:
            await asyncio.wait_for(self._drain(), _DRAIN_SECONDS)
        except (asyncio.TimeoutError, IncompleteBodyError):
            return

    async def _drain(self) -> None:
        left = _MAX_DRAIN
        while self._more and left > 0:
            left -= len(await self._next()) or 1


async def _respond(answer: Answer, send: Send) -> None:
    body = answer.body or b""
    headers = _encoded(answer.headers)
    if answer.status not in (204, 205, 304):
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: Any) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
