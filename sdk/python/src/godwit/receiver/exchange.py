"""One request on its way through the fixed order. The steps do not wait for a body or a handler: who drives them does."""

from __future__ import annotations

import math
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from ..errors import DeliveryError, WebhookSignatureError
from ..headers import Headers
from ..httpsig.target import split_uri
from ..idempotency import digest_of, scope_of
from ..inbox.inbox import InboxJob, inbox_job
from ..profiles.profile import Answer, Authentication, Check, Identity, Message
from ..stores.store import LeaseLostError, Outcome, Reservation, StoreTransaction
from .delivery import Delivery, delivery_of
from .hooks import (
    Duplicate,
    DuplicateKind,
    Receipt,
    ResultKind,
    ResultReport,
    VerificationFailure,
    sanitized_headers,
    tell,
)
from .page import policy_page
from .problem import problem_answer
from .result import Accepted, Reject, RetryAfter, result_fault
from .settings import HandlerContext, Settings

_MAX_KEPT_BODY = 64 << 10
"""The longest answer that is kept for repeats; of a longer one only the status is (IKH K-9)."""

_NEVER_KEPT = frozenset("date connection set-cookie retry-after content-length transfer-encoding traceparent".split())
"""Headers that belong to one answer only and are not repeated."""

_END_OF_TRANSACTION = 5.0
"""By how many seconds a transaction may outlive its handler's time."""

_PATH = re.compile(r"[A-Za-z]+://[^/?#]*([^?#]*)")


@dataclass(frozen=True)
class Request:
    """A request as an adapter hands it over, without its body."""

    method: str
    url: str
    """The absolute address as the request shows it."""
    headers: Headers
    ip: str | None = None
    """The sender's address, where it is known."""
    early_data: bool = False
    """Whether the request came as TLS early data."""


class Refusal(Exception):
    """The end of the road for a request, with its answer."""

    def __init__(self, answer: Answer, reason: str) -> None:
        super().__init__(reason)
        self.answer = answer
        self.reason = reason


class FailureCounter:
    """Counts verification failures of the last minute."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=10_000)
        self._lock = threading.Lock()

    def add(self) -> int:
        now = time.monotonic()
        with self._lock:
            self._times.append(now)
            while self._times[0] <= now - 60:
                self._times.popleft()
            return len(self._times)


@dataclass(frozen=True)
class Holder:
    """Who holds a key, and what proves it."""

    scope: str
    fingerprint: str
    token: str


@dataclass(frozen=True)
class Opened:
    """A delivery that is to be handled, its key reserved."""

    delivery: Delivery
    holder: Holder | None
    """None where deduplication is off."""
    context: HandlerContext


class Exchange:
    def __init__(self, settings: Settings, failures: FailureCounter, request: Request) -> None:
        self._s = settings
        self._failures = failures
        self._request = request
        self._path = _path_of(request.url)
        self._facts = ResultReport(settings.profile.name, 0, "refused")
        self._rate_headers: Mapping[str, str] = {}

    # What goes back

    def report(self, answer: Answer, kind: ResultKind, reason: str = "") -> Answer:
        report = replace(self._facts, status=answer.status, kind=kind, reason=reason)
        tell(lambda: self._s.hooks.on_result(report))
        return replace(answer, headers={**self._rate_headers, **answer.headers}) if self._rate_headers else answer

    def _problem(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Answer:
        return problem_answer(self._s.profile, self._s.docs_url, status, code, detail, headers)

    def _refusal(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Refusal:
        return Refusal(self._problem(status, code, detail, headers), code)

    def _wait(self) -> dict[str, str]:
        return {"retry-after": str(self._s.retry_after)}

    def _unavailable(self, error: BaseException, where: str) -> Refusal:
        tell(lambda: self._s.hooks.on_error(error, where))
        return self._refusal(503, "unavailable", "Unavailable, try again later", self._wait())

    def failed(self, error: BaseException, where: str = "receive") -> Answer:
        tell(lambda: self._s.hooks.on_error(error, where))
        return self.report(self._problem(500, "internal", "Internal error"), "failed")

    def late(self, opened: Opened) -> Answer:
        """The handler's time is over. The key stays reserved while it still runs: freeing it would let a retry run
        beside it. When it ends its result is kept, or the key freed, after all; if it never ends, the lease does."""
        opened.context.cancelled.set()
        answer = self._problem(503, "retry-after", "Not finished in time, try again later", self._wait())
        return self.report(answer, "timeout")

    # Step 1: method and size

    def begin(self) -> Answer | None:
        """Looks at the head. An answer means that the body is not wanted."""
        page = self._documentation()
        if page is not None:
            return page
        s, request = self._s, self._request
        tell(lambda: s.hooks.on_receipt(Receipt(s.profile.name, request.method, self._path, request.ip)))
        if s.rate_limiter is not None:
            verdict = s.rate_limiter.take(request.ip or "")
            self._rate_headers = verdict.headers
            if not verdict.allowed:
                raise self._refusal(429, "rate-limited", "Rate limit exceeded")
        if request.method not in s.profile.methods:
            allow = {"allow": ", ".join(s.profile.methods)}
            raise self._refusal(405, "method-not-allowed", "Method not allowed", allow)
        # A key that is new does not exclude a replay of early data (EDS-SEC-RPL-8).
        if s.tolerance is None and (request.early_data or request.headers.get("early-data") == "1"):
            raise self._refusal(425, "too-early", "Early data is not taken, send it again")
        length = request.headers.get("content-length") or "0"
        if not (length.isascii() and length.isdigit()):
            raise self._refusal(400, "payload-malformed", "Content-Length is not a number")
        if len(length) > 18 or int(length) > s.limit:
            raise self._too_large()
        return None

    def _documentation(self) -> Answer | None:
        if self._request.method not in ("GET", "HEAD") or self._path != self._s.docs_path:
            return None
        headers = {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": "default-src 'none'",
            "x-content-type-options": "nosniff",
        }
        return Answer(200, headers, policy_page(self._s).encode() if self._request.method == "GET" else None)

    def _too_large(self) -> Refusal:
        return self._refusal(413, "too-large", f"The payload has more than {self._s.limit} bytes")

    # Steps 2 to 5

    def open(self, body: bytes | None) -> Answer | Opened:
        """Authenticates, reads the key and reserves it. `body` is None if it was over the limit."""
        if body is None:
            raise self._too_large()
        message = self._message(body)
        authentication = self._authenticate(message)
        handshake = self._s.profile.handshake(message)
        if handshake is not None:
            return self.report(handshake, "accepted", "handshake")
        delivery = self._deliver(message, authentication)
        self._facts = replace(
            self._facts, principal=delivery.principal, event_id=delivery.event_id, event_type=delivery.event_type
        )
        return self._reserve(delivery)

    def incomplete(self) -> Refusal:
        return self._refusal(400, "payload-malformed", "The payload did not arrive in full")

    def _message(self, body: bytes) -> Message:
        url = self._request.url
        try:
            uri = split_uri(url)
        except WebhookSignatureError:
            raise self._refusal(400, "payload-malformed", "The request has no readable address") from None
        if self._s.public_origin is not None:
            url = self._s.public_origin + uri.path_and_query
        return Message(self._request.method, url, self._request.headers, body)

    def _authenticate(self, message: Message) -> Authentication:
        s = self._s
        try:
            authentication = s.profile.authenticate(message, Check(int(s.clock()), s.tolerance))
            self._check_replay(message, authentication)
            return authentication
        except Refusal:
            raise
        except WebhookSignatureError as error:
            self._tell_failure(error)
            detail = "Invalid signature" if s.profile.name == "cybercube" else f"Not authenticated: {error.reason}"
            challenge = {"www-authenticate": f'Signature realm="{s.profile.name}"'}
            raise self._refusal(401, "unauthenticated", detail, challenge) from None
        except Exception as error:  # a lookup of keys that failed is not the sender's fault
            raise self._unavailable(error, "authenticate") from error

    def _check_replay(self, message: Message, authentication: Authentication) -> None:
        """A nonce is accepted once. If a scheme has no nonce and keys are not remembered, the signed time with the body
        takes its place (EDS-SEC-RPL-6). Retries are signed anew, so an honest retry has a new nonce."""
        s, signed_at = self._s, authentication.signed_at
        if s.tolerance is None or signed_at is None:
            return
        principal, name = authentication.principal, s.profile.name
        if authentication.nonce is not None:
            value = scope_of(principal, f"{name} nonce", authentication.nonce)
        elif not s.dedup and authentication.proof is not None:
            value = digest_of(principal.encode(), f"{name} once".encode(), authentication.proof.encode(), message.body)
        else:
            return
        try:
            fresh = s.store.remember(value, signed_at + s.tolerance + 1, s.clock())
        except Exception as error:
            raise self._unavailable(error, "remember nonce") from error
        if not fresh:
            raise WebhookSignatureError("the request was seen before", "replayed")

    def _tell_failure(self, error: WebhookSignatureError) -> None:
        s, request = self._s, self._request
        failure = VerificationFailure(
            s.profile.name,
            error.message,
            error.reason,
            request.ip,
            sanitized_headers(request.headers),
            self._failures.add(),
        )
        tell(lambda: s.hooks.count("webhook.verification.failed"))
        tell(lambda: s.hooks.on_verification_failure(failure))

    def _deliver(self, message: Message, authentication: Authentication) -> Delivery:
        s = self._s
        try:
            identity = s.profile.identify(message, authentication, s.key_policy)
        except DeliveryError as error:
            raise self._refusal(400, error.code, error.message) from None
        received_at = datetime.fromtimestamp(s.clock(), timezone.utc)
        signed_at = authentication.signed_at
        delivery = delivery_of(
            s.profile.name,
            authentication.principal,
            identity,
            message.url,
            message.headers,
            message.body,
            received_at,
            message.method,
            None if signed_at is None else datetime.fromtimestamp(signed_at, timezone.utc),
        )
        fault = s.validate(delivery) if s.validate is not None else None
        if fault is not None:
            raise self._refusal(400, "payload-invalid", fault)
        return delivery

    def _reserve(self, delivery: Delivery) -> Answer | Opened:
        s = self._s
        context = HandlerContext(s.timeout)
        if not s.dedup:
            return Opened(delivery, None, context)
        scope = self._scope(delivery)
        fingerprint = s.fingerprint(delivery) if s.fingerprint is not None else ""
        holder = Holder(scope, fingerprint, str(uuid.uuid4()))
        now = s.clock()
        try:
            found = s.store.reserve(scope, fingerprint, holder.token, now, now + s.lease)
        except Exception as error:
            raise self._unavailable(error, "reserve key") from error  # fail closed (EDS-SEC-RPL-3)
        return Opened(delivery, holder, context) if found.state == "reserved" else self._repeat(delivery, holder, found)

    def _scope(self, delivery: Delivery) -> str:
        """The key in its context (EDS-KEY-8). Where the address is not signed, host, query and spelling of the path are
        whatever the request claims: they must not let a captured request count as a new one."""
        uri = split_uri(delivery.url)
        if self._s.profile.signs_target:
            endpoint = uri.normalized
        else:
            endpoint = f"{self._s.public_origin or ''}{uri.usual_path}"
        return scope_of(delivery.principal, endpoint, delivery.key)

    def job(self, delivery: Delivery) -> InboxJob:
        """The delivery for an inbox. A job of the same id that ended before the window was of another event."""
        began = delivery.received_at.timestamp() - self._s.window
        return inbox_job(delivery, self._scope(delivery), replaces=began)

    def _repeat(self, delivery: Delivery, holder: Holder, found: Reservation) -> Answer:
        s = self._s
        compared = found.fingerprint != "" and holder.fingerprint != ""
        other = compared and found.fingerprint != holder.fingerprint
        kind: DuplicateKind = "in-progress" if found.outcome is None else "completed"
        duplicate = Duplicate(s.profile.name, delivery.principal, delivery.event_id, "other-payload" if other else kind)
        tell(lambda: s.hooks.on_duplicate(duplicate))
        if other:
            raise self._refusal(422, "key-reused", "The key was used with another payload")
        if found.outcome is None:
            # 409 is final for webhook senders by the letter; with 503 they retry (CCW-IDM-5).
            detail = "A request with this key is in progress"
            raise self._refusal(409 if s.api else 503, "in-progress", detail, self._wait())
        outcome = found.outcome
        headers = {**outcome.headers, "idempotency-replayed": "true"}
        return self.report(Answer(outcome.status, headers, outcome.body), "replayed")

    # Steps 7 and 8

    def settle(self, opened: Opened, result: object) -> Answer:
        """Keeps what the handler said, or frees the key; then there is an answer."""
        s = self._s
        result = Accepted() if result is None else result
        fault = result_fault(result, s.allow_multi_status)
        if fault is not None:
            return self.give_up(opened, ValueError(fault))
        if isinstance(result, RetryAfter):
            self._release(opened.holder)
            wait = _seconds(result.seconds) if result.seconds > 0 else self._wait()
            answer = self._problem(result.status, "retry-after", result.reason, wait)
            return self.report(answer, "retry-after", result.reason)
        if isinstance(result, Reject):
            answer = self._problem(result.status, "rejected", result.reason)
            if s.keep_rejects:
                self._keep(opened.holder, answer)
            else:
                self._release(opened.holder)
            return self.report(answer, "reject", result.reason)
        assert isinstance(result, Accepted)
        answer = self._accepted(opened.delivery, result)
        self._keep(opened.holder, answer)
        return self.report(answer, "accepted")

    def begin_transaction(self, holder: Holder) -> AbstractContextManager[StoreTransaction]:
        assert self._s.transactor is not None
        limit = None if self._s.timeout is None else self._s.timeout + _END_OF_TRANSACTION
        return self._s.transactor.begin(holder.scope, holder.token, limit)

    def accept_in(self, transaction: StoreTransaction, opened: Opened, result: Accepted) -> Answer:
        """Completes the key in the handler's transaction, or raises."""
        answer, holder = self._accepted(opened.delivery, result), opened.holder
        assert holder is not None
        outcome, now = _outcome_of(answer), self._s.clock()
        expires_at = now + self._s.window
        if not transaction.complete(holder.scope, holder.fingerprint, holder.token, outcome, now, expires_at):
            raise LeaseLostError("the lease ended before the handler did")
        return answer

    def undone(self, opened: Opened, error: BaseException) -> Answer:
        """The transaction did not come to its end, or it is not known whether it did. A key that was completed after all
        is not freed by this."""
        self._release(opened.holder)
        tell(lambda: self._s.hooks.on_error(error, "transaction"))
        answer = self._problem(503, "unavailable", "Unavailable, try again later", self._wait())
        return self.report(answer, "failed", "unavailable")

    def give_up(self, opened: Opened, error: BaseException) -> Answer:
        """The handler failed: the key is free, and a retry is a first request."""
        self._release(opened.holder)
        return self.failed(error, "handler")

    def _accepted(self, delivery: Delivery, result: Accepted) -> Answer:
        # Retry-After belongs only to answers that ask for a retry, never to an accepted delivery (EDS-RAF-1).
        headers = {name: value for name, value in result.headers.items() if name != "retry-after"}
        usual = self._s.profile.success(_identity_of(delivery))
        status = usual.status if result.status is None else result.status
        if result.content is not None and result.status is None and status == 204:
            status = 200
        if status in (204, 205):  # there is no content, so it has no type
            return Answer(status, {name: value for name, value in headers.items() if name != "content-type"})
        if result.content is not None:
            return Answer(status, headers, result.content)
        return Answer(status, {**usual.headers, **headers}, usual.body)

    def _keep(self, holder: Holder | None, answer: Answer) -> None:
        """Keeps the outcome before it is answered. If that fails the effect has happened all the same, so the sender is
        told so; until the lease ends a repeat is told to wait, after it the handler may run again."""
        if holder is None:
            return
        s = self._s
        outcome, now = _outcome_of(answer), s.clock()
        try:
            kept = s.store.complete(holder.scope, holder.fingerprint, holder.token, outcome, now, now + s.window)
        except Exception as error:
            self._tell_error(error, "keep result")
            return
        if not kept:
            self._tell_error(LeaseLostError("the lease ended before the handler did"), "keep result")

    def _release(self, holder: Holder | None) -> None:
        if holder is None:
            return
        try:
            self._s.store.release(holder.scope, holder.token)
        except Exception as error:
            self._tell_error(error, "release key")  # the lease frees it

    def _tell_error(self, error: Exception, where: str) -> None:
        tell(lambda: self._s.hooks.on_error(error, where))


def _outcome_of(answer: Answer) -> Outcome:
    headers = {name: value for name, value in answer.headers.items() if name not in _NEVER_KEPT}
    body = answer.body if answer.body is not None and len(answer.body) <= _MAX_KEPT_BODY else None
    return Outcome(answer.status, headers, body)


def _seconds(seconds: float) -> dict[str, str]:
    return {"retry-after": str(math.ceil(seconds))}


def _identity_of(delivery: Delivery) -> Identity:
    return Identity(delivery.key, delivery.event_id, delivery.event_type, delivery.delivery_id, delivery.attempt)


def _path_of(url: str) -> str:
    match = _PATH.match(url)
    return (match.group(1) if match else "") or "/"
