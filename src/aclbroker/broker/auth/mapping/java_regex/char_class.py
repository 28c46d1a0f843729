r"""Reads what stands for one character: escapes such as \x41 and \d, properties, classes.

Classes are read as java.util.regex.Pattern does since Java 9: a nested class is a union, && an
intersection that binds weaker than a union, and ^ negates all of it.
"""

from __future__ import annotations

from aclbroker.broker.auth.mapping.java_regex.charset import POSIX, PREDEFINED, CharSet
from aclbroker.broker.auth.mapping.java_regex.cursor import Cursor

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_OCTAL = "01234567"
_HEXADECIMAL = "0123456789abcdefABCDEF"
_UNSUPPORTED = {
    "b": "\\b is not supported, since releases of Java differ about letters beyond ASCII",
    "B": "\\B is not supported, since releases of Java differ about letters beyond ASCII",
    "G": "\\G is not supported, since Python has no equal",
    "R": "\\R is not supported, since releases of Java differ in it; write (?:\\r\\n|\\v)",
    "X": "\\X is not supported, since Python has no equal",
    "N": "\\N is not supported; write \\x{h...h}",
    "c": "\\c is not supported; write \\xhh",
}
_CASED = ("Lower", "Upper")
_EMPTY_SIDE = "&& has an empty side"


class CharReader:
    """Reads what stands for one character where the flag i is set or not (`ignore_case`).

    The methods raise `RegexError`.
    """

    def __init__(self, cursor: Cursor, *, ignore_case: bool) -> None:
        self._cursor = cursor
        self._ignore_case = ignore_case

    def literal(self, char: str) -> CharSet:
        """The character for itself."""
        chars = CharSet.of(char)
        return chars.ignoring_ascii_case() if self._ignore_case else chars

    def escape(self) -> str | CharSet:
        """What follows a backslash: the character that stands for itself, or a set."""
        letter = self._cursor.peek()
        if letter in PREDEFINED:
            self._cursor.take()
            return PREDEFINED[letter]
        if letter in ("p", "P"):
            return self._property()
        return _literal_escape(self._cursor)

    def _property(self) -> CharSet:
        cursor = self._cursor
        start = cursor.index - 1
        negated = cursor.take().char == "P"
        name = ""
        if cursor.accept("{"):
            while cursor.peek() not in ("", "}"):
                name += cursor.take().char
        if name not in POSIX or not cursor.accept("}"):
            supported = ", ".join(f"\\p{{{each}}}" for each in POSIX)
            cursor.refuse(
                "a property that is not supported, since those of Unicode differ between "
                f"releases; supported: {supported}",
                start,
            )
        if self._ignore_case and name in _CASED:
            cursor.refuse(f"releases of Java differ about \\p{{{name}}} with the flag i", start)
        return POSIX[name].complement() if negated else POSIX[name]

    def bracketed(self) -> CharSet:
        """The class whose opening bracket has been taken, up to its closing one."""
        negated = self._cursor.accept("^")
        chars = self._union()
        while self._cursor.accept("&&"):
            chars = chars.intersection(self._right_side())
        if not self._cursor.accept("]"):
            self._cursor.refuse("a character class that is not closed")
        return chars.complement() if negated else chars

    def _right_side(self) -> CharSet:
        cursor = self._cursor
        if cursor.peek() in ("]", "&"):
            cursor.refuse(_EMPTY_SIDE)
        if cursor.peek() != "[":
            return self._union()
        chars = CharSet.of()
        while cursor.accept("["):
            chars = chars.union(self.bracketed())
        if cursor.peek() != "]" and not self._at_intersection():
            cursor.refuse("classes and characters mixed after &&; put brackets around all of them")
        return chars

    def _at_intersection(self) -> bool:
        return self._cursor.peek() == "&" and self._cursor.peek(1) == "&"

    def _union(self) -> CharSet:
        cursor = self._cursor
        start = cursor.index
        chars = CharSet.of()
        # A closing bracket that comes first stands for itself.
        while not self._at_intersection() and (cursor.peek() != "]" or cursor.index == start):
            if cursor.at_end:
                cursor.refuse("a character class that is not closed")
            chars = chars.union(self.bracketed() if cursor.accept("[") else self._range())
        if cursor.index == start:
            cursor.refuse(_EMPTY_SIDE)
        return chars

    def _range(self) -> CharSet:
        cursor = self._cursor
        start = cursor.index
        is_vertical = cursor.peek() == "\\" and cursor.peek(1) == "v"
        first = self._char()
        dash = cursor.peek() == "-" and cursor.peek(1) not in ("[", "]")
        if isinstance(first, CharSet):
            if dash and is_vertical:
                cursor.refuse("\\v before a dash; write \\x0b, or \\- for the dash", start)
            return first
        if not dash:
            return self.literal(first)
        cursor.take()
        last = self._char()
        if isinstance(last, CharSet) or last < first:
            cursor.refuse("a range that does not end in a later character", start)
        chars = CharSet.of((ord(first), ord(last)))
        return chars.ignoring_ascii_case() if self._ignore_case else chars

    def _char(self) -> str | CharSet:
        if self._cursor.accept("\\"):
            return self.escape()
        return self._cursor.take().char


def _literal_escape(cursor: Cursor) -> str:
    start = cursor.index - 1
    letter = cursor.take().char
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter in _UNSUPPORTED:
        cursor.refuse(_UNSUPPORTED[letter], start)
    if letter == "0":
        return chr(_octal(cursor, start))
    if letter in "xu":
        return _hexadecimal(cursor, start, braces=letter == "x", digits=2 if letter == "x" else 4)
    if letter.isascii() and letter.isalnum():
        cursor.refuse(f"\\{letter} is no escape here", start)
    return letter


def _octal(cursor: Cursor, start: int) -> int:
    digits = cursor.accept_any(_OCTAL, 3 if cursor.peek() in ("0", "1", "2", "3") else 2)
    if not digits:
        cursor.refuse("\\0 needs octal digits", start)
    return int(digits, 8)


def _hexadecimal(cursor: Cursor, start: int, *, braces: bool, digits: int) -> str:
    if braces and cursor.accept("{"):
        found = cursor.accept_any(_HEXADECIMAL, 8)
        complete = bool(found) and cursor.accept("}")
    else:
        found = cursor.accept_any(_HEXADECIMAL, digits)
        complete = len(found) == digits
    code_point = int(found, 16) if complete else -1
    if not 0 <= code_point <= 0x10FFFF:
        cursor.refuse("not the hexadecimal digits of a character", start)
    if 0xD800 <= code_point <= 0xDFFF:
        cursor.refuse("half of a surrogate pair; write \\x{h...h} for the whole", start)
    return chr(code_point)
