"""Errors as the sender sees them: problem details (RFC 9457) for eds, {"error": …} for the others."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..profiles.profile import Answer, Profile, json_answer

TITLES: Mapping[str, str] = {
    "method-not-allowed": "Method not allowed",
    "too-large": "Payload too large",
    "too-early": "Too early",
    "rate-limited": "Rate limit exceeded",
    "unauthenticated": "Not authenticated",
    "key-missing": "Idempotency-Key is missing",
    "key-malformed": "Idempotency-Key is malformed",
    "key-length": "Idempotency-Key has the wrong length",
    "payload-malformed": "Payload is malformed",
    "payload-invalid": "Payload is not valid",
    "in-progress": "A request with this key is in progress",
    "key-reused": "Idempotency-Key was used with another payload",
    "unavailable": "Unavailable",
    "rejected": "Rejected",
    "retry-after": "Try again later",
    "internal": "Internal error",
}


def described_by(docs_url: str) -> str:
    """URL of the page that states the policy. Every error links to it (IKH K-8)."""
    return f'<{docs_url}>; rel="describedby"; type="text/html"'


def problem_answer(
    profile: Profile, docs_url: str, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Answer:
    all_headers = {"link": described_by(docs_url), **(headers or {})}
    if not profile.problems:
        return json_answer(status, {"error": detail}, all_headers)
    problem = {"type": f"{docs_url}#{code}", "title": TITLES[code], "status": status, "detail": detail}
    body = json.dumps(problem, separators=(",", ":")).encode()
    return Answer(status, {"content-type": "application/problem+json", **all_headers}, body)
