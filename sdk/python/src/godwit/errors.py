"""Reasons for refusing a request, as values that programs can log, count and compare."""

from __future__ import annotations

from typing import Literal

SignatureReason = Literal[
    "missing",
    "malformed",
    "malformed-timestamp",
    "missing-component",
    "unknown-key",
    "algorithm-mismatch",
    "mismatch",
    "digest-mismatch",
    "too-old",
    "from-future",
    "expired",
    "replayed",
]
"""Why a request was not accepted as signed. The values are stable."""

DeliveryErrorCode = Literal["key-missing", "key-malformed", "key-length", "payload-malformed", "payload-invalid"]


class WebhookSignatureError(Exception):
    """The verdict that a request is not what it claims to be.

    Whatever the headers hold, verification raises this class and no other (OJS-SIG-10, CCW-SDK-5); any other exception
    means that verification itself could not be done.
    """

    def __init__(self, message: str, reason: SignatureReason = "mismatch") -> None:
        super().__init__(message)
        self.message = message
        self.reason: SignatureReason = reason


class DeliveryError(Exception):
    """The delivery is authentic, but what it carries cannot be taken: no key, a malformed one, a body that is no JSON."""

    def __init__(self, code: DeliveryErrorCode, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.code: DeliveryErrorCode = code


class IncompleteBodyError(Exception):
    """The sender disconnected before its body was complete: nothing can be verified or answered."""
