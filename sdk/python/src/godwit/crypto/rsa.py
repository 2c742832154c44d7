"""Verification of RSA signatures (PKCS #1 v1.5 with SHA-256, RFC 8017, section 8.2.2) in plain Python.

The expected padding is built and compared as a whole; nothing is parsed out of the signature.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .decode import from_base64

_PEM = re.compile(r"-----BEGIN (CERTIFICATE|PUBLIC KEY)-----(.+?)-----END \1-----", re.DOTALL)
_SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")
_RSA_ENCRYPTION = bytes.fromhex("06092a864886f70d010101")
_LEAST_BITS = 2048


@dataclass(frozen=True)
class RsaPublicKey:
    n: int
    e: int

    def verify(self, message: bytes, signature: bytes) -> bool:
        size = (self.n.bit_length() + 7) // 8
        number = int.from_bytes(signature, "big")
        if len(signature) != size or number >= self.n:
            return False
        suffix = _SHA256_PREFIX + hashlib.sha256(message).digest()
        expected = b"\x00\x01" + b"\xff" * (size - 3 - len(suffix)) + b"\x00" + suffix
        return hmac.compare_digest(pow(number, self.e, self.n).to_bytes(size, "big"), expected)

    def verify_any(self, message: bytes, signatures: Sequence[bytes]) -> bool:
        return any(self.verify(message, signature) for signature in signatures)


def rsa_key(pem: str) -> RsaPublicKey:
    """The key in the PEM of a certificate or of a public key. The certificate's own signature is not checked: the
    caller vouches for it."""
    match = _PEM.search(pem)
    der = None if match is None else from_base64("".join(match.group(2).split()))
    if match is None or der is None:
        raise ValueError("not the PEM of a certificate or a public key")
    try:
        key = _public_key(der if match.group(1) == "PUBLIC KEY" else _key_info(der))
    except IndexError:
        raise ValueError("the PEM is cut off") from None
    if key.n.bit_length() < _LEAST_BITS or key.e < 3 or not key.n & key.e & 1:
        raise ValueError(f"not an RSA key of {_LEAST_BITS} bits or more")
    return key


def _key_info(der: bytes) -> bytes:
    # Certificate ::= SEQUENCE { TBSCertificate ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity,
    # subject, subjectPublicKeyInfo … } … }
    certificate, _ = _element(der, 0)
    at, _ = _element(der, certificate)
    if der[at] == 0xA0:
        at = _element(der, at)[1]
    for _ in range(5):
        at = _element(der, at)[1]
    return der[at : _element(der, at)[1]]


def _public_key(der: bytes) -> RsaPublicKey:
    # SubjectPublicKeyInfo ::= SEQUENCE { SEQUENCE { algorithm, parameters }, BIT STRING { SEQUENCE { n, e } } }
    info, _ = _element(der, 0)
    algorithm, after = _element(der, info)
    if not der[algorithm:after].startswith(_RSA_ENCRYPTION):
        raise ValueError("not an RSA key")
    bits, _ = _element(der, after)
    numbers, _ = _element(der, bits + 1)
    n_at, n_end = _element(der, numbers)
    e_at, e_end = _element(der, n_end)
    return RsaPublicKey(int.from_bytes(der[n_at:n_end], "big"), int.from_bytes(der[e_at:e_end], "big"))


def _element(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins, and where it ends."""
    length = der[at + 1]
    content = at + 2
    if length > 0x80:
        digits = length & 0x7F
        if digits > 4:
            raise ValueError("not DER")
        length = int.from_bytes(der[content : content + digits], "big")
        content += digits
    if content + length > len(der):
        raise ValueError("the PEM is cut off")
    return content, content + length
