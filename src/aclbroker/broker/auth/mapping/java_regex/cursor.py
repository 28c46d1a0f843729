r"""The text of a Java regular expression, read character by character, with \Q...\E taken out."""

from __future__ import annotations

from typing import NamedTuple, NoReturn


class RegexError(ValueError):
    """The expression is malformed, or has something without an equal in Python.

    `position` counts characters of the expression from 0; `reason` is the text without it.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at character {position + 1}: {reason}")
        self.position = position
        self.reason = reason


class Token(NamedTuple):
    r"""A character, where it stands, and whether \Q...\E makes it stand for itself."""

    char: str
    position: int
    quoted: bool


class Cursor:
    """A place in an expression."""

    def __init__(self, pattern: str) -> None:
        self._tokens = _tokens(pattern)
        self._length = len(pattern)
        self.index = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.index >= len(self._tokens)

    def peek(self, ahead: int = 0) -> str:
        """The character there if it may be syntax: "" for a quoted one and after the end."""
        index = self.index + ahead
        if index >= len(self._tokens) or self._tokens[index].quoted:
            return ""
        return self._tokens[index].char

    def take(self) -> Token:
        """The next character; raises `RegexError` at the end."""
        if self.at_end:
            self.refuse("the expression ends too early")
        self.index += 1
        return self._tokens[self.index - 1]

    def accept(self, text: str) -> bool:
        """Skip the text if it comes next as syntax."""
        found = all(self.peek(ahead) == char for ahead, char in enumerate(text))
        self.index += len(text) if found else 0
        return found

    def accept_any(self, chars: str, most: int) -> str:
        """Skip as many of the characters as come next as syntax, up to `most`."""
        start = self.index
        while self.index - start < most and self.peek() and self.peek() in chars:
            self.index += 1
        return "".join(token.char for token in self._tokens[start : self.index])

    def refuse(self, reason: str, index: int | None = None) -> NoReturn:
        """Raise `RegexError` about the token of this index, the next one if it is not given."""
        index = self.index if index is None else index
        ended = index >= len(self._tokens)
        raise RegexError(self._length if ended else self._tokens[index].position, reason)


def _tokens(pattern: str) -> list[Token]:
    tokens: list[Token] = []
    quoted = False
    position = 0
    while position < len(pattern):
        pair = pattern[position : position + 2]
        if pair == (r"\E" if quoted else r"\Q"):
            quoted = not quoted
            position += 2
            continue
        # The two characters of an escape stay together, so that \\Q quotes nothing.
        width = 2 if pair[0] == "\\" and not quoted else 1
        for char in pair[:width]:
            if "\ud800" <= char <= "\udfff":
                raise RegexError(position, "half of a surrogate pair")
            tokens.append(Token(char, position, quoted))
            position += 1
    return tokens
