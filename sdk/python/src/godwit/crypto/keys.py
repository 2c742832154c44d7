"""One interface for all keys that verify."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Literal, Protocol

from . import ed25519
from .rsa import rsa_key

__all__ = ["Ed25519Key", "HmacKey", "VerifyingKey", "rsa_key"]


class VerifyingKey(Protocol):
    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature is valid. It does not raise for an invalid one."""
        ...

    def verify_any(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether one of the signatures is valid."""
        ...


class _Verifies(Protocol):
    def verify(self, message: bytes, signature: bytes) -> bool: ...


class HmacKey:
    __slots__ = ("_hash", "_secret")

    def __init__(self, secret: bytes, hash_name: Literal["sha1", "sha256"] = "sha256") -> None:
        if not secret:
            raise ValueError("a secret must not be empty")
        self._secret = secret
        self._hash = hash_name

    def verify(self, message: bytes, signature: bytes) -> bool:
        return self.verify_any(message, [signature])

    def verify_any(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        good, expected = False, hmac.digest(self._secret, message, self._hash)
        for signature in signatures:
            # compare_digest takes constant time; plain == would tell how much of a guess is right (CCW-SIG-17).
            good |= hmac.compare_digest(expected, signature)
        return good

    def __repr__(self) -> str:
        return "HmacKey(…)"


class Ed25519Key:
    """An Ed25519 public key. `portable` keeps to plain Python although `cryptography` is installed."""

    __slots__ = ("_fast", "_public")

    def __init__(self, public: bytes, portable: bool = False) -> None:
        if not ed25519.is_public_key(public):
            raise ValueError("not an Ed25519 public key of 32 bytes, or one that makes forging easy")
        self._public = public
        self._fast = None if portable else _fast_verifier(public)

    def verify(self, message: bytes, signature: bytes) -> bool:
        if self._fast is not None:
            return self._fast.verify(message, signature)
        return ed25519.verify(self._public, message, signature)

    def verify_any(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        return any(self.verify(message, signature) for signature in signatures)


def _fast_verifier(public: bytes) -> _Verifies | None:
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return None
    try:
        key = Ed25519PublicKey.from_public_bytes(public)
    except UnsupportedAlgorithm:  # as of an OpenSSL in FIPS mode
        return None

    class Fast:
        def verify(self, message: bytes, signature: bytes) -> bool:
            try:
                key.verify(signature, message)
            except InvalidSignature:
                return False
            return True

    return Fast()
