"""The page that publishes the receiver's policy (IKH-RSP-3). It is made from the running configuration."""

from __future__ import annotations

from html import escape

from .problem import TITLES
from .settings import Settings


def policy_page(s: Settings) -> str:
    rules = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _rules(s))
    errors = "\n".join(
        f'<tr id="{code}"><td>{status}</td><td>{escape(TITLES[code])}</td><td>{escape(text)}</td></tr>'
        for status, code, text in _errors(s)
    )
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Webhook receiver: idempotency policy</title></head>
<body>
<h1>Webhook receiver: idempotency policy</h1>
<dl>
{rules}
</dl>
<h2>Errors</h2>
<table>
<tr><th>Status</th><th>Error</th><th>When, and what to do</th></tr>
{errors}
</table>
</body>
</html>
"""


def _rules(s: Settings) -> list[tuple[str, str]]:
    policy = s.key_policy
    fresh = (
        "not checked"
        if s.tolerance is None
        else f"the signed time may differ from ours by at most {s.tolerance:g} seconds"
    )
    rules = [
        ("Profile", s.profile.name),
        ("Methods", ", ".join(s.profile.methods)),
        ("Size", f"at most {s.limit} bytes"),
        ("Authentication", "required on every request, over the raw bytes"),
        ("Freshness", fresh),
        ("Key", f"required; taken from {s.profile.key_source}"),
    ]
    if s.profile.name == "eds":
        length = f"{policy.min_length} to {policy.max_length} printable ASCII characters"
        lenient = "; a bare value is accepted as well" if policy.lenient else ""
        rules.append(
            ("Key format", f"one structured-field String (RFC 9651) in double quotes, {length}{lenient}"),
        )
    if not s.dedup:
        off = "off: replays are refused by their signed time and nonce alone; handlers must bear duplicates"
        return [*rules, ("Deduplication", off)]
    address = "endpoint URI" if s.profile.signs_target else "path of the endpoint"
    compared = "on: a key may not be used again with another payload"
    window = f"{s.window / 3600:g} hours ({s.window:.0f} seconds)"
    return [
        *rules,
        ("Key scope", f"unique per authenticated producer and {address}"),
        (
            "Expiry",
            f"a key is remembered for {window} after the first request with it has completed; then it is a new one",
        ),
        ("Fingerprint", "off: a repeat is told by its key alone" if s.fingerprint is None else compared),
        (
            "Repeats",
            "a completed request's repeat gets the stored answer again, with the header Idempotency-Replayed: true",
        ),
    ]


def _errors(s: Settings) -> list[tuple[int, str, str]]:
    correct = "Correct the request before sending it again."
    wait = "come again later, unchanged"
    dedup = [
        (409 if s.api else 503, "in-progress", f"A request with this key is being processed: {wait}."),
        (422, "key-reused", f"The key was used with another payload. {correct}"),
    ]
    return [
        (400, "key-missing", f"The key is missing. {correct}"),
        (400, "key-malformed", f"The key does not have the published format. {correct}"),
        (400, "key-length", f"The key is too short or too long. {correct}"),
        (400, "payload-malformed", f"The payload cannot be read. {correct}"),
        (400, "payload-invalid", f"The payload is not what it should be. {correct}"),
        *(dedup if s.dedup else []),
        (401, "unauthenticated", "The signature is missing, wrong, or not fresh. Sign anew before sending again."),
        (405, "method-not-allowed", "Another method is needed; see Allow."),
        (413, "too-large", "The payload is too large."),
        (425, "too-early", "Sent as early data, which this receiver does not take: send it again after the handshake."),
        (429, "rate-limited", f"Too many requests: {wait}."),
        (503, "unavailable", f"The receiver cannot remember keys at the moment: {wait}."),
        (503, "retry-after", f"The event cannot be taken now: {wait}, no sooner than Retry-After says."),
        (500, "internal", f"The receiver failed: {wait}."),
    ]
