"""Verification of the signatures on a request.

One good signature is enough; one that makes no sense, perhaps of another hop, does not spoil the others. The algorithm
belongs to the key: an `alg` parameter can confirm it, never choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from ..crypto.keys import VerifyingKey
from ..errors import SignatureReason, WebhookSignatureError
from .components import Component, SignedMessage, base_line, component, read_component
from .digest import verify_content_digest
from .structured import InnerList, Item, Member, StructuredFieldError, parse_dictionary, serialize_member

DELIVERY_COMPONENTS = ("@method", "@target-uri", "content-digest", "content-type", "idempotency-key")
"""Components that a delivery's signature must cover: method, URL, content, media type and idempotency key."""

V = TypeVar("V", str, int)

_MAX_SIGNATURES = 16
_MAX_COMPONENTS = 64
_MAX_FIELD_LENGTH = 32 << 10

_PROGRESS: Mapping[SignatureReason, int] = {
    "missing": 0,
    "malformed": 1,
    "malformed-timestamp": 1,
    "missing-component": 2,
    "unknown-key": 3,
    "algorithm-mismatch": 4,
    "mismatch": 5,
    "digest-mismatch": 6,
    "from-future": 7,
    "too-old": 7,
    "expired": 7,
    "replayed": 8,
}
"""How far verification got. Of several failed signatures, the one that got furthest explains most."""


@dataclass(frozen=True)
class SignatureKey:
    principal: str
    algorithm: Literal["hmac-sha256", "ed25519"]
    key: VerifyingKey


@dataclass(frozen=True)
class SignaturePolicy:
    key_by_id: Callable[[str], SignatureKey | None]
    now: float
    """The receiver's clock in Unix seconds."""
    tolerance: float | None
    """Largest age, and largest lead, in seconds; None: time is not checked."""
    required_components: Sequence[str] = DELIVERY_COMPONENTS
    tag: str | None = None
    """Only signatures with this tag count. Defaults to any."""
    require_nonce: bool = False


@dataclass(frozen=True)
class VerifiedSignature:
    key: SignatureKey
    key_id: str
    label: str
    created: int | None
    expires: int | None
    nonce: str | None
    covered: frozenset[str]
    """Names of the fields that the signature covers as a whole."""


def verify_signatures(message: SignedMessage, body: bytes, policy: SignaturePolicy) -> VerifiedSignature:
    inputs = _dictionary(message, "signature-input")
    values = _dictionary(message, "signature")
    if len(inputs) > _MAX_SIGNATURES:
        raise WebhookSignatureError("too many signatures", "malformed")
    best: WebhookSignatureError | None = None
    for label, member in inputs.items():
        if policy.tag is not None and not (isinstance(member, InnerList) and member.params.get("tag") == policy.tag):
            continue
        try:
            return _verify_one(message, body, label, member, values.get(label), policy)
        except (WebhookSignatureError, StructuredFieldError) as error:
            verdict = _as_verdict(error)
            if best is None or _PROGRESS[verdict.reason] > _PROGRESS[best.reason]:
                best = verdict
    raise best or WebhookSignatureError("no signature", "missing")


def _as_verdict(error: WebhookSignatureError | StructuredFieldError) -> WebhookSignatureError:
    return error if isinstance(error, WebhookSignatureError) else WebhookSignatureError(str(error), "malformed")


def _dictionary(message: SignedMessage, name: str) -> dict[str, Member]:
    lines = message.headers.lines(name)
    if not lines:
        raise WebhookSignatureError(f"no {name}", "missing")
    if sum(map(len, lines)) > _MAX_FIELD_LENGTH:
        raise WebhookSignatureError(f"{name} is too long", "malformed")
    try:
        return parse_dictionary(lines)
    except StructuredFieldError as error:
        raise _as_verdict(error) from error


def _verify_one(
    message: SignedMessage, body: bytes, label: str, given: Member, value: Member | None, policy: SignaturePolicy
) -> VerifiedSignature:
    if not isinstance(given, InnerList):
        raise WebhookSignatureError(f"signature {label} lists no components", "malformed")
    if not isinstance(value, Item) or not isinstance(value.value, bytes):
        raise WebhookSignatureError(f"signature {label} has no value", "malformed")
    components = covered(given)
    params = _read_params(given)
    _check_coverage(components, params, policy)
    key = policy.key_by_id(params.key_id)
    if key is None:
        raise WebhookSignatureError("no key is known by this keyid", "unknown-key")
    if params.alg is not None and params.alg != key.algorithm:
        raise WebhookSignatureError("the key has another algorithm", "algorithm-mismatch")
    if not key.key.verify(signature_base(message, components, given).encode("ascii"), value.value):
        raise WebhookSignatureError("the signature does not fit the message", "mismatch")
    _check_digest(message, body, components)
    _check_times(params, policy)
    whole = frozenset(c.name for c in components if c.key is None and not c.tr and not c.req)
    return VerifiedSignature(key, params.key_id, label, params.created, params.expires, params.nonce, whole)


def signature_base(message: SignedMessage, components: Sequence[Component], given: InnerList) -> str:
    """The text that is signed (RFC 9421, section 2.5)."""
    lines = [base_line(message, c) for c in components]
    return "\n".join([*lines, f'"@signature-params": {serialize_member(given)}'])


def covered(given: InnerList) -> list[Component]:
    if len(given.items) > _MAX_COMPONENTS:
        raise WebhookSignatureError("too many components", "malformed")
    components = [read_component(item) for item in given.items]
    if len(set(components)) != len(components):
        raise WebhookSignatureError("a component occurs twice", "malformed")
    return components


@dataclass(frozen=True)
class _Params:
    key_id: str
    alg: str | None
    nonce: str | None
    created: int | None
    expires: int | None


def _read_params(given: InnerList) -> _Params:
    def typed(name: str, kind: type[V]) -> V | None:
        value = given.params.get(name)
        if value is None or type(value) is kind:  # not isinstance: a flag is no time
            return value
        raise WebhookSignatureError(f"parameter {name} has the wrong type", "malformed")

    return _Params(
        typed("keyid", str) or "", typed("alg", str), typed("nonce", str), typed("created", int), typed("expires", int)
    )


def _check_coverage(components: Sequence[Component], params: _Params, policy: SignaturePolicy) -> None:
    for required in policy.required_components:
        if component(required) not in components:
            raise WebhookSignatureError(f"{required} is not signed", "missing-component")
    if policy.tolerance is not None and params.created is None:
        raise WebhookSignatureError("the signature has no time of creation", "missing-component")
    if policy.require_nonce and not params.nonce:
        raise WebhookSignatureError("the signature has no nonce", "missing-component")


def _check_digest(message: SignedMessage, body: bytes, components: Sequence[Component]) -> None:
    digests = [c.key for c in components if c.name == "content-digest" and not c.tr and not c.req]
    if not digests:
        return
    members = [key for key in digests if key is not None]
    only = members if len(members) == len(digests) else None
    verify_content_digest(message.headers.lines("content-digest"), body, only)


def _check_times(params: _Params, policy: SignaturePolicy) -> None:
    if policy.tolerance is not None and params.created is not None:
        if policy.now - params.created > policy.tolerance:
            raise WebhookSignatureError("the signature is too old", "too-old")
        if params.created - policy.now > policy.tolerance:
            raise WebhookSignatureError("the signature is from the future", "from-future")
    if params.expires is not None and params.expires < policy.now:
        raise WebhookSignatureError("the signature has expired", "expired")
