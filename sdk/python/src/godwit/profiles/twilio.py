"""Twilio: `X-Twilio-Signature` is base64 of HMAC-SHA1 over the full public address and, for a form, its parameters in
order of their names. JSON is bound by its digest in the query parameter bodySHA256, which the address covers."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import ClassVar
from urllib.parse import parse_qsl

from ..crypto.decode import from_base64, from_hex
from ..errors import WebhookSignatureError
from ..httpsig.target import split_uri
from ..idempotency import KeyPolicy
from .profile import Authentication, Check, Identity, Message, Profile
from .shared import Secrets, any_verifies, body_key, bounded_key, decoded, mismatch, required, text_keys

_PORT = re.compile(r":([0-9]*)$")


class Twilio(Profile):
    name: ClassVar[str] = "twilio"
    signs_time: ClassVar[bool] = False
    signs_target = True
    key_source: ClassVar[str] = "the header I-Twilio-Idempotency-Token; else the message or call and its status"

    def __init__(self, secrets: Secrets, *, principal: str = "twilio") -> None:
        """`secrets`: the auth tokens that are good. `principal`: who sends here; deduplication is per principal."""
        self._keys = text_keys(self.name, secrets, "sha1")
        self._principal = principal

    def authenticate(self, message: Message, check: Check) -> Authentication:
        signatures = decoded([from_base64(required(message, "x-twilio-signature"))])
        params = _sorted_params(message.body) if _is_form(message) else _digest_bound(message)
        good = False
        for url in _spellings(message.url):
            good |= any_verifies(self._keys, (url + params).encode("utf-8", "replace"), signatures)
        if not good:
            raise mismatch()
        return Authentication(self._principal)

    def identify(self, message: Message, authentication: Authentication, policy: KeyPolicy) -> Identity:
        params = dict(reversed(_form_params(message.body))) if _is_form(message) else {}

        def first(*names: str) -> str | None:
            return next((params[name] for name in names if params.get(name)), None)

        subject = first("MessageSid", "CallSid")
        status = first("MessageStatus", "CallStatus", "SmsStatus") or ""
        key = message.headers.get("i-twilio-idempotency-token") or (
            f"{subject}:{status}" if subject else body_key(message.body)
        )
        key = bounded_key(key, "I-Twilio-Idempotency-Token")
        return Identity(key, subject or key, status)


def _is_form(message: Message) -> bool:
    media_type = (message.headers.get("content-type") or "").partition(";")[0]
    return media_type.strip().lower() == "application/x-www-form-urlencoded"


def _form_params(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    except ValueError:  # more fields than the standard library takes
        raise WebhookSignatureError("the form cannot be read", "malformed") from None


def _sorted_params(body: bytes) -> str:
    """Names in order, and the distinct values of a repeated name in order as well."""
    return "".join(name + value for name, value in sorted(set(_form_params(body))))


def _digest_bound(message: Message) -> str:
    query = dict(parse_qsl(split_uri(message.url).query or "", keep_blank_values=True))
    claimed = from_hex(query.get("bodySHA256", ""))
    if claimed is None or not hmac.compare_digest(claimed, hashlib.sha256(message.body).digest()):
        raise WebhookSignatureError("bodySHA256 does not fit the body", "digest-mismatch")
    return ""


def _spellings(url: str) -> list[str]:
    """Twilio signs some addresses with the port and some without."""
    uri = split_uri(url)
    bare = _PORT.sub("", uri.host)
    match = _PORT.search(uri.host)
    port = (match.group(1) if match else "") or ("443" if uri.scheme == "https" else "80")
    rest = uri.path_and_query
    return list(dict.fromkeys([url, f"{uri.scheme}://{bare}{rest}", f"{uri.scheme}://{bare}:{port}{rest}"]))
