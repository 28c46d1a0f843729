"""Reads the small parts of an expression: quantifiers, flags, the names of groups."""

from __future__ import annotations

from typing import NamedTuple

from aclbroker.broker.auth.mapping.java_regex.cursor import Cursor

DIGITS = "0123456789"
MOST_REPETITIONS = 65_535

_QUANTIFIERS = ("*", "+", "?", "{")
_LIMITS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Quantifier(NamedTuple):
    """From `least` to `most` times, None if without limit; `kind` is "", "?" (lazy) or "+"."""

    least: int
    most: int | None
    kind: str
    start: int
    """The cursor's index where it began."""

    @property
    def expression(self) -> str:
        """As both languages write it."""
        return f"{{{self.least},{'' if self.most is None else self.most}}}{self.kind}"

    @property
    def is_optional(self) -> bool:
        """Whether it is nothing but `?`."""
        return (self.least, self.most) == (0, 1)


class Flags(NamedTuple):
    """What (?i) and (?s) set."""

    ignore_case: bool = False
    dot_all: bool = False


def read_quantifier(cursor: Cursor) -> Quantifier | None:
    """The quantifier that comes next, if one does."""
    start = cursor.index
    if cursor.peek() not in _QUANTIFIERS:
        return None
    least, most = _limits(cursor)
    kind = cursor.accept_any("?+", 1)
    if cursor.peek() in _QUANTIFIERS:
        cursor.refuse("a second quantifier")
    return Quantifier(least, most, kind, start)


def _limits(cursor: Cursor) -> tuple[int, int | None]:
    start = cursor.index
    sign = cursor.take().char
    if sign != "{":
        return _LIMITS[sign]
    least = most = cursor.accept_any(DIGITS, 6)
    if cursor.accept(","):
        most = cursor.accept_any(DIGITS, 6)
    if not least or not cursor.accept("}"):
        cursor.refuse("not a repetition such as {2}, {2,} or {2,5}; write \\{ for the brace", start)
    low, high = int(least), int(most) if most else None
    if max(low, high or 0) > MOST_REPETITIONS or (high is not None and high < low):
        cursor.refuse(f"a repetition beyond {MOST_REPETITIONS}, or with its limits swapped", start)
    return low, high


def read_flags(cursor: Cursor, flags: Flags) -> Flags:
    """The flags as they are after those that come next, such as i or s-i."""
    value = True
    while (letter := cursor.peek()) and (letter == "-" or letter.isalpha()):
        if letter == "i":
            flags = flags._replace(ignore_case=value)
        elif letter == "s":
            flags = flags._replace(dot_all=value)
        elif letter == "-" and value:
            value = False
        else:
            cursor.refuse(f"the flag {letter} is not supported; i and s are")
        cursor.take()
    return flags


def read_name(cursor: Cursor) -> str:
    """The name of a group, up to its closing angle bracket, which is skipped."""
    start = cursor.index
    name = ""
    while (char := cursor.peek()).isascii() and char.isalnum():
        name += cursor.take().char
    if not name or name[0] in DIGITS or not cursor.accept(">"):
        cursor.refuse("not the name of a group, which is of ASCII letters and digits", start)
    return name
