"""The effective options of a receiver. Unsafe options are refused here, when the receiver is made."""

from __future__ import annotations

import hashlib
import inspect
import math
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union, cast

from ..errors import WebhookSignatureError
from ..httpsig.target import split_uri
from ..idempotency import KeyPolicy, fingerprint_of
from ..profiles.profile import DAY, Profile
from ..ratelimit import RateLimiter
from ..stores.database import Transaction
from ..stores.memory import MemoryStore
from ..stores.redis import RedisQueue
from ..stores.store import Store, Transactor
from .delivery import Delivery
from .hooks import Hooks, LoggingHooks, tell
from .result import Result

if TYPE_CHECKING:
    from ..inbox.inbox import Enqueues


class HandlerContext:
    """Information for a handler about its own run."""

    def __init__(self, timeout: float | None) -> None:
        self.cancelled = threading.Event()
        """Set when the handler's time is over. It is not set when the sender hangs up. Coroutines ask `is_set()`."""
        self.transaction: object = None
        """The transaction of a transactional handler; `sql_of` and `redis_of` return it."""
        self._until = None if timeout is None else time.monotonic() + timeout

    def remaining(self) -> float:
        """Seconds that are left."""
        return math.inf if self._until is None else max(0.0, self._until - time.monotonic())


def sql_of(context: HandlerContext) -> Transaction:
    """The transaction that also completes the handler's key, or ends its job: what is written with it happens together
    with that, or not at all."""
    if context.transaction is None or isinstance(context.transaction, RedisQueue):
        raise RuntimeError("the handler is not run in a transaction of a database")
    return cast(Transaction, context.transaction)


def redis_of(context: HandlerContext) -> RedisQueue:
    """Queues commands for the step that also completes the handler's key."""
    if not isinstance(context.transaction, RedisQueue):
        raise RuntimeError("the handler is not run in a transaction of Redis")
    return context.transaction


HandlerReturn = Union[Result, None, Awaitable[Result | None]]
Handler = Callable[[Delivery, HandlerContext], HandlerReturn]
"""Processes a delivery: a function, or a coroutine function."""

Fingerprint = Callable[[Delivery], str]
Validate = Callable[[Delivery], str | None]


@dataclass(frozen=True)
class Settings:
    profile: Profile
    handler: Handler | None
    inbox: Enqueues | None
    store: Store
    transactor: Transactor | None
    """The store, where handlers run in its transactions."""
    dedup: bool
    window: float
    lease: float
    fingerprint: Fingerprint | None
    keep_rejects: bool
    tolerance: float | None
    key_policy: KeyPolicy
    limit: int
    timeout: float | None
    purge_every: float | None
    retry_after: int
    api: bool
    public_origin: str | None
    docs_path: str
    docs_url: str
    rate_limiter: RateLimiter | None
    validate: Validate | None
    allow_multi_status: bool
    hooks: Hooks
    clock: Callable[[], float]


def make_settings(
    profile: Profile,
    handler: Handler | None,
    *,
    inbox: Enqueues | None,
    store: Store | None,
    transactional: bool,
    dedup: bool,
    window: float | None,
    agreement: str,
    lease: float | None,
    fingerprint: Fingerprint | Literal[False] | None,
    keep_rejects: bool,
    freshness: bool,
    tolerance: float,
    key_policy: KeyPolicy | None,
    limit: int,
    timeout: float | None,
    purge_every: float | None,
    retry_after: float,
    api: bool,
    public_origin: str | None,
    docs_path: str,
    docs_url: str | None,
    rate_limiter: RateLimiter | None,
    validate: Validate | None,
    multi_status_agreement: str,
    hooks: Hooks | None,
    clock: Callable[[], float],
) -> Settings:
    if not isinstance(profile, Profile):
        raise TypeError("receiver: a profile is required")
    if (handler is None) == (inbox is None):
        raise ValueError("receiver: either a handler or an inbox is required")
    told = LoggingHooks() if hooks is None else hooks
    fresh = freshness and profile.signs_time
    _check_replay_defence(profile, dedup, fresh, store is not None, told)
    origin = None if public_origin is None else _origin(public_origin)
    return Settings(
        profile=profile,
        handler=handler,
        inbox=inbox,
        store=MemoryStore() if store is None else store,
        transactor=_transactor(store, handler, dedup) if transactional else None,
        dedup=dedup,
        window=_window(profile, window, agreement),
        lease=_lease(profile, lease, timeout, dedup),
        fingerprint=_fingerprint(profile, fingerprint) if dedup else None,
        keep_rejects=keep_rejects,
        tolerance=_not_negative("tolerance", tolerance) if fresh else None,
        key_policy=_key_policy(key_policy or KeyPolicy()),
        limit=int(_positive("limit", limit)),
        timeout=None if timeout is None else _positive("timeout", timeout),
        purge_every=None if purge_every is None else _positive("purge_every", purge_every),
        retry_after=math.ceil(_positive("retry_after", retry_after)),
        api=api,
        public_origin=origin,
        docs_path=docs_path,
        docs_url=(origin or "") + docs_path if docs_url is None else docs_url,
        rate_limiter=rate_limiter,
        validate=validate,
        allow_multi_status=bool(multi_status_agreement),
        hooks=told,
        clock=clock,
    )


def _check_replay_defence(profile: Profile, dedup: bool, fresh: bool, has_store: bool, hooks: Hooks) -> None:
    if not dedup and profile.always_dedup:
        raise ValueError(f"receiver: {profile.name} is always deduplicated")
    if not dedup and not fresh:
        raise ValueError(
            "receiver: without deduplication a signed time is required, or a captured request could be replayed for ever"
        )
    if not fresh:
        tell(
            lambda: hooks.on_warning(
                "deduplication is the only defence against replays: none is recognised after the window (EDS-SEC-RPL-5)"
            )
        )
    if dedup and not has_store:
        tell(
            lambda: hooks.on_warning(
                "keys are remembered in this process alone: give a shared store if there are several, or if it may restart"
            )
        )


def _transactor(store: Store | None, handler: Handler | None, dedup: bool) -> Transactor:
    if not isinstance(store, Transactor):
        raise ValueError("receiver: transactional needs a store with transactions")
    if handler is None or not dedup:
        raise ValueError("receiver: transactional needs a handler, and deduplication: a transaction completes a key")
    if is_coroutine_handler(handler):
        raise ValueError("receiver: a transactional handler is a plain function: it runs in a thread of its own")
    return store


def is_coroutine_handler(handler: Any) -> bool:
    """Also of objects that are called, and of partial functions."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(handler.__call__)


def _lease(profile: Profile, lease: float | None, timeout: float | None, dedup: bool) -> float:
    usual = max(profile.lease, 2 * timeout) if timeout is not None else profile.lease
    seconds = _positive("lease", usual if lease is None else lease)
    if timeout is not None and dedup and seconds <= timeout:
        raise ValueError("receiver: lease must be longer than timeout, or a key is free while its handler still runs")
    return seconds


def _key_policy(policy: KeyPolicy) -> KeyPolicy:
    if not 1 <= policy.min_length <= policy.max_length <= 1024:
        raise ValueError("receiver: key_policy must allow 1 to 1024 characters")
    return policy


def _window(profile: Profile, window: float | None, agreement: str) -> float:
    seconds = _positive("window", 30 * DAY if window is None else window)
    if seconds < profile.window_floor and not agreement:
        floor = f"{profile.window_floor} s, the floor of {profile.name}"
        raise ValueError(f"receiver: window is below {floor}; name the agreement that allows it")
    return seconds


def _fingerprint(profile: Profile, given: Fingerprint | Literal[False] | None) -> Fingerprint | None:
    if given is False:
        return None
    if given is not None:
        # Whatever it answers, a store gets a digest: of bounded length, and nothing of the payload.
        return lambda delivery: hashlib.sha256(given(delivery).encode()).hexdigest()
    return _body_fingerprint if profile.fingerprint else None


def _body_fingerprint(delivery: Delivery) -> str:
    return fingerprint_of(delivery.content_type, delivery.body)


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"receiver: {name} must be above 0")
    return value


def _not_negative(name: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"receiver: {name} must not be below 0")
    return value


def _origin(value: str) -> str:
    try:
        uri = split_uri(value)
    except WebhookSignatureError:
        raise ValueError("receiver: public_origin is not an http origin") from None
    if uri.path != "/" or uri.query is not None:
        raise ValueError("receiver: public_origin is a scheme and a host, no path")
    return f"{uri.scheme}://{uri.host}"
