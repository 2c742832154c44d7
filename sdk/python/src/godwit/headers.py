"""Header fields as they arrived, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Union

HeadersLike = Union[
    "Headers",
    Mapping[str, str],
    Iterable[tuple[str, str]],
]


class Headers:
    """The field lines of a message, in order. Names are matched without case.

    Lines of one name are kept apart where the server shows them, so that a repeated Idempotency-Key is seen (IKH-SYN-5).
    A WSGI server has joined them with a comma already, which is no valid key either.
    """

    __slots__ = ("_lines",)

    def __init__(self, source: HeadersLike | None = None) -> None:
        self._lines: dict[str, list[str]] = {}
        if source is None:
            return
        pairs = source.items() if isinstance(source, Mapping) else source
        for name, value in pairs:
            self._lines.setdefault(name.lower(), []).append(value.strip(" \t"))

    def lines(self, name: str) -> list[str]:
        """Each line of a field."""
        return self._lines.get(name.lower(), [])

    def get(self, name: str) -> str | None:
        """The field's value, its lines joined as RFC 9110 says; None if there is none."""
        lines = self._lines.get(name.lower())
        return None if lines is None else ", ".join(lines)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._lines

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for name, lines in self._lines.items():
            for line in lines:
                yield name, line
