r"""Reads a Java regular expression and writes the Python one that means the same.

It is read with the rules of java.util.regex.Pattern (Java 17 to 25) without flags from outside.
What has no equal in Python's `re`, differs between releases of Java, or meets a known fault of one
of the two engines, is refused with its position. The result needs no flags of `re` either: classes,
dots, anchors and the letters that the flag i concerns are written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aclbroker.broker.auth.mapping.java_regex.automaton import NOTHING, Automaton, Fragment
from aclbroker.broker.auth.mapping.java_regex.char_class import CharReader
from aclbroker.broker.auth.mapping.java_regex.charset import EVERYTHING, LINE_TERMINATORS, CharSet
from aclbroker.broker.auth.mapping.java_regex.cursor import Cursor
from aclbroker.broker.auth.mapping.java_regex.effort import Effort
from aclbroker.broker.auth.mapping.java_regex.syntax import (
    DIGITS,
    Flags,
    Quantifier,
    read_flags,
    read_name,
    read_quantifier,
)

DEEPEST_NESTING = 50

# Before the last line terminator, too, but not inside of \r\n.
_DOLLAR = r"(?=(?:\r\n|\r|(?<!\r)\n|[\x85\u2028\u2029])?\Z)"
_ANCHORS = {"A": r"\A", "Z": _DOLLAR, "z": r"\Z"}
_LOOKAROUND = {"=": "(?=", "!": "(?!", "<=": "(?<=", "<!": "(?<!"}


class Translation(NamedTuple):
    """Python's expression, and what its groups are.

    `names` are the numbers of groups with a name. `repeated` are groups that a quantifier other
    than `?` repeats: what Java leaves in them is not always what they matched last. `looks_behind`
    and `may_begin_inside_a_pair` tell where characters beyond U+FFFF need care, which are two for
    Java. `effort` counts what the engine may have to do with a text.
    """

    expression: str
    groups: int
    names: dict[str, int]
    repeated: frozenset[int]
    looks_behind: bool
    may_begin_inside_a_pair: bool
    effort: Effort


class _Node(NamedTuple):
    """A translated part. A quantifier may follow it if it is one character, `chars`, or a group."""

    expression: str
    fragment: Fragment = NOTHING
    chars: CharSet | None = None
    is_group: bool = False


def translate(pattern: str) -> Translation:
    """Raises `RegexError`."""
    parser = _Parser(Cursor(pattern))
    node = parser.alternatives()
    if not parser.cursor.at_end:
        parser.cursor.refuse("a ')' that closes nothing")
    return Translation(
        node.expression,
        parser.groups,
        parser.names,
        frozenset(parser.repeated),
        parser.looks_behind,
        parser.automaton.may_begin_inside_a_pair(node.fragment),
        parser.automaton.effort(node.fragment),
    )


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.automaton = Automaton()
        self.groups = 0
        self.names: dict[str, int] = {}
        self.repeated: set[int] = set()
        self.looks_behind = False
        self._referenced: set[int] = set()
        self._closed: set[int] = set()
        self._flags = Flags()
        self._depth = 0
        self._in_lookbehind = False

    def alternatives(self) -> _Node:
        nodes = [self._sequence()]
        while self.cursor.accept("|"):
            nodes.append(self._sequence())
        return _Node(
            "|".join(node.expression for node in nodes),
            self.automaton.alternatives([node.fragment for node in nodes]),
        )

    def _sequence(self) -> _Node:
        nodes = []
        while not self.cursor.at_end and self.cursor.peek() not in ("|", ")"):
            nodes.append(self._repeated(self._atom))
        return _Node(
            "".join(node.expression for node in nodes),
            self.automaton.sequence(node.fragment for node in nodes),
        )

    def _atom(self) -> _Node:
        cursor = self.cursor
        chars = self._chars()
        match cursor.peek():
            case "(":
                return self._group()
            case "[":
                cursor.take()
                return self._char(chars.bracketed())
            case "\\":
                return self._escape()
            case ".":
                cursor.take()
                return self._char(
                    EVERYTHING if self._flags.dot_all else LINE_TERMINATORS.complement()
                )
            case "^" | "$" as anchor:
                cursor.take()
                return _Node(r"\A" if anchor == "^" else _DOLLAR)
            case "*" | "+" | "?" | "{" as quantifier:
                cursor.refuse(f"'{quantifier}' has nothing to repeat; write \\{quantifier} for it")
        return self._char(chars.literal(cursor.take().char))

    def _chars(self) -> CharReader:
        return CharReader(self.cursor, ignore_case=self._flags.ignore_case)

    def _escape(self) -> _Node:
        cursor = self.cursor
        start = cursor.index
        cursor.take()
        letter = cursor.peek()
        if letter in _ANCHORS:
            cursor.take()
            return _Node(_ANCHORS[letter])
        if letter and letter in "123456789":
            cursor.take()
            if cursor.peek() and cursor.peek() in DIGITS:
                cursor.refuse("a back reference before a digit; write (?:\\1) around it", start)
            return self._back_reference(int(letter), start)
        if letter == "k":
            cursor.take()
            if not cursor.accept("<"):
                cursor.refuse("\\k needs <name>", start)
            return self._back_reference(self.names.get(read_name(cursor), 0), start)
        found = self._chars().escape()
        return self._char(found if isinstance(found, CharSet) else self._chars().literal(found))

    def _back_reference(self, group: int, start: int) -> _Node:
        if group not in self._closed:
            self.cursor.refuse("a reference to a group that does not end before it", start)
        if self._flags.ignore_case:
            self.cursor.refuse("a back reference with the flag i is not supported", start)
        # Python reads numbers up to two digits.
        if group > 99:
            self.cursor.refuse("a reference to a group beyond the 99th", start)
        if group in self.repeated:
            self.cursor.refuse("a back reference to a group that is repeated", start)
        self._referenced.add(group)
        return _Node(f"(?:\\{group})", self.automaton.anything())

    def _group(self) -> _Node:
        cursor = self.cursor
        start = cursor.index
        cursor.take()
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            cursor.refuse(f"groups nested deeper than {DEEPEST_NESTING}", start)
        flags = self._flags
        node = self._inner_group(start)
        self._depth -= 1
        if node is None:
            return _Node("")
        if not cursor.accept(")"):
            cursor.refuse("a group that is not closed", start)
        self._flags = flags
        return node

    def _inner_group(self, start: int) -> _Node | None:
        """The group without its closing parenthesis; None if it only sets flags, and is closed."""
        cursor = self.cursor
        if not cursor.accept("?"):
            return self._capturing("")
        for sign, opening in _LOOKAROUND.items():
            if cursor.accept(sign):
                return self._lookaround(sign, opening, start)
        if cursor.accept("<"):
            return self._capturing(read_name(cursor))
        if cursor.peek() == ">":
            # Wrong in Python before 3.11.5 where the group repeats something.
            cursor.refuse("(?> is not supported", start)
        self._flags = read_flags(cursor, self._flags)
        if cursor.accept(")"):
            return None
        if not cursor.accept(":"):
            cursor.refuse("not a kind of group that is supported", start)
        node = self.alternatives()
        return _Node(f"(?:{node.expression})", node.fragment, is_group=True)

    def _capturing(self, name: str) -> _Node:
        self.groups += 1
        number = self.groups
        if name in self.names:
            self.cursor.refuse(f"a second group of the name {name}")
        if name:
            self.names[name] = number
        node = self.alternatives()
        self._closed.add(number)
        return _Node(f"({node.expression})", node.fragment, is_group=True)

    def _lookaround(self, sign: str, opening: str, start: int) -> _Node:
        groups = self.groups
        outer, self._in_lookbehind = self._in_lookbehind, self._in_lookbehind or "<" in sign
        node = self.alternatives()
        self._in_lookbehind = outer
        if self.groups > groups:
            # Java keeps what the group captured even after it has backtracked.
            self.cursor.refuse("a capturing group inside of a lookaround; write (?: for it", start)
        if "<" in sign:
            self.looks_behind = True
            if node.fragment.low != node.fragment.high:
                self.cursor.refuse("a lookbehind whose length is not fixed", start)
            return _Node(f"{opening}{node.expression})")
        return _Node(f"{opening}{node.expression})", self.automaton.looked_ahead(node.fragment))

    def _repeated(self, read: Callable[[], _Node]) -> _Node:
        before = self.groups
        node = read()
        quantifier = read_quantifier(self.cursor)
        if quantifier is None:
            return node
        expression = node.expression + quantifier.expression
        if node.chars is None:
            groups = range(before + 1, self.groups + 1)
            return _Node(expression, self._repeated_group(node, quantifier, groups))
        fragment = self.automaton.repeated_char(node.chars, quantifier.least, quantifier.most)
        return _Node(expression, fragment)

    def _repeated_group(self, node: _Node, quantifier: Quantifier, groups: range) -> Fragment:
        refuse, start = self.cursor.refuse, quantifier.start
        if not node.is_group:
            refuse("a quantifier after what is neither a character nor a group", start)
        if quantifier.kind == "+":
            # Wrong in Python before 3.11.5 where the group repeats something.
            refuse("a possessive quantifier after a group is not supported", start)
        if quantifier.is_optional:
            return self.automaton.repeated(node.fragment, 0, 1)
        if node.fragment.low == 0:
            refuse("a repeated group that can be empty, after which the two engines differ", start)
        if self._in_lookbehind:
            refuse("a repeated group inside of a lookbehind", start)
        self.repeated.update(groups)
        if self.repeated & self._referenced:
            refuse("a back reference to a group that is repeated", start)
        fragment = self.automaton.repeated(node.fragment, quantifier.least, quantifier.most)
        if self.automaton.is_ambiguous():
            refuse(
                "a repeated group whose text can be divided in more than one way, so that matching "
                "could take exponentially long",
                start,
            )
        return fragment

    def _char(self, chars: CharSet) -> _Node:
        return _Node(chars.expression(), self.automaton.char(chars), chars)
