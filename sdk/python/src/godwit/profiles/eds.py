"""Deliveries after the Event and Webhook Delivery Semantics draft: signed with HTTP Message Signatures (RFC 9421), and
identified by Idempotency-Key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Union

from ..crypto.decode import from_base64
from ..crypto.keys import Ed25519Key, HmacKey
from ..httpsig.components import SignedMessage, component
from ..httpsig.verify import DELIVERY_COMPONENTS, SignatureKey, SignaturePolicy, verify_signatures
from ..idempotency import KeyPolicy, parse_key
from .profile import Answer, Authentication, Check, Identity, Message, Profile
from .shared import positive_integer

KeyMaterial = Union[str, bytes]
"""Base64 text as the server shows it, or bytes."""


@dataclass(frozen=True)
class EdsKey:
    """A key that verifies: a shared secret, or an Ed25519 public key."""

    id: str
    """The keyid of the signatures."""
    principal: str
    """Whose key it is. Several keys of one owner are one principal, so that a rotation keeps it (EDS-KEY-6)."""
    secret: KeyMaterial | None = field(default=None, repr=False)
    public_key: KeyMaterial | None = None


class Eds(Profile):
    name: ClassVar[str] = "eds"
    signs_time: ClassVar[bool] = True
    problems: ClassVar[bool] = True
    key_source: ClassVar[str] = "the header Idempotency-Key"

    def __init__(
        self,
        keys: Iterable[EdsKey] = (),
        *,
        key_by_id: Callable[[str], EdsKey | None] | None = None,
        required_components: Sequence[str] = DELIVERY_COMPONENTS,
        tag: str | None = None,
        put_agreement: str = "",
    ) -> None:
        """`keys`: the accepted keys. `key_by_id` finds one that is not among them, for example in a database.

        `required_components`: the components that must be signed. Include content-digest and idempotency-key: an
        unsigned field can be forged. Defaults to method, address, digest, type and key.
        `tag`: only signatures with this tag count; defaults to any.
        `put_agreement`: a reference to the agreement that lets the producer use PUT; defaults to POST alone (EDS-MTH-2).
        """
        self._keys: dict[str, SignatureKey] = {}
        for key in keys:
            if key.id in self._keys:
                raise ValueError(f"eds: key {key.id} is there twice")
            self._keys[key.id] = _signature_key(key)
        if not self._keys and key_by_id is None:
            raise ValueError("eds: at least one key is required")
        for name in required_components:
            component(name)
        for needed in ("content-digest", "idempotency-key"):
            if needed not in required_components:
                raise ValueError(f"eds: {needed} is not among the components that have to be signed")
        self.signs_target = "@target-uri" in required_components
        self._find = key_by_id
        self._required = tuple(required_components)
        self._tag = tag
        self.methods = ("POST", "PUT") if put_agreement else ("POST",)

    def _key_by_id(self, key_id: str) -> SignatureKey | None:
        """A relay signs with its own key under an id that also says whose event it is: `<key>/<origin>`. Whose it is makes
        another principal, so that one producer's keys do not suppress another's events (EDS T-14)."""
        own = self._lookup(key_id)
        name, _, origin = key_id.partition("/")
        if own is not None or not origin:
            return own
        relay = self._lookup(name)
        return None if relay is None else replace(relay, principal=f"{relay.principal}/{origin}")

    def _lookup(self, key_id: str) -> SignatureKey | None:
        key = self._keys.get(key_id)
        if key is not None or self._find is None:
            return key
        found = self._find(key_id)
        return None if found is None else _signature_key(found)

    def authenticate(self, message: Message, check: Check) -> Authentication:
        required = self._required
        if "idempotency-key" not in message.headers:
            # A key that is not there cannot be signed: such a request has to prove the rest, so that its sender is told
            # what is missing (IKH-ERR-1). It goes no further than that.
            required = tuple(name for name in required if name != "idempotency-key")
        verified = verify_signatures(
            SignedMessage(message.headers, message.method, message.url),
            message.body,
            SignaturePolicy(
                self._key_by_id,
                check.now,
                check.tolerance,
                required,
                self._tag,
                require_nonce=check.tolerance is not None,
            ),
        )
        nonce = f"{verified.key_id} {verified.nonce}" if verified.nonce else None
        return Authentication(verified.key.principal, signed_at=verified.created, nonce=nonce, covered=verified.covered)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        key = parse_key(message.headers.lines("idempotency-key"), policy)

        def signed(name: str) -> str | None:
            """A field that says something about the event is believed only if it is signed (EDS-SEC-THR-3)."""
            return message.headers.get(name) if name in authentication.covered else None

        return Identity(
            key,
            signed("godwit-event-id") or key,
            signed("godwit-event-type") or "",
            delivery_id=signed("godwit-delivery-id"),
            attempt=positive_integer(signed("godwit-attempt")),
        )

    def success(self, identity: Identity) -> Answer:
        return Answer(204)


def _signature_key(key: EdsKey) -> SignatureKey:
    if not key.principal:
        raise ValueError(f"eds: key {key.id} has no principal")
    if (key.secret is None) == (key.public_key is None):
        raise ValueError(f"eds: key {key.id} needs either a secret or a public key")
    if key.public_key is not None:
        return SignatureKey(key.principal, "ed25519", Ed25519Key(_material(key.id, key.public_key)))
    assert key.secret is not None
    secret = _material(key.id, key.secret)
    if len(secret) < 16:
        raise ValueError(f"eds: the secret of key {key.id} is shorter than 16 bytes")
    return SignatureKey(key.principal, "hmac-sha256", HmacKey(secret))


def _material(key_id: str, value: KeyMaterial) -> bytes:
    data = from_base64(value) if isinstance(value, str) else bytes(value)
    if data is None:
        raise ValueError(f"eds: key {key_id} is not base64")
    return data
