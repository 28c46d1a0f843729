r"""The syntax of RE2's regular expressions, as far as it concerns ASCII.

Refused as in RE2: back-references, look-around, possessive repetition, counts above 1,000.
"""

from __future__ import annotations

import string
from typing import Final, NamedTuple

_ALL: Final = (1 << 128) - 1
_MOST_REPEATED: Final = 1_000
_DEEPEST: Final = 100


class RegexError(ValueError):
    """A text is no regular expression, or one that is too large."""


class Chars(NamedTuple):
    """One character of a set; bit n of the mask stands for the character n."""

    mask: int


class Edge(NamedTuple):
    """A place between characters: ``kind`` is the letter of RE2's escape, or one of ``^`` ``$``."""

    kind: str

    def holds(self, before: str, after: str) -> bool:
        """Tell whether a place is such a one; "" stands for nothing before or after it."""
        if self.kind in ("b", "B"):
            is_between = (before in _WORD_TEXT and before != "") != (
                after in _WORD_TEXT and after != ""
            )
            return is_between == (self.kind == "b")
        if self.kind in ("A", "^"):
            return before == "" or (self.kind == "^" and before == "\n")
        return after == "" or (self.kind == "$" and after == "\n")


class Sequence(NamedTuple):
    """One thing after the other."""

    parts: list[Node]


class Alternatives(NamedTuple):
    """One thing of several."""

    parts: list[Node]


class Repeat(NamedTuple):
    """A thing several times; ``most`` is None for any number."""

    part: Node
    least: int
    most: int | None


Node = Chars | Edge | Sequence | Alternatives | Repeat


def _mask(characters: str) -> int:
    return sum(1 << ord(each) for each in set(characters))


_WORD_TEXT: Final = string.ascii_letters + string.digits + "_"
_DIGITS: Final = _mask(string.digits)
_SPACES: Final = _mask("\t\n\f\r ")
_WORD: Final = _mask(_WORD_TEXT)
_LETTERS: Final = _mask(string.ascii_letters)
_UPPER: Final = _mask(string.ascii_uppercase)
_LOWER: Final = _mask(string.ascii_lowercase)
_PERL: Final = {"d": _DIGITS, "s": _SPACES, "w": _WORD}
_POSIX: Final = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ALL,
    "blank": _mask("\t "),
    "cntrl": _mask("".join(map(chr, [*range(32), 127]))),
    "digit": _DIGITS,
    "graph": _mask("".join(map(chr, range(33, 127)))),
    "lower": _LOWER,
    "print": _mask("".join(map(chr, range(32, 127)))),
    "punct": _mask(string.punctuation),
    "space": _mask("\t\n\v\f\r "),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _mask(string.hexdigits),
}
_UNICODE: Final = {
    "L": _LETTERS,
    "Lu": _UPPER,
    "Ll": _LOWER,
    "Latin": _LETTERS,
    "N": _DIGITS,
    "Nd": _DIGITS,
    "P": _mask("!\"#%&'()*,-./:;?@[\\]_{}"),
    "Pc": _mask("_"),
    "Pd": _mask("-"),
    "Ps": _mask("([{"),
    "Pe": _mask(")]}"),
    "Po": _mask("!\"#%&'*,./:;?@\\"),
    "S": _mask("$+<=>^`|~"),
    "Sc": _mask("$"),
    "Sm": _mask("+<=>|~"),
    "Sk": _mask("^`"),
    "Z": _mask(" "),
    "Zs": _mask(" "),
    "C": _mask("".join(map(chr, [*range(32), 127]))),
    "Cc": _mask("".join(map(chr, [*range(32), 127]))),
    "Any": _ALL,
    "Common": _ALL & ~_LETTERS,
}
_CONTROLS: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_GROUP_NAME: Final = frozenset(_WORD_TEXT)


def parse(pattern: str) -> Node:
    """Return the tree of a regular expression; raises RegexError."""
    parser = _Parser(pattern)
    node = parser.alternatives(0)
    if not parser.at_end:
        raise RegexError("unexpected )")
    return node


def _folded(mask: int) -> int:
    """Return a set of characters with those that differ in case alone."""
    upper, lower = mask & _UPPER, mask & _LOWER
    return mask | upper << 32 | lower >> 32


class _Parser:
    """Reads a pattern from left to right; flags hold until the end of their group."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._names: set[str] = set()

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._pattern)

    def alternatives(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise RegexError("expression nests too deeply")
        flags = self._flags
        parts = [self._sequence(depth)]
        while self._takes("|"):
            parts.append(self._sequence(depth))
        self._flags = flags
        return parts[0] if len(parts) == 1 else Alternatives(parts)

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self.at_end and self._pattern[self._at] not in "|)":
            if self._takes("\\Q"):
                parts.extend(self._quoted())
                if parts:
                    parts[-1] = self._repeated(parts[-1])
                continue
            node = self._atom(depth)
            if node is not None:
                parts.append(self._repeated(node))
        return Sequence(parts)

    def _quoted(self) -> list[Node]:
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at :] if end < 0 else self._pattern[self._at : end]
        self._at = len(self._pattern) if end < 0 else end + 2
        return [self._chars(_one(each)) for each in text]

    def _repeated(self, node: Node) -> Node:
        times = self._times()
        if times is None:
            return node
        self._takes("?")
        if self._times() is not None:
            raise RegexError("invalid nested repetition operator")
        return Repeat(node, *times)

    def _times(self) -> tuple[int, int | None] | None:
        """Return how often the thing before may come, None if nothing says it."""
        if self._takes("*"):
            return 0, None
        if self._takes("+"):
            return 1, None
        if self._takes("?"):
            return 0, 1
        if self.at_end or self._pattern[self._at] != "{":
            return None
        return self._counted()

    def _counted(self) -> tuple[int, int | None] | None:
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : max(end, 0)].partition(",")
        # Braces without counts stand for themselves.
        if not _is_number(least) or (most and not _is_number(most)):
            return None
        self._at = end + 1
        low = int(least)
        high = (int(most) if most else None) if comma else low
        if low > _MOST_REPEATED or (high is not None and not low <= high <= _MOST_REPEATED):
            raise RegexError("invalid repeat count")
        return low, high

    def _atom(self, depth: int) -> Node | None:
        char = self._next()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._chars(self._class())
        if char == ".":
            return Chars(_ALL if "s" in self._flags else _ALL & ~_one("\n"))
        if char == "^":
            return Edge("^" if "m" in self._flags else "A")
        if char == "$":
            return Edge("$" if "m" in self._flags else "z")
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise RegexError("missing argument to repetition operator")
        return self._chars(_one(char))

    def _group(self, depth: int) -> Node | None:
        flags = self._flags
        if self._takes("?"):
            if self._takes("P<") or self._takes("<"):
                self._group_name()
            elif not self._set_flags():
                return None  # They hold for the rest of the group around.
        node = self.alternatives(depth + 1)
        self._flags = flags
        if not self._takes(")"):
            raise RegexError("missing closing )")
        return node

    def _group_name(self) -> None:
        end = self._pattern.find(">", self._at)
        name = self._pattern[self._at : max(end, 0)]
        if not name or not _GROUP_NAME.issuperset(name) or name in self._names:
            raise RegexError("invalid named capture")
        self._names.add(name)
        self._at = end + 1

    def _set_flags(self) -> bool:
        """Read flags; returns whether a group follows them."""
        on, off, minus, seen = set(self._flags), set[str](), False, False
        while True:
            char = self._next()
            if char in "imsU":
                (off if minus else on).add(char)
                seen = True
            elif char == "-" and not minus:
                minus, seen = True, False
            elif char in ":)" and (seen or not minus) and (seen or char == ":"):
                self._flags = frozenset(on - off)
                return char == ":"
            else:
                raise RegexError("invalid or unsupported Perl syntax")

    def _escape(self) -> Node:
        char = self._next("trailing backslash at end of expression")
        if char in "AzbB":
            return Edge(char)
        if char == "C":
            return Chars(_ALL)
        mask = self._perl(char)
        return self._chars(_one(self._escaped(char)) if mask is None else mask)

    def _perl(self, char: str) -> int | None:
        """Return the characters of a class such as \\d or \\pL, None if it is no class."""
        if char.lower() in _PERL:
            mask = _PERL[char.lower()]
            return mask if char.islower() else _ALL & ~mask
        if char not in "pP":
            return None
        name = self._next()
        if name == "{":
            end = self._pattern.find("}", self._at)
            name = self._pattern[self._at : max(end, 0)]
            self._at = end + 1
        is_negative = (char == "P") != name.startswith("^")
        name = name.removeprefix("^")
        mask = _UNICODE.get(name, 0)
        if not name.isalpha() and "_" not in name:
            raise RegexError("invalid character class range")
        return _ALL & ~mask if is_negative else mask

    def _escaped(self, char: str) -> str:
        """Return the character that an escape stands for."""
        if char in _CONTROLS:
            return chr(_CONTROLS[char])
        if char in string.octdigits:
            digits = char
            while len(digits) < 3 and not self.at_end:
                if self._pattern[self._at] not in string.octdigits:
                    break
                digits += self._next()
            if char != "0" and len(digits) < 2:
                raise RegexError("invalid escape sequence")
            return chr(int(digits, 8))
        if char == "x":
            return self._hexadecimal()
        if char.isascii() and char.isalnum():
            raise RegexError("invalid escape sequence")
        return char

    def _hexadecimal(self) -> str:
        if self._takes("{"):
            end = self._pattern.find("}", self._at)
            digits = self._pattern[self._at : max(end, 0)]
            self._at = end + 1
        else:
            digits = self._next() + self._next()
        if not digits or len(digits) > 6 or not set(digits) <= set(string.hexdigits):
            raise RegexError("invalid escape sequence")
        if int(digits, 16) > 0x10FFFF:
            raise RegexError("invalid escape sequence")
        return chr(int(digits, 16))

    def _class(self) -> int:
        is_negative = self._takes("^")
        mask, is_first = 0, True
        while is_first or not self._takes("]"):
            if self.at_end:
                raise RegexError("missing closing ]")
            mask |= self._class_item()
            is_first = False
        mask = _folded(mask) if "i" in self._flags else mask
        return _ALL & ~mask if is_negative else mask

    def _class_item(self) -> int:
        if self._takes("[:"):
            end = self._pattern.find(":]", self._at)
            name = self._pattern[self._at : max(end, 0)]
            mask = _POSIX.get(name.removeprefix("^"))
            if mask is None:
                raise RegexError("invalid character class range")
            self._at = end + 2
            return _ALL & ~mask if name.startswith("^") else mask
        low = self._next()
        if low == "\\":
            low = self._next("trailing backslash at end of expression")
            mask = self._perl(low)
            if mask is not None:
                return mask
            low = self._escaped(low)
        if self._pattern[self._at : self._at + 1] != "-" or self._pattern[
            self._at + 1 : self._at + 2
        ] in ("]", ""):
            return _one(low)
        self._at += 1
        high = self._next("missing closing ]")
        if high == "\\":
            high = self._escaped(self._next("trailing backslash at end of expression"))
        if high < low:
            raise RegexError("invalid character class range")
        return sum(_one(chr(each)) for each in range(ord(low), min(ord(high), 127) + 1))

    def _chars(self, mask: int) -> Chars:
        return Chars(_folded(mask) if "i" in self._flags else mask)

    def _takes(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _next(self, missing: str = "missing closing )") -> str:
        if self.at_end:
            raise RegexError(missing)
        self._at += 1
        return self._pattern[self._at - 1]


def _one(char: str) -> int:
    return 1 << ord(char) if char.isascii() else 0


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5
