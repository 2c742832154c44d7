"""Where a receiver reports what it does: metrics, logs, alerts.

No hook ever gets a payload, a secret or a signature, and one that raises changes nothing about the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import SignatureReason
from ..headers import Headers
from .delivery import is_credential

ResultKind = Literal["accepted", "retry-after", "reject", "failed", "timeout", "replayed", "refused"]
DuplicateKind = Literal["completed", "in-progress", "other-payload"]


@dataclass(frozen=True)
class Receipt:
    profile: str
    method: str
    path: str
    ip: str | None


@dataclass(frozen=True)
class VerificationFailure:
    profile: str
    error: str
    reason: SignatureReason
    ip: str | None
    headers: Mapping[str, str]
    """The header fields; values of credentials are replaced."""
    recent: int
    """How many there were in the last minute, this one included: many of them are an attack or a lost secret."""


@dataclass(frozen=True)
class Duplicate:
    profile: str
    principal: str
    event_id: str
    kind: DuplicateKind


@dataclass(frozen=True)
class ResultReport:
    profile: str
    status: int
    """0 in a worker, which sends no answer."""
    kind: ResultKind
    reason: str = ""
    principal: str = ""
    event_id: str = ""
    event_type: str = ""


class Hooks:
    """Subclass it and override what you need. The methods of this class do nothing."""

    def on_receipt(self, receipt: Receipt) -> None:
        """Every request that reaches the receiver (CCW-RCV-14)."""

    def on_verification_failure(self, failure: VerificationFailure) -> None:
        """A request that is not authentic (CCW-RCV-10)."""

    def on_duplicate(self, duplicate: Duplicate) -> None:
        """A repeat: of something done, of something still going on, or of a key with another payload."""

    def on_result(self, result: ResultReport) -> None:
        """Every answer; and the end of a handler whose time was over when it was answered."""

    def on_error(self, error: BaseException, where: str) -> None:
        """Something of ours failed: the store, the handler, the inbox."""

    def on_warning(self, message: str) -> None:
        """The configuration is weaker than it could be. Reported once, when the receiver is made."""

    def on_dead(self, job_id: str, event_id: str, reason: str) -> None:
        """A worker gave a job of the inbox up."""

    def count(self, metric: str) -> None:
        """Counts: webhook.verification.failed (CCW-RCV-11)."""


class LoggingHooks(Hooks):
    """Writes to the logger `godwit`. What receivers use unless they are given others."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("godwit")

    def on_receipt(self, receipt: Receipt) -> None:
        self._logger.debug("webhook received: %s %s from %s", receipt.method, receipt.path, receipt.ip)

    def on_verification_failure(self, failure: VerificationFailure) -> None:
        headers = dict(failure.headers)
        self._logger.warning(
            "webhook not verified: %s, from %s, headers %s, %d in the last minute",
            failure.error, failure.ip, headers, failure.recent,
        )  # fmt: skip

    def on_duplicate(self, duplicate: Duplicate) -> None:
        self._logger.info("webhook repeated (%s): event %s", duplicate.kind, duplicate.event_id)

    def on_result(self, result: ResultReport) -> None:
        self._logger.debug("webhook %s: %d, event %s %s", result.kind, result.status, result.event_id, result.reason)

    def on_error(self, error: BaseException, where: str) -> None:
        self._logger.error("webhook receiver failed (%s)", where, exc_info=error)

    def on_warning(self, message: str) -> None:
        self._logger.warning("webhook receiver: %s", message)

    def on_dead(self, job_id: str, event_id: str, reason: str) -> None:
        self._logger.error("webhook given up: event %s, %s", event_id, reason)


def sanitized_headers(headers: Headers) -> dict[str, str]:
    """Header fields fit for a log."""
    return {name: "[redacted]" if is_credential(name) else value[:256] for name, value in headers}


def tell(hook: Callable[[], None]) -> None:
    """Calls a hook; what it raises is dropped, because a broken metric must not lose an event."""
    try:
        hook()
    except Exception:
        logging.getLogger("godwit").debug("a hook failed", exc_info=True)
