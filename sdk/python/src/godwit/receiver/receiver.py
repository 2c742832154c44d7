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
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Literal, TypeVar

from ..errors import IncompleteBodyError, WebhookSignatureError
from ..headers import Headers, HeadersLike
from ..httpsig.structured import StructuredFieldError
from ..idempotency import KeyPolicy
from ..inbox.inbox import Enqueues
from ..profiles.profile import Answer, Authentication, Check, Message, Profile
from ..ratelimit import RateLimiter
from ..stores.store import Store
from .exchange import Exchange, FailureCounter, Opened, Refusal, Request
from .hooks import Hooks, tell
from .page import policy_page
from .result import Accepted, result_fault
from .settings import Fingerprint, Handler, Validate, is_coroutine_handler, make_settings

T = TypeVar("T")

_PURGE_STEP = 1000
"""Largest number of entries that one step of a purge deletes."""
_STORE_THREADS = 32
"""How many calls of a store an event loop may have under way. They are not the loop's own threads: a store that hangs must
not keep the rest of the application from using those."""

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
        transactional: bool = False,
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
        purge_every: float | None = 60,
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
        transactional: run the handler in the store's transaction, which also completes the key: what it writes with
            `sql_of` or `redis_of` happens together with that, or not at all, whenever the process dies. Defaults to False.
        dedup: whether keys are remembered; without, freshness is needed. OJS and CYBERCUBE do not allow it. Defaults to
            True.
        window: how long keys are remembered, in seconds. Defaults to 30 days; the floor is 24 hours, for cybercube 7 days.
        agreement: a reference to the agreement that allows a window below the floor.
        lease: how long a holder may take before its key is free again, in seconds. Defaults to 60, for cybercube 300; or
            to twice the timeout if that is longer.
        fingerprint: digest of what a sender may not change under one key; False: nothing is compared. Defaults to media
            type and body.
        keep_rejects: whether refusals are kept for repeats too, or only what was accepted. Defaults to True.
        freshness: whether the signed time is checked, where one is signed; without, dedup is needed. Defaults to True.
        tolerance: largest difference between the signed time and ours, in seconds. 0 is honoured. Defaults to 300.
        key_policy: format of Idempotency-Key (eds). Defaults to 16 to 255 characters in double quotes.
        limit: largest body in bytes. Defaults to 1 MiB.
        timeout: how long a handler may take, in seconds; None runs it in the server's own thread, without a bound of
            ours: then the lease has to be longer than the longest run, or a repeat runs beside it. Defaults to 25.
        purge_every: how often the store is purged, in small steps beside the requests, in seconds; None: never, and then
            `purge` has to be called. Defaults to 60.
        retry_after: what senders are told to wait where the handler does not say, in seconds. Defaults to 1.
        api: answer a repeat of what is in progress with 409, as an API does, not with 503, as webhooks need.
        public_origin: scheme and host under which senders know this receiver, if a proxy in front changes them.
        docs_path: path of the page that states the policy. Defaults to /docs/idempotency.
        docs_url: address of that page, if it is published elsewhere. Defaults to docs_path at public_origin.
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
            transactional=transactional,
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
            purge_every=purge_every,
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
        self._is_coroutine = handler is not None and is_coroutine_handler(handler)
        self._tasks: set[asyncio.Task[Answer]] = set()
        self._threads = ThreadPoolExecutor(_STORE_THREADS, "godwit-store")  # starts none before it is used
        self._running = _Running()
        self._purged = time.monotonic()
        self._purging = threading.Lock()

    @property
    def docs_path(self) -> str:
        return self._s.docs_path

    def documentation(self) -> str:
        """The page that states the policy, to be served elsewhere."""
        return policy_page(self._s)

    def purge(self) -> int:
        """Drops what the store need not remember any longer, all of it, in small steps; tells how much that was. A receiver
        that gets requests does it by itself, beside them."""
        now, total = self._s.clock(), 0
        while True:
            dropped = self._s.store.purge(now, _PURGE_STEP)
            total += dropped
            if dropped < _PURGE_STEP:
                return total

    def wait(self, timeout: float | None = None) -> bool:
        """Returns when no handler runs any more, also none whose time was over, or when the timeout is over; then it
        answers False. Call it after the server has stopped."""
        return self._running.wait(timeout)

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
        finally:
            self._purge_now_and_then()

    def _run(self, exchange: Exchange, opened: Opened) -> Answer:
        if self._s.timeout is None:
            return self._work(exchange, opened, in_servers_thread=True)
        try:
            work = _spawn(self._work, exchange, opened)
        except RuntimeError as error:  # no thread could be started
            return exchange.give_up(opened, error)
        try:
            return work.result(self._s.timeout)
        except FutureTimeoutError:
            return exchange.late(opened)

    def _work(self, exchange: Exchange, opened: Opened, in_servers_thread: bool = False) -> Answer:
        """Steps 6 and 7, to the end: they run in their own thread and cannot be interrupted."""
        with self._running:
            if self._s.transactor is not None:
                answer, failure = self._handle_in_transaction(exchange, opened)
            else:
                answer, failure = self._handle(exchange, opened)
        if in_servers_thread and failure is not None and not isinstance(failure, Exception):
            raise failure  # the thread is told to stop
        return answer

    def _handle(self, exchange: Exchange, opened: Opened) -> tuple[Answer, BaseException | None]:
        try:
            result = self._call(exchange, opened)
        except BaseException as error:
            return exchange.give_up(opened, error), error
        return self._settle(exchange, opened, result), None

    def _settle(self, exchange: Exchange, opened: Opened, result: object) -> Answer:
        try:
            return exchange.settle(opened, result)
        except Exception as error:  # of a hand-made profile
            return exchange.give_up(opened, error)

    def _handle_in_transaction(self, exchange: Exchange, opened: Opened) -> tuple[Answer, BaseException | None]:
        """The handler's writes and the completion of its key are there together, or neither is."""
        assert opened.holder is not None
        answer: Answer | None = None
        failure: BaseException | None = None
        result: object = None
        try:
            with exchange.begin_transaction(opened.holder) as transaction:  # undone if the handler never returns
                opened.context.transaction = transaction.handle
                try:
                    result = self._call(exchange, opened)
                except BaseException as error:
                    failure = error
                if failure is None:
                    accepted = Accepted() if result is None else result
                    if isinstance(accepted, Accepted) and result_fault(accepted, self._s.allow_multi_status) is None:
                        answer = exchange.accept_in(transaction, opened, accepted)
        except Exception as error:
            return exchange.undone(opened, error), failure
        if failure is not None:
            return exchange.give_up(opened, failure), failure
        if answer is None:  # what was written before the handler changed its mind is undone
            return self._settle(exchange, opened, result), None
        return exchange.report(answer, "accepted"), None

    def _call(self, exchange: Exchange, opened: Opened) -> object:
        if self._s.inbox is not None:
            self._s.inbox.enqueue(exchange.job(opened.delivery))  # durable first, then the acknowledgement (CCW-RCV-7)
            return None
        assert self._s.handler is not None
        result: object = self._s.handler(opened.delivery, opened.context)
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result

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
        finally:
            self._purge_now_and_then()

    def _keep(self, work: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Event loops forget tasks without a reference."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: context.run(function, *args))

    async def _open_and_run(self, exchange: Exchange, body: bytes | None) -> Answer:
        """Ends with an answer even if no caller waits for it any more."""
        try:
            opened = await self._in_thread(exchange.open, body)
        except Refusal as refusal:
            return exchange.report(refusal.answer, "refused", refusal.reason)
        if isinstance(opened, Answer):
            return opened
        if self._is_coroutine:
            work = self._keep(self._work_async(exchange, opened))
        else:
            try:
                work = self._keep(_wrapped(_spawn(self._work, exchange, opened)))
            except RuntimeError as error:
                return await self._in_thread(exchange.give_up, opened, error)
        done, _ = await asyncio.wait({work}, timeout=self._s.timeout)
        return work.result() if done else exchange.late(opened)

    async def _work_async(self, exchange: Exchange, opened: Opened) -> Answer:
        assert self._s.handler is not None
        with self._running:
            try:
                result: Any = self._s.handler(opened.delivery, opened.context)
                result = await result
            except (Exception, asyncio.CancelledError, SystemExit) as error:
                return await self._in_thread(exchange.give_up, opened, error)
            return await self._in_thread(self._settle, exchange, opened, result)

    def _purge_now_and_then(self) -> None:
        """A key's whole life is the receiver's business (IKH-EXP-3)."""
        every = self._s.purge_every
        if every is None or time.monotonic() - self._purged < every or not self._purging.acquire(blocking=False):
            return
        self._purged = time.monotonic()

        def step() -> None:
            try:
                self.purge()
            except Exception as error:
                failed = error
                tell(lambda: self._s.hooks.on_error(failed, "purge"))
            finally:
                self._purging.release()

        try:
            threading.Thread(target=step, name="godwit-purge", daemon=True).start()
        except RuntimeError:
            self._purging.release()  # another time


class _Running:
    """How many handlers run."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *raised: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self, timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, timeout)


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

    future.set_running_or_notify_cancel()  # it cannot be cancelled: a loop that ends may try to
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
