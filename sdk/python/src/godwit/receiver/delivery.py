"""An authenticated delivery, as the handler sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ..crypto.decode import from_base64, to_base64
from ..headers import Headers
from ..profiles.profile import Identity

_CREDENTIAL = re.compile(
    r"authorization|cookie|signature|secret|token|hmac|transmission-sig|api-?key|password", re.IGNORECASE
)


def is_credential(name: str) -> bool:
    """Fields that hold credentials: no one needs them after verification, so they are neither kept nor logged."""
    return _CREDENTIAL.search(name) is not None


@dataclass(frozen=True)
class Delivery:
    profile: str
    """Name of the profile."""
    principal: str
    """The authenticated producer."""
    key: str
    """The deduplication key: duplicates have the same."""
    event_id: str
    event_type: str
    """"" if the sender does not say."""
    delivery_id: str | None
    attempt: int | None
    """1 for the first, where the sender tells."""
    url: str
    headers: Headers = field(repr=False)
    """Header fields. Only what the profile signs is proven."""
    body: bytes = field(repr=False)
    """The payload, byte for byte."""
    received_at: datetime
    method: str = "POST"
    signed_at: datetime | None = None
    """The signed time; None if the sender signs none."""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type") or ""

    def text(self) -> str:
        """The payload as text. Bytes that are not UTF-8 become U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The payload as JSON; raises a ValueError if it is none."""
        return json.loads(self.body)

    def stored(self) -> dict[str, Any]:
        """The delivery as plain JSON, to be kept until a worker takes it up."""
        identity = {"key": self.key, "eventId": self.event_id, "eventType": self.event_type}
        optional = {"deliveryId": self.delivery_id, "attempt": self.attempt}
        return {
            "profile": self.profile,
            "principal": self.principal,
            "identity": {**identity, **{name: value for name, value in optional.items() if value is not None}},
            "method": self.method,
            "url": self.url,
            "headers": [[name, value] for name, value in self.headers if not is_credential(name)],
            "body": to_base64(self.body),
            **({} if self.signed_at is None else {"signed_at": timestamp(self.signed_at)}),
            "received_at": timestamp(self.received_at),
        }


def delivery_of(
    profile: str,
    principal: str,
    identity: Identity,
    url: str,
    headers: Headers,
    body: bytes,
    received_at: datetime,
    method: str = "POST",
    signed_at: datetime | None = None,
) -> Delivery:
    return Delivery(
        profile,
        principal,
        identity.key,
        identity.event_id,
        identity.event_type,
        identity.delivery_id,
        identity.attempt,
        url,
        headers,
        body,
        received_at,
        method,
        signed_at,
    )


def restored_delivery(stored: Mapping[str, Any]) -> Delivery:
    """Makes a delivery again from what `Delivery.stored` answered."""
    body = from_base64(stored["body"])
    if body is None:
        raise ValueError("stored delivery has a damaged body")
    identity, signed_at = stored["identity"], stored.get("signed_at")
    return Delivery(
        stored["profile"],
        stored["principal"],
        identity["key"],
        identity["eventId"],
        identity["eventType"],
        identity.get("deliveryId"),
        identity.get("attempt"),
        stored["url"],
        Headers([(name, value) for name, value in stored["headers"]]),
        body,
        moment(stored["received_at"]),
        stored.get("method") or "POST",
        moment(signed_at) if signed_at else None,
    )


def timestamp(at: datetime) -> str:
    """RFC 3339 in UTC with a fixed number of digits, so that the text sorts as the time does."""
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """The time that `timestamp` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
