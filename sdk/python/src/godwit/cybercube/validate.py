"""Validation of CYBERCUBE events (CCW-EVT-32, CCW-RCV-15)."""

from __future__ import annotations

from ..receiver.delivery import Delivery

_MEMBERS: tuple[tuple[str, type, str, bool], ...] = (
    ("id", str, "a string", True),
    ("type", str, "a string", True),
    ("created_at", str, "a string", True),
    ("data", dict, "an object", True),
    ("api_version", str, "a string", False),
    ("account_id", str, "a string", False),
    ("livemode", bool, "a boolean", False),
)


def validate_cybercube_event(delivery: Delivery) -> str | None:
    """Returns the error in an event, or None; can be the `validate` of a receiver.

    The four members of the minimal form are required, the others must have their type if they are there.
    """
    try:
        event = delivery.json()
    except ValueError:
        return "the event is not JSON"
    if not isinstance(event, dict):
        return "the event is not an object"
    for name, kind, described, required in _MEMBERS:
        if name not in event and not required:
            continue
        if not isinstance(event.get(name), kind):
            return f"{name} is not {described}"
    return None
