"""Verification of Ed25519 signatures (RFC 8032, section 5.1.7) in plain Python.

Points are in extended homogeneous coordinates (X : Y : Z : T). The check is the one of the common libraries: the point
[S]B - [k]A is computed and its encoding compared with the first half of the signature, so encodings that are not
canonical never match.
"""

from __future__ import annotations

import hashlib

Point = tuple[int, int, int, int]

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
_IDENTITY: Point = (0, 1, 1, 0)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is valid. It does not raise for malformed input."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    a = _decode(public_key)
    if a is None:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= _L:  # another spelling of the same signature
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % _L
    minus_a = (_P - a[0], a[1], a[2], _P - a[3])
    return _encode(_double_multiply(s, _BASE, k, minus_a)) == signature[:32]


def is_public_key(data: bytes) -> bool:
    """Whether it is a safe public key. A point of small order, such as 32 zero bytes, is not: an attacker can make
    signatures for it without a secret."""
    point = _decode(data) if len(data) == 32 else None
    return point is not None and _encode(_double(_double(_double(point)))) != _encode(_IDENTITY)


def _add(p: Point, q: Point) -> Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _double(p: Point) -> Point:
    a = p[0] * p[0] % _P
    b = p[1] * p[1] % _P
    c = 2 * p[2] * p[2] % _P
    h = a + b
    e = h - (p[0] + p[1]) ** 2 % _P
    g = a - b
    f = c + g
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _double_multiply(s: int, p: Point, k: int, q: Point) -> Point:
    """[s]p + [k]q with one row of doublings for both."""
    both = _add(p, q)
    total = _IDENTITY
    for bit in range(max(s.bit_length(), k.bit_length()) - 1, -1, -1):
        total = _double(total)
        in_s, in_k = s >> bit & 1, k >> bit & 1
        if in_s and in_k:
            total = _add(total, both)
        elif in_s:
            total = _add(total, p)
        elif in_k:
            total = _add(total, q)
    return total


def _recover_x(y: int, sign: int) -> int | None:
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    if square == 0:
        return None if sign else 0
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P != 0:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if (x * x - square) % _P != 0:
        return None
    return _P - x if x & 1 != sign else x


def _decode(data: bytes) -> Point | None:
    y = int.from_bytes(data, "little")
    sign = y >> 255
    y &= (1 << 255) - 1
    if y >= _P:
        return None
    x = _recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _encode(p: Point) -> bytes:
    inverse = pow(p[2], _P - 2, _P)
    x, y = p[0] * inverse % _P, p[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _base_point() -> Point:
    y = 4 * pow(5, _P - 2, _P) % _P
    x = _recover_x(y, 0)
    assert x is not None
    return x, y, 1, x * y % _P


_BASE = _base_point()
