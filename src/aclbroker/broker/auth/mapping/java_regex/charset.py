r"""Sets of characters as java.util.regex has them, written as Python's `re` understands them.

Nested classes, intersections, negation and case-insensitivity are worked out here on ranges of code
points, so that nothing of what the two languages read differently reaches `re`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

LAST = 0x10FFFF
_ASCII_CASE = 0x20


class CharSet(NamedTuple):
    """A set of code points: `ranges` of first and last, ascending, with gaps between them."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, *items: str | int | tuple[int, int]) -> CharSet:
        """The set of all characters of the texts, the code points, and the (first, last) ranges."""
        return cls(tuple(_merged(_ranges_of(items))))

    def union(self, other: CharSet) -> CharSet:
        """What is in one of them."""
        return CharSet.of(*self.ranges, *other.ranges)

    def complement(self) -> CharSet:
        """What is not in it."""
        edges = [(-1, -1), *self.ranges, (LAST + 1, LAST + 1)]
        gaps = ((low[1] + 1, high[0] - 1) for low, high in pairwise(edges))
        return CharSet(tuple(gap for gap in gaps if gap[0] <= gap[1]))

    def intersection(self, other: CharSet) -> CharSet:
        """What is in both."""
        return self.complement().union(other.complement()).complement()

    def overlaps(self, other: CharSet) -> bool:
        """Whether there is something in both."""
        return any(
            first <= other_last and other_first <= last
            for first, last in self.ranges
            for other_first, other_last in other.ranges
        )

    def ignoring_ascii_case(self) -> CharSet:
        """With the other case of its ASCII letters, as CASE_INSENSITIVE without UNICODE_CASE."""
        lower = self.intersection(ASCII_LOWER).ranges
        upper = self.intersection(ASCII_UPPER).ranges
        return CharSet.of(
            *self.ranges,
            *((first - _ASCII_CASE, last - _ASCII_CASE) for first, last in lower),
            *((first + _ASCII_CASE, last + _ASCII_CASE) for first, last in upper),
        )

    def expression(self) -> str:
        """The set as a pattern of `re` that matches one character."""
        if not self.ranges:
            return "(?!)"
        if self.ranges[-1][1] == LAST and self.ranges != ((0, LAST),):
            return f"[^{_written(self.complement().ranges)}]"
        return f"[{_written(self.ranges)}]"


def _ranges_of(items: Iterable[str | int | tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for item in items:
        if isinstance(item, str):
            yield from ((ord(char), ord(char)) for char in item)
        else:
            yield (item, item) if isinstance(item, int) else item


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _written(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(
        escaped(first) if first == last else f"{escaped(first)}-{escaped(last)}"
        for first, last in ranges
    )


def escaped(code_point: int) -> str:
    """The character as `re` takes it for itself, inside a class and outside of one."""
    char = chr(code_point)
    return char if char.isascii() and char.isalnum() else f"\\U{code_point:08x}"


ASCII_LOWER = CharSet.of((0x61, 0x7A))
ASCII_UPPER = CharSet.of((0x41, 0x5A))
_DIGIT = CharSet.of((0x30, 0x39))
_ALPHA = ASCII_LOWER.union(ASCII_UPPER)
_ALNUM = _ALPHA.union(_DIGIT)
_SPACE = CharSet.of(" \t\n\x0b\f\r")
_PUNCT = CharSet.of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_HORIZONTAL = CharSet.of(" \t\xa0\u1680\u180e\u202f\u205f\u3000", (0x2000, 0x200A))
_VERTICAL = CharSet.of("\n\x0b\f\r\x85\u2028\u2029")

EVERYTHING = CharSet.of((0, LAST))
SURROGATES = CharSet.of((0xD800, 0xDFFF))
"""The halves that UTF-16, and so Java, has of a character beyond U+FFFF."""

LINE_TERMINATORS = CharSet.of("\n\r\x85\u2028\u2029")
"""What `.` does not match without DOTALL."""

_LOWER_CASE_ESCAPES = {
    "d": _DIGIT,
    "h": _HORIZONTAL,
    "s": _SPACE,
    "v": _VERTICAL,
    "w": _ALNUM.union(CharSet.of("_")),
}
PREDEFINED = _LOWER_CASE_ESCAPES | {
    name.upper(): chars.complement() for name, chars in _LOWER_CASE_ESCAPES.items()
}
r"""By the letter after the backslash."""

POSIX = {
    "Lower": ASCII_LOWER,
    "Upper": ASCII_UPPER,
    "ASCII": CharSet.of((0, 0x7F)),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _PUNCT,
    "Graph": _ALNUM.union(_PUNCT),
    "Print": _ALNUM.union(_PUNCT).union(CharSet.of(" ")),
    "Blank": CharSet.of(" \t"),
    "Cntrl": CharSet.of((0, 0x1F), 0x7F),
    "XDigit": _DIGIT.union(CharSet.of((0x41, 0x46), (0x61, 0x66))),
    "Space": _SPACE,
}
r"""By the name in \p{Name}: ASCII alone, and so the same in every release of Java."""
