"""Structured field values (RFC 9651): parsing and serialisation, as far as signatures, digests and keys need them.

Parsing fails with a StructuredFieldError; it never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TypeVar, Union

from ..crypto.decode import from_base64, to_base64


class StructuredFieldError(Exception):
    """The text is no structured field of the wanted type."""


@dataclass(frozen=True)
class Token:
    """A word without quotes, such as gzip."""

    value: str


@dataclass(frozen=True)
class Date:
    """Seconds since 1970."""

    seconds: int


@dataclass(frozen=True)
class DisplayString:
    """Text beyond ASCII."""

    value: str


BareItem = Union[str, int, bool, bytes, Decimal, Token, Date, DisplayString]
Params = Mapping[str, BareItem]


@dataclass(frozen=True)
class Item:
    value: BareItem
    params: Params = field(default_factory=dict)


@dataclass(frozen=True)
class InnerList:
    items: tuple[Item, ...]
    params: Params = field(default_factory=dict)


Member = Union[Item, InnerList]
T = TypeVar("T")

_KEY = re.compile(r"[a-z*][a-z0-9_\-.*]*")
_TOKEN = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*")
_NUMBER = re.compile(r"-?([0-9]{1,18})(?:\.([0-9]{0,6}))?")
_BYTES = re.compile(r":([A-Za-z0-9+/=]*):")
_PLAIN = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_HEX_PAIR = re.compile(r"[0-9a-f]{2}")


def parse_item(lines: Sequence[str]) -> Item:
    return _Parser(lines).whole(_Parser.item)


def parse_list(lines: Sequence[str]) -> list[Member]:
    return _Parser(lines).whole(_Parser.list)


def parse_dictionary(lines: Sequence[str]) -> dict[str, Member]:
    return _Parser(lines).whole(_Parser.dictionary)


class _Parser:
    def __init__(self, lines: Sequence[str]) -> None:
        self._text = ", ".join(lines)
        self._at = 0

    def whole(self, parse: Callable[[_Parser], T]) -> T:
        self._skip(" ")
        value = parse(self)
        self._skip(" ")
        if self._at < len(self._text):
            raise StructuredFieldError(f"unexpected character at {self._at}")
        return value

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, characters: str) -> None:
        while self._at < len(self._text) and self._text[self._at] in characters:
            self._at += 1

    def _expect(self, character: str) -> None:
        if self._next() != character:
            raise StructuredFieldError(f"expected {character} at {self._at}")
        self._at += 1

    def _match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise StructuredFieldError(f"no {what} at {self._at}")
        self._at = match.end()
        return match

    def list(self) -> list[Member]:
        members: list[Member] = []
        self._comma_separated(lambda: members.append(self._member()))
        return members

    def dictionary(self) -> dict[str, Member]:
        members: dict[str, Member] = {}

        def entry() -> None:
            key = self._match(_KEY, "key").group()
            members.pop(key, None)  # a repeated key counts where it occurs last
            if self._next() == "=":
                self._at += 1
                members[key] = self._member()
            else:
                members[key] = Item(True, self._params())

        self._comma_separated(entry)
        return members

    def _comma_separated(self, parse: Callable[[], None]) -> None:
        while self._at < len(self._text):
            parse()
            self._skip(" \t")
            if self._at >= len(self._text):
                return
            self._expect(",")
            self._skip(" \t")
            if self._at >= len(self._text):
                raise StructuredFieldError("ends with a comma")

    def _member(self) -> Member:
        return self._inner_list() if self._next() == "(" else self.item()

    def _inner_list(self) -> InnerList:
        self._expect("(")
        items: list[Item] = []
        while True:
            self._skip(" ")
            if self._next() == ")":
                self._at += 1
                return InnerList(tuple(items), self._params())
            items.append(self.item())
            if self._next() not in (" ", ")"):
                raise StructuredFieldError("inner list is not closed")

    def item(self) -> Item:
        value = self._bare_item()
        return Item(value, self._params())

    def _params(self) -> Params:
        params: dict[str, BareItem] = {}
        while self._next() == ";":
            self._at += 1
            self._skip(" ")
            key = self._match(_KEY, "key").group()
            params.pop(key, None)
            value: BareItem = True
            if self._next() == "=":
                self._at += 1
                value = self._bare_item()
            params[key] = value
        return params

    def _bare_item(self) -> BareItem:
        c = self._next()
        if c == '"':
            return self._string()
        if c == ":":
            return self._byte_sequence()
        if c == "?":
            return self._boolean()
        if c == "@":
            return self._date()
        if c == "%":
            return self._display_string()
        if c == "-" or "0" <= c <= "9":
            return self._number()
        return Token(self._match(_TOKEN, "value").group())

    def _number(self) -> int | Decimal:
        match = self._match(_NUMBER, "number")
        whole, fraction = match.group(1), match.group(2)
        if fraction is None:
            if len(whole) > 15:
                raise StructuredFieldError("number is too long")
            return int(match.group())
        if len(whole) > 12 or not 1 <= len(fraction) <= 3:
            raise StructuredFieldError("malformed decimal")
        return Decimal(match.group())

    def _string(self) -> str:
        self._expect('"')
        out: list[str] = []
        while True:
            plain = _PLAIN.match(self._text, self._at)
            if plain is not None:
                out.append(plain.group())
                self._at = plain.end()
            c = self._next()
            self._at += 1
            if c == '"':
                return "".join(out)
            if c != "\\":
                raise StructuredFieldError("character not allowed in a string" if c else "string is not closed")
            escaped = self._next()
            if escaped not in ('"', "\\"):
                raise StructuredFieldError("unknown escape in a string")
            self._at += 1
            out.append(escaped)

    def _byte_sequence(self) -> bytes:
        data = from_base64(self._match(_BYTES, "byte sequence").group(1))
        if data is None:
            raise StructuredFieldError("malformed byte sequence")
        return data

    def _boolean(self) -> bool:
        self._expect("?")
        c = self._next()
        if c not in ("0", "1"):
            raise StructuredFieldError("malformed boolean")
        self._at += 1
        return c == "1"

    def _date(self) -> Date:
        self._expect("@")
        value = self._number()
        if not isinstance(value, int):
            raise StructuredFieldError("a date has no fraction")
        return Date(value)

    def _display_string(self) -> DisplayString:
        self._expect("%")
        self._expect('"')
        data = bytearray()
        while True:
            c = self._next()
            self._at += 1
            if c == '"':
                break
            if not c or not " " <= c <= "~":
                raise StructuredFieldError("malformed display string")
            if c == "%":
                data.append(int(self._match(_HEX_PAIR, "hex").group(), 16))
            else:
                data.append(ord(c))
        try:
            return DisplayString(data.decode("utf-8"))
        except UnicodeDecodeError:
            raise StructuredFieldError("display string is no UTF-8") from None


def serialize_item(item: Item) -> str:
    return serialize_bare_item(item.value) + _serialize_params(item.params)


def serialize_member(member: Member) -> str:
    if isinstance(member, Item):
        return serialize_item(member)
    return f"({' '.join(map(serialize_item, member.items))}){_serialize_params(member.params)}"


def serialize_list(members: Sequence[Member]) -> str:
    return ", ".join(map(serialize_member, members))


def serialize_dictionary(members: Mapping[str, Member]) -> str:
    def entry(key: str, member: Member) -> str:
        if isinstance(member, Item) and member.value is True:
            return _checked_key(key) + _serialize_params(member.params)
        return f"{_checked_key(key)}={serialize_member(member)}"

    return ", ".join(entry(key, member) for key, member in members.items())


def _serialize_params(params: Params) -> str:
    return "".join(
        f";{_checked_key(key)}" + ("" if value is True else f"={serialize_bare_item(value)}")
        for key, value in params.items()
    )


def _checked_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise StructuredFieldError("malformed key")
    return key


def serialize_bare_item(value: BareItem) -> str:
    if isinstance(value, str):
        return serialize_string(value)
    if isinstance(value, bool):  # before int, which bool is a kind of
        return "?1" if value else "?0"
    if isinstance(value, int):
        return _serialize_integer(value)
    if isinstance(value, bytes):
        return f":{to_base64(value)}:"
    if isinstance(value, Decimal):
        return _serialize_decimal(value)
    if isinstance(value, Date):
        return f"@{_serialize_integer(value.seconds)}"
    if isinstance(value, DisplayString):
        return _serialize_display_string(value.value)
    if not _TOKEN.fullmatch(value.value):
        raise StructuredFieldError("malformed token")
    return value.value


def serialize_string(value: str) -> str:
    if not _PRINTABLE.fullmatch(value):
        raise StructuredFieldError("character not allowed in a string")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _serialize_integer(value: int) -> str:
    if abs(value) > 999_999_999_999_999:
        raise StructuredFieldError("number is too long")
    return str(value)


def _serialize_decimal(value: Decimal) -> str:
    rounded = value.quantize(Decimal("0.001"), rounding=ROUND_HALF_EVEN)
    if abs(rounded) >= 10**12:
        raise StructuredFieldError("number is too long")
    whole, _, fraction = f"{rounded:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def _serialize_display_string(value: str) -> str:
    plain = "".join(chr(b) if 0x20 <= b <= 0x7E and b not in b'%"' else f"%{b:02x}" for b in value.encode("utf-8"))
    return f'%"{plain}"'
