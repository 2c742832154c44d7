"""`Receiver` and `verify`: what applications call.

The receiver drives an exchange: it waits for the body and for the handler, in threads or in an event loop. A sender that
hangs up changes nothing about a handler that runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Literal

from ..errors import IncompleteBodyError, WebhookSignatureError
from ..headers import Headers, HeadersLike
from ..httpsig.structured import StructuredFieldError
from ..idempotency import KeyPolicy
from ..inbox.inbox import Enqueues, inbox_job
from ..profiles.profile import Answer, Authentication, Check, Message, Profile
from ..ratelimit import RateLimiter
from ..stores.store import Store
from .exchange import Exchange, FailureCounter, Opened, Refusal, Request
from .hooks import Hooks
from .page import policy_page
from .settings import Fingerprint, Handler, Validate, make_settings

ReadBody = Callable[[int], "bytes | None"]
"""Reads the body up to a limit; None if it has more bytes, in which case the rest is not read."""
AsyncReadBody = Callable[[int], "Awaitable[bytes | None]"]


class Receiver:
    def __init__(
        self,
        profile: Profile,
        handler: Handler | None = None,
        *,
        inbox: Enqueues | None = None,
        store: Store | None = None,
        dedup: bool = True,
        window: float | None = None,
        agreement: str = "",
        lease: float | None = None,
        fingerprint: Fingerprint | Literal[False] | None = None,
        keep_rejects: bool = True,
        freshness: bool = True,
        tolerance: float = 300,
        key_policy: KeyPolicy | None = None,
        limit: int = 1 << 20,
        timeout: float | None = 25,
        retry_after: float = 1,
        api: bool = False,
        public_origin: str | None = None,
        docs_path: str = "/docs/idempotency",
        docs_url: str | None = None,
        rate_limiter: RateLimiter | None = None,
        validate: Validate | None = None,
        multi_status_agreement: str = "",
        hooks: Hooks | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Makes a receiver. It raises if what it is given would not be safe.

        profile: the dialect, with its secrets.
        handler: processes a delivery before it is answered. This or `inbox` is required.
        inbox: keeps a delivery for a worker, then answers: for handlers that take long (CCW-RCV-7).
        store: remembers keys and nonces. Defaults to this process' memory.
        dedup: whether keys are remembered; without, freshness is needed. Defaults to True.
        window: how long keys are remembered, in seconds. Defaults to 30 days; the floor is 24 hours, for cybercube 7 days.
        agreement: a reference to the agreement that allows a window below the floor.
        lease: how long a holder may take before its key is free again, in seconds. Defaults to 60, for cybercube 300.
        fingerprint: digest of what a sender may not change under one key; False: nothing is compared. Defaults to media
            type and body.
        keep_rejects: whether refusals are kept for repeats too, or only what was accepted. Defaults to True.
        freshness: whether the signed time is checked, where one is signed; without, dedup is needed. Defaults to True.
        tolerance: largest difference between the signed time and ours, in seconds. 0 is honoured. Defaults to 300.
        key_policy: format of Idempotency-Key (eds). Defaults to 16 to 255 characters in double quotes.
        limit: largest body in bytes. Defaults to 1 MiB.
        timeout: how long a handler may take, in seconds; None runs it in the server's own thread, without a bound of
            ours. Defaults to 25.
        retry_after: what senders are told to wait where the handler does not say, in seconds. Defaults to 1.
        api: answer a repeat of what is in progress with 409, as an API does, not with 503, as webhooks need.
        public_origin: scheme and host under which senders know this receiver, if a proxy in front changes them.
        docs_path: path of the page that states the policy. Defaults to /docs/idempotency.
        docs_url: address of that page, if it is published elsewhere. Defaults to docs_path.
        rate_limiter: bounds requests by address. Defaults to none.
        validate: says what is wrong with a payload, before the handler sees it; None if nothing (CCW-RCV-15).
        multi_status_agreement: a reference to the agreement that lets the handler answer 207 (EDS-STA-207b).
        hooks: is told what happens. Defaults to the logger `godwit`.
        clock: seconds since 1970. Defaults to time.time.
        """
        self._s = make_settings(
            profile,
            handler,
            inbox=inbox,
            store=store,
            dedup=dedup,
            window=window,
            agreement=agreement,
            lease=lease,
            fingerprint=fingerprint,
            keep_rejects=keep_rejects,
            freshness=freshness,
            tolerance=tolerance,
            key_policy=key_policy,
            limit=limit,
            timeout=timeout,
            retry_after=retry_after,
            api=api,
            public_origin=public_origin,
            docs_path=docs_path,
            docs_url=docs_url,
            rate_limiter=rate_limiter,
            validate=validate,
            multi_status_agreement=multi_status_agreement,
            hooks=hooks,
            clock=clock,
        )
        self._failures = FailureCounter()
        self._tasks: set[asyncio.Task[Answer]] = set()

    @property
    def docs_path(self) -> str:
        return self._s.docs_path

    def documentation(self) -> str:
        """The page that states the policy, to be served elsewhere."""
        return policy_page(self._s)

    def purge(self) -> int:
        """Drops what the store need not remember any longer; tells how much that was."""
        return self._s.store.purge(self._s.clock())

    def receive(self, request: Request, read: ReadBody) -> Answer:
        """Answers a request. It never raises: whatever happens, there is one answer (EDS-DEF-3)."""
        exchange = Exchange(self._s, self._failures, request)
        try:
            answer = exchange.begin()
            if answer is not None:
                return answer
            try:
                body = read(self._s.limit)
            except IncompleteBodyError:
                raise exchange.incomplete() from None
            opened = exchange.open(body)
            return opened if isinstance(opened, Answer) else self._run(exchange, opened)
        except Refusal as refusal:
            return exchange.report(refusal.answer, "refused", refusal.reason)
        except Exception as error:
            return exchange.failed(error)

    def _run(self, exchange: Exchange, opened: Opened) -> Answer:
        if self._s.timeout is None:
            return self._work(exchange, opened)
        work = _spawn(self._work, exchange, opened)
        try:
            return work.result(self._s.timeout)
        except FutureTimeoutError:
            return exchange.late(opened)

    def _work(self, exchange: Exchange, opened: Opened) -> Answer:
        """Steps 6 and 7, to the end: in a thread of its own, nobody can cut them off."""
        try:
            result = self._call(opened)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
        except Exception as error:
            return exchange.give_up(opened, error)
        except BaseException as error:
            answer = exchange.give_up(opened, error)
            if self._s.timeout is None:
                raise  # the server's own thread is told to stop
            return answer
        return exchange.settle(opened, result)

    def _call(self, opened: Opened) -> Any:
        if self._s.inbox is not None:
            self._s.inbox.enqueue(inbox_job(opened.delivery))  # durable first, then the acknowledgement (CCW-RCV-7)
            return None
        assert self._s.handler is not None
        return self._s.handler(opened.delivery, opened.context)

    async def receive_async(self, request: Request, read: AsyncReadBody) -> Answer:
        """The same in an event loop. Stores, and handlers that are plain functions, run in threads."""
        exchange = Exchange(self._s, self._failures, request)
        try:
            answer = exchange.begin()
            if answer is not None:
                return answer
            try:
                body = await read(self._s.limit)
            except IncompleteBodyError:
                raise exchange.incomplete() from None
            return await asyncio.shield(self._keep(self._open_and_run(exchange, body)))
        except Refusal as refusal:
            return exchange.report(refusal.answer, "refused", refusal.reason)
        except Exception as error:
            return exchange.failed(error)

    def _keep(self, work: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Event loops forget tasks that nobody holds."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open_and_run(self, exchange: Exchange, body: bytes | None) -> Answer:
        opened = await asyncio.to_thread(exchange.open, body)
        if isinstance(opened, Answer):
            return opened
        if inspect.iscoroutinefunction(self._s.handler):
            work = self._keep(self._work_async(exchange, opened))
        else:
            work = self._keep(_wrapped(_spawn(self._work, exchange, opened)))
        done, _ = await asyncio.wait({work}, timeout=self._s.timeout)
        return work.result() if done else exchange.late(opened)

    async def _work_async(self, exchange: Exchange, opened: Opened) -> Answer:
        try:
            result = await self._call(opened)
        except (Exception, asyncio.CancelledError) as error:
            return await asyncio.to_thread(exchange.give_up, opened, error)
        return await asyncio.to_thread(exchange.settle, opened, result)


def _spawn(function: Callable[..., Answer], *args: Any) -> Future[Answer]:
    """Runs a function in a new thread, with the caller's context variables.

    The thread does not hold up the end of the process: a handler that is still at it then has lost its sender, and the
    lease frees its key.
    """
    future: Future[Answer] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function, *args))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="godwit-handler", daemon=True).start()
    return future


async def _wrapped(future: Future[Answer]) -> Answer:
    return await asyncio.wrap_future(future)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def verify(
    profile: Profile,
    headers: HeadersLike,
    body: bytes | str,
    *,
    method: str = "POST",
    url: str = "",
    tolerance: float | None = 300,
    now: float | None = None,
) -> Authentication:
    """Verifies a request, and nothing else: it remembers no nonces and no keys, so it does not stop replays by itself.

    It raises a WebhookSignatureError if the request does not prove itself; that is the only verdict it raises. The body is
    the raw one, never parsed and serialised again. `url` is the address as the sender used it; it is needed where it is
    signed (eds, twilio). `tolerance` None: time is not checked. `now` defaults to the clock.
    """
    raw = body.encode() if isinstance(body, str) else bytes(body)
    message = Message(method.upper(), url, Headers(headers), raw)
    try:
        return profile.authenticate(message, Check(int(time.time() if now is None else now), tolerance))
    except StructuredFieldError as error:
        raise WebhookSignatureError(str(error), "malformed") from error
