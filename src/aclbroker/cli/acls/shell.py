"""Simple commands of a shell script, without running anything: words, quotes, variables.

It is what a POSIX shell makes of a script in an empty environment, as far as that can be known from
the text: assignments in it, `${NAME:-...}` and `${NAME:+...}` count. What a command or a variable
that the text does not set would give is a hole in a word. Control structures are the reader's to
refuse: their words come as commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

HOLE: Final = "\0"
"""Stands around what is not known in a word, such as ``\\0$NAME\\0``; no argument can hold it."""

_BLANK: Final = re.compile(r"[ \t\r]+")
_CONTINUED: Final = re.compile(r"\\\r?\n")
_COMMENT: Final = re.compile(r"#[^\n]*")
_OPERATOR: Final = re.compile(r"\n|;|&&|\|\||&|\|")
_REDIRECTION: Final = re.compile(r"[0-9]*(?:>>|>|<)&?[ \t]*")
_PLAIN: Final = re.compile(r"[^\s\\'\"$`;&|<>()}]+")
_SINGLE: Final = re.compile(r"'([^']*)'")
_IN_DOUBLE: Final = re.compile(r"[^\"\\$`]+")
_PARENTHESIS: Final = re.compile(r"[()]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SPECIAL: Final = re.compile(r"[0-9@*#?$!-]")
_DEFAULT: Final = re.compile(r":?[-+?]")
ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=(.*)", re.DOTALL)
"""A word that gives a variable its value, if only such words stand before it."""


class ShellError(Exception):
    """The text is not understood; ``place`` is where, as a number of characters before it."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.place = place


class ShellCommand(NamedTuple):
    """The words of a simple command, and the operator before it (a line break, ``|`` and so on)."""

    place: int
    words: list[str]
    behind: str


class Shell:
    """Reads a script. ``variables`` are those that it has set until then, and may be added to."""

    def __init__(self, text: str) -> None:
        self.variables: dict[str, str] = {}
        self._text = text
        self._at = 0
        self._words: list[str] = []
        self._word: list[str] | None = None

    def commands(self) -> Iterator[ShellCommand]:
        """Yield one command after the other; those without a word are left out.

        Raises `ShellError`. A variable counts for what is read after it was set.
        """
        behind = "\n"
        while True:
            while self._take(_BLANK) or self._take(_CONTINUED):
                continue
            place, self._words = self._at, []
            operator = self._command()
            if self._words:
                yield ShellCommand(place, self._words, behind)
            if operator is None:
                return
            # A line may end behind an operator.
            if self._words or operator != "\n":
                behind = operator

    def _command(self) -> str | None:
        """Read up to an operator, which is returned; None at the end of the text."""
        while self._at < len(self._text):
            if self._take(_BLANK) is not None:
                self._end_word()
            elif self._word is None and self._take(_COMMENT) is not None:
                continue
            elif (operator := self._take(_OPERATOR)) is not None:
                self._end_word()
                return operator
            elif self._is_redirection():
                self._redirected()
            else:
                self._piece()
        self._end_word()
        return None

    def _is_redirection(self) -> bool:
        # A number before it is of it, unless that ends a word.
        return self._text[self._at] in "<>" or (
            self._word is None and _REDIRECTION.match(self._text, self._at) is not None
        )

    def _redirected(self) -> None:
        """Pass over a redirection and the word behind it."""
        self._end_word()
        place = self._at
        self._take(_REDIRECTION)
        if self._text.startswith("<", self._at):
            raise ShellError("<< is not understood", place)
        before, self._words = self._words, []
        while self._at < len(self._text) and self._text[self._at] not in " \t\r\n;&|<>()":
            self._piece()
        self._end_word()
        self._words = before

    def _piece(self) -> None:
        """Read the next part of a word."""
        place, first = self._at, self._text[self._at]
        if (plain := self._take(_PLAIN)) is not None:
            self._add(plain)
        elif self._take(_CONTINUED) is not None:
            return
        elif first == "\\":
            self._at += 2
            self._add(self._text[place + 1 : self._at])
        elif first == "'":
            match = _SINGLE.match(self._text, place)
            if match is None:
                raise ShellError("a ' is not closed", place)
            self._at = match.end()
            self._add(match[1])
        elif first == '"':
            self._add(self._double())
        elif first in "$`":
            self._spread(self._expansion())
        elif first == "}":
            self._at += 1
            self._add(first)
        else:
            raise ShellError(
                f"{first!r} is not understood here; quote it if it is of a name", place
            )

    def _double(self) -> str:
        found: list[str] = []
        place = self._at
        self._at += 1
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == '"':
                self._at += 1
                return "".join(found)
            if here in "$`":
                found.append(self._expansion())
            elif here == "\\":
                escaped = self._text[self._at + 1 : self._at + 2]
                self._at += 2
                if escaped != "\n":
                    found.append(escaped if escaped in tuple('$`"\\') else here + escaped)
            else:
                found.append(self._take(_IN_DOUBLE) or "")
        raise ShellError('a " is not closed', place)

    def _expansion(self) -> str:
        """Read what begins with ``$`` or a backtick; return its value, or a hole."""
        place = self._at
        self._at += 1
        if self._text[place] == "`":
            end = self._text.find("`", self._at)
            return self._hole(place, end)
        if (name := self._take(_NAME)) is not None:
            return self._value(name)
        if self._take(_SPECIAL) is not None:
            return self._hole(place, self._at - 1)
        if self._text.startswith("(", self._at):
            return self._hole(place, self._closing())
        if self._text.startswith("{", self._at):
            self._at += 1
            return self._braces(place)
        return "$"

    def _braces(self, place: int) -> str:
        name = self._take(_NAME)
        if name is None:
            return self._hole(place, self._text.find("}", self._at))
        operator = self._take(_DEFAULT)
        if operator is None:
            end = self._text.find("}", self._at)
            if end == self._at:
                self._at += 1
                return self._value(name)
            return self._hole(place, end)
        other = self._until_brace(place)
        value = self.variables.get(name, "")
        is_set = bool(value) if operator.startswith(":") else name in self.variables
        if operator.endswith("+"):
            return other if is_set else ""
        if is_set:
            return value
        return other if operator.endswith("-") else f"{HOLE}${name}{HOLE}"

    def _until_brace(self, place: int) -> str:
        """Return the word before the closing brace, which is read as well."""
        inner = Shell(self._text)
        inner.variables, inner._at = self.variables, self._at
        while inner._at < len(self._text):
            if self._text[inner._at] == "}":
                inner._end_word()
                self._at = inner._at + 1
                return " ".join(inner._words)
            if inner._take(_BLANK) is not None:
                inner._end_word()
            else:
                inner._piece()
        raise ShellError("a ${ is not closed", place)

    def _closing(self) -> int:
        """Return where the parenthesis closes that opens here, -1 if it does not."""
        depth = 0
        for match in _PARENTHESIS.finditer(self._text, self._at):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                return match.start()
        return -1

    def _hole(self, place: int, end: int) -> str:
        """Return a hole for what stands from a place to an end, which is read as well."""
        if end < 0:
            opening = "`" if self._text[place] == "`" else self._text[place : place + 2]
            raise ShellError(f"a {opening} is not closed", place)
        self._at = end + 1
        return f"{HOLE}{self._text[place : self._at]}{HOLE}"

    def _value(self, name: str) -> str:
        return self.variables.get(name, f"{HOLE}${name}{HOLE}")

    def _spread(self, value: str) -> None:
        """Add what an expansion without quotes gives: its blanks divide words."""
        parts = [value] if HOLE in value else re.split(r"[ \t\n]+", value)
        for number, part in enumerate(parts):
            if number:
                self._end_word()
            if part:
                self._add(part)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        """Read what a pattern matches here, None if it does not."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append("".join(self._word))
            self._word = None
