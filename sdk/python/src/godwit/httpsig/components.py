"""Component identifiers and their values (RFC 9421, section 2).

Every derived component and the parameters sf, key, bs, tr and req are read; anything else is refused, because a wrong
base is a signature over something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, quote

from ..crypto.decode import to_base64
from ..errors import WebhookSignatureError
from ..headers import Headers
from .structured import (
    Item,
    parse_dictionary,
    parse_item,
    parse_list,
    serialize_dictionary,
    serialize_item,
    serialize_list,
    serialize_member,
)
from .target import split_uri

StructuredType = Literal["item", "list", "dictionary"]


@dataclass(frozen=True)
class SignedMessage:
    """The message that component values are read from: a request, or in tests of RFC 9421 a response."""

    headers: Headers
    method: str = "GET"
    url: str | None = None
    """The target URI as the client used it, in the form in which it went over the wire."""
    request_target: str | None = None
    """The target of an HTTP/1.1 request line, where it is not path and query of the URL."""
    trailers: Headers | None = None
    status: int | None = None
    request: SignedMessage | None = None
    """The request that a response answers."""
    structured_fields: Mapping[str, StructuredType] = field(default_factory=dict)
    """Types of structured fields beside the known ones, for the parameter sf."""


@dataclass(frozen=True)
class Component:
    name: str
    id: str = field(compare=False)
    """The identifier as it stands in the signature base. What makes it distinct is name and parameters, in any order."""
    key: str | None = None
    query_name: str | None = None
    sf: bool = False
    bs: bool = False
    tr: bool = False
    req: bool = False


_DERIVED = frozenset("@method @target-uri @authority @scheme @request-target @path @query @query-param @status".split())
_FIELD_NAME = re.compile(r"[a-z0-9!#$%&'*+\-.^_`|~]+")
_FIELD_VALUE = re.compile(r"[\t -~]*")
_DERIVED_VALUE = re.compile(r"[ -~]*")
_STRUCTURED: Mapping[str, StructuredType] = {
    "content-digest": "dictionary",
    "repr-digest": "dictionary",
    "signature": "dictionary",
    "signature-input": "dictionary",
    "idempotency-key": "item",
}


def _malformed(identifier: str, why: str) -> WebhookSignatureError:
    return WebhookSignatureError(f"component {identifier}: {why}", "malformed")


def _missing(identifier: str, why: str) -> WebhookSignatureError:
    return WebhookSignatureError(f"component {identifier}: {why}", "missing-component")


def component(name: str) -> Component:
    """Reads an identifier as people write it: a bare name, or a structured item if it has parameters."""
    return read_component(parse_item([name]) if name.startswith('"') else Item(name))


def read_component(item: Item) -> Component:
    name = item.value
    if not isinstance(name, str):
        raise _malformed("", "identifier is not a string")
    identifier = serialize_item(item)
    texts: dict[str, str] = {}
    flags: dict[str, bool] = {}
    for param, value in item.params.items():
        if param in ("key", "name"):
            if not isinstance(value, str):
                raise _malformed(identifier, f"parameter {param} is not a string")
            texts[param] = value
        elif param in ("sf", "bs", "tr", "req"):
            if value is not True:
                raise _malformed(identifier, f"parameter {param} is not a true flag")
            flags[param] = True
        else:
            raise _malformed(identifier, f"parameter {param} is not known")
    read = Component(name, identifier, texts.get("key"), texts.get("name"), **flags)
    _check(read)
    return read


def _check(c: Component) -> None:
    if c.name.startswith("@"):
        if c.name not in _DERIVED:
            raise _malformed(c.id, "derived component is not known")
        if c.sf or c.bs or c.tr or c.key is not None:
            raise _malformed(c.id, "parameter belongs to fields")
        if (c.query_name is not None) != (c.name == "@query-param"):
            raise _malformed(c.id, 'parameter name belongs to "@query-param", which needs it')
        return
    if not _FIELD_NAME.fullmatch(c.name):
        raise _malformed(c.id, "not a field name in lower case")
    if c.query_name is not None:
        raise _malformed(c.id, 'parameter name belongs to "@query-param"')
    if c.bs and (c.sf or c.key is not None):
        raise _malformed(c.id, "parameter bs excludes sf and key")


def base_line(message: SignedMessage, c: Component) -> str:
    """One line of the signature base (RFC 9421, section 2.5)."""
    derived = c.name.startswith("@")
    value = _component_value(message, c, derived)
    pattern = _DERIVED_VALUE if derived else _FIELD_VALUE
    if not pattern.fullmatch(value) or (derived and value != value.strip()):
        raise _malformed(c.id, "value has characters that cannot be signed")
    return f"{c.id}: {value}"


def _component_value(message: SignedMessage, c: Component, derived: bool) -> str:
    if c.req:
        if message.request is None:
            raise _malformed(c.id, "parameter req belongs to responses")
        message = message.request
    return _derived_value(message, c) if derived else _field_value(message, c)


def _derived_value(message: SignedMessage, c: Component) -> str:
    if (c.name == "@status") != (message.status is not None):
        raise _malformed(c.id, "component does not belong to this kind of message")
    if message.status is not None:
        return str(message.status)
    if c.name == "@method":
        return message.method
    if c.name == "@request-target" and message.request_target is not None:
        return message.request_target
    if message.url is None:
        raise _missing(c.id, "request has no target URI")
    uri = split_uri(message.url)
    if c.name == "@target-uri":
        return f"{uri.scheme}://{uri.host}{uri.path_and_query}"
    if c.name == "@authority":
        return uri.authority
    if c.name == "@scheme":
        return uri.scheme
    if c.name == "@request-target":
        return uri.path_and_query
    if c.name == "@path":
        return uri.path
    if c.name == "@query":
        return f"?{uri.query or ''}"
    return _query_param(uri.query or "", c)


def _query_param(query: str, c: Component) -> str:
    """The value of a query parameter, decoded and encoded again so that its spellings give one value (section 2.2.8)."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise _malformed(c.id, "the query is not UTF-8") from None
    found = [value for name, value in pairs if _form_encode(name) == c.query_name]
    if not found:
        raise _missing(c.id, "not in the query")
    if len(found) > 1:
        raise _malformed(c.id, "occurs more than once")
    return _form_encode(found[0])


def _form_encode(value: str) -> str:
    return quote(value, safe="*").replace("~", "%7E")


def _field_value(message: SignedMessage, c: Component) -> str:
    source = message.trailers if c.tr else message.headers
    lines = [] if source is None else source.lines(c.name)
    if not lines:
        raise _missing(c.id, "not in the message")
    if c.bs:
        return ", ".join(f":{to_base64(line.encode('latin-1', 'replace'))}:" for line in lines)
    if c.key is not None:
        member = parse_dictionary(lines).get(c.key)
        if member is None:
            raise _missing(c.id, "not in the field")
        return serialize_member(member)
    if not c.sf:
        return ", ".join(lines)
    kind = message.structured_fields.get(c.name) or _STRUCTURED.get(c.name)
    if kind == "dictionary":
        return serialize_dictionary(parse_dictionary(lines))
    if kind == "list":
        return serialize_list(parse_list(lines))
    if kind == "item":
        return serialize_item(parse_item(lines))
    raise _malformed(c.id, "type of the structured field is not known")
