"""Standard Webhooks: `v1` (HMAC-SHA256 with what the base64 behind whsec_ encodes) and `v1a` (Ed25519, public key whpk_)
over `<id>.<timestamp>.<body>`. Entries of other versions are passed over."""

from __future__ import annotations

from typing import ClassVar

from ..crypto.decode import from_base64
from ..crypto.keys import Ed25519Key, HmacKey, VerifyingKey
from ..errors import WebhookSignatureError
from ..idempotency import KeyPolicy
from .profile import Answer, Authentication, Check, Identity, Message, Profile
from .shared import (
    MAX_SIGNATURES,
    Secrets,
    any_verifies,
    bounded_key,
    check_fresh,
    decoded,
    json_object,
    mismatch,
    secret_list,
    text_member,
    unix_seconds,
    wire_bytes,
)


class StandardWebhooks(Profile):
    name: ClassVar[str] = "standard-webhooks"
    signs_time: ClassVar[bool] = True
    key_source: ClassVar[str] = "the header webhook-id"

    def __init__(self, keys: Secrets, *, principal: str = "standard-webhooks") -> None:
        """`keys`: shared secrets (whsec_…) and public keys (whpk_…) that are good.

        `principal`: who sends here; deduplication is per principal.
        """
        self._principal = principal
        self._keys: dict[str, list[VerifyingKey]] = {"v1": [], "v1a": []}
        for text in secret_list(self.name, keys):
            data = from_base64(text.removeprefix("whsec_").removeprefix("whpk_"))
            if data is None:
                raise ValueError(f"{self.name}: a key is not base64")
            if text.startswith("whpk_"):
                self._keys["v1a"].append(Ed25519Key(data))
            else:
                self._keys["v1"].append(HmacKey(data))

    def authenticate(self, message: Message, check: Check) -> Authentication:
        identifier = message.headers.get("webhook-id")
        timestamp = message.headers.get("webhook-timestamp")
        header = message.headers.get("webhook-signature")
        if not identifier or not header:
            raise WebhookSignatureError("no signature", "missing")
        signed_at = unix_seconds(timestamp)
        check_fresh(signed_at, check)
        signed = wire_bytes(f"{identifier}.{timestamp}.") + message.body
        if not any(any_verifies(keys, signed, _entries(header, version)) for version, keys in self._keys.items()):
            raise mismatch()
        return Authentication(self._principal, signed_at=signed_at, proof=f"{identifier} {timestamp}")

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        key = bounded_key(message.headers.get("webhook-id"), "webhook-id")
        return Identity(key, key, text_member(json_object(message.body), "type") or "", delivery_id=key)

    def success(self, identity: Identity) -> Answer:
        return Answer(204)


def _entries(header: str, version: str) -> list[bytes]:
    prefix = f"{version},"
    given = [entry[len(prefix) :] for entry in header.split() if entry.startswith(prefix)]
    return decoded(map(from_base64, given[:MAX_SIGNATURES]))
