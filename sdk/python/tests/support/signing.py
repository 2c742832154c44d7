"""Senders: they sign with the standard library, independently of the package."""

import base64
import hashlib
import hmac
import json
import time
import uuid
from dataclasses import dataclass, field, replace

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
OTHER_SECRET = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA"
EDS_SECRET = b"0123456789abcdef0123456789abcdef"
EDS_SECRET_TEXT = base64.b64encode(EDS_SECRET).decode()
KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'


@dataclass(frozen=True)
class Signed:
    """A request as a sender makes it."""

    headers: dict
    body: bytes
    url: str = "https://hooks.example.com/in"
    method: str = "POST"

    def having(self, **headers):
        """The request with headers changed, after it was signed. None takes one away."""
        changed = dict(self.headers)
        for name, value in headers.items():
            name = name.replace("_", "-")
            for known in [k for k in changed if k.lower() == name.lower()]:
                del changed[known]
            if value is not None:
                changed[name] = value
        return replace(self, headers=changed)

    def header(self, name):
        return next(value for known, value in self.headers.items() if known.lower() == name.lower())


def seconds():
    return int(time.time())


def _bytes(body):
    return body.encode() if isinstance(body, str) else body


def mac(key, *parts):
    return hmac.new(_bytes(key), b"".join(map(_bytes, parts)), hashlib.sha256)


def sign_eds(
    body,
    *,
    key=...,
    url="https://hooks.example.com/in",
    method="POST",
    at=None,
    created=...,
    nonce=...,
    key_id="key-1",
    secret=EDS_SECRET,
    signer=None,
    alg=None,
    content_type="application/json",
    components=None,
    event_type=None,
    headers=None,
):
    """A delivery of profile eds, with RFC 9421 done by hand. `key` is with quotes, as on the wire; None: no header."""
    body = _bytes(body)
    key = f'"{uuid.uuid4()}"' if key is ... else key
    fields = {
        "Content-Type": content_type,
        "Content-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:",
    }
    if key is not None:
        fields["Idempotency-Key"] = key
    if event_type is not None:
        fields["Godwit-Event-Type"] = event_type
    if components is None:
        components = ["@method", "@target-uri", "content-digest", "content-type"]
        components += ["idempotency-key"] if key is not None else []
        components += ["godwit-event-type"] if event_type is not None else []
    lower = {name.lower(): value.strip() for name, value in fields.items()}
    values = {"@method": method, "@target-uri": url, **lower}
    created = (seconds() if at is None else at) if created is ... else created
    nonce = str(uuid.uuid4()) if nonce is ... else nonce
    params = "(" + " ".join(f'"{c}"' for c in components) + ")"
    params += f";created={created}" if created is not None else ""
    params += f';keyid="{key_id}"'
    params += f';alg="{alg}"' if alg is not None else ""
    params += f';nonce="{nonce}"' if nonce is not None else ""
    base = "\n".join([*(f'"{c}": {values[c]}' for c in components), f'"@signature-params": {params}'])
    signature = mac(secret, base.encode("latin-1")).digest() if signer is None else signer(base.encode())
    fields["Signature-Input"] = f"sig1={params}"
    fields["Signature"] = f"sig1=:{base64.b64encode(signature).decode()}:"
    return Signed({**fields, **(headers or {})}, body, url, method)


def sign_ojs(body, *, secrets=(SECRET,), delivery_id=None, at=None, url="https://hooks.example.com/ojs"):
    body = _bytes(body)
    at = str(seconds() if at is None else at)
    return Signed(
        {
            "Content-Type": "application/json",
            "X-OJS-Delivery-ID": delivery_id or f"del_{uuid.uuid4()}",
            "X-OJS-Timestamp": at,
            "X-OJS-Signature": ",".join(f"sha256={mac(s, f'{at}.', body).hexdigest()}" for s in secrets),
        },
        body,
        url,
    )


def cybercube_event(event_id=None, event_type="project.created"):
    moment = "2026-01-17T12:00:00Z"
    return json.dumps(
        {
            "id": event_id or f"evt_{uuid.uuid4().hex[:26]}",
            "type": event_type,
            "api_version": "2026-01-17",
            "created_at": moment,
            "data": {"object": {"id": "PRJ-X2M8KD-F", "object": "project", "name": "A", "created_at": moment}},
            "account_id": "ACC-9F4K7Q-T",
            "livemode": True,
        }
    )


def sign_cybercube(body, *, secrets=(SECRET,), attempt=1, at=None, url="https://hooks.example.com/cybercube"):
    body = _bytes(body)
    at = str(seconds() if at is None else at)
    return Signed(
        {
            "Content-Type": "application/json",
            "X-Webhook-ID": f"wh_{uuid.uuid4().hex[:24]}",
            "X-Webhook-Delivery-Attempt": str(attempt),
            "X-Webhook-Timestamp": at,
            "X-Webhook-Signature": ",".join(f"sha256={mac(s, f'{at}.', body).hexdigest()}" for s in secrets),
        },
        body,
        url,
    )


def sign_standard(body, *, message_id=None, at=None):
    body = _bytes(body)
    message_id = message_id or f"msg_{uuid.uuid4()}"
    at = str(seconds() if at is None else at)
    key = base64.b64decode(SECRET[6:] + "=")
    signature = base64.b64encode(mac(key, f"{message_id}.{at}.", body).digest()).decode()
    return Signed(
        {
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{signature}",
        },
        body,
        "https://hooks.example.com/standard",
    )


def sign_github(body, *, delivery_id=None):
    body = _bytes(body)
    return Signed(
        {
            "Content-Type": "application/json",
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": delivery_id or str(uuid.uuid4()),
            "X-Hub-Signature-256": f"sha256={mac(SECRET, body).hexdigest()}",
        },
        body,
        "https://hooks.example.com/github",
    )


def sign_slack(body, *, at=None):
    body = _bytes(body)
    at = str(seconds() if at is None else at)
    return Signed(
        {
            "Content-Type": "application/json",
            "X-Slack-Request-Timestamp": at,
            "X-Slack-Signature": f"v0={mac(SECRET, f'v0:{at}:', body).hexdigest()}",
        },
        body,
        "https://hooks.example.com/slack",
    )


@dataclass(frozen=True)
class Ed25519Signer:
    """Signs as RFC 8032, section 5.1.6, says. For tests: it takes no care of time."""

    seed: bytes = field(default=b"\x07" * 32)

    def _expanded(self):
        digest = hashlib.sha512(self.seed).digest()
        scalar = int.from_bytes(digest[:32], "little") & ~7 & ((1 << 254) - 1) | 1 << 254
        return scalar, digest[32:]

    @property
    def public(self):
        return _multiple(self._expanded()[0])

    def __call__(self, message):
        from godwit.crypto import ed25519

        scalar, prefix = self._expanded()
        r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % ed25519._L
        encoded = _multiple(r)
        k = int.from_bytes(hashlib.sha512(encoded + self.public + message).digest(), "little") % ed25519._L
        return encoded + ((r + k * scalar) % ed25519._L).to_bytes(32, "little")


def _multiple(scalar):
    from godwit.crypto import ed25519

    return ed25519._encode(ed25519._double_multiply(scalar, ed25519._BASE, 0, ed25519._IDENTITY))
