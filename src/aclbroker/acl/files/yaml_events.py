"""Reads YAML that people write by hand, event by event; errors name file, line and column.

PyYAML parses, since a person may write any YAML; only its events are used. So every scalar is the
text as it stands in the file: no name becomes a number, a date or `false`, no tag makes an object,
and no alias can blow up in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNREADABLE: Final = (ReaderError, yaml.MarkedYAMLError)
_NO_ANCHORS: Final = "anchors (&) and tags (!) are not supported; quote the text"


class YamlError(ValueError):
    """A file that is not what it should be; the message names file, line, column and problem."""


class Position(NamedTuple):
    """A place in a file; both numbers begin with 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Mark(Protocol):
    """A place in a file as PyYAML tells it; both numbers begin with 0."""

    line: int
    column: int


def position_of(mark: Mark) -> Position:
    """Return the place of a mark, as people count."""
    return Position(mark.line + 1, mark.column + 1)


class YamlReader:
    """Reads one document; each method takes one level of the file.

    ``what`` is what the document is, such as "policy", ``source`` the name of its file. Every
    method raises ``error`` where the text is something else. Places are kept as marks, and what an
    error says is put together only where there is one: a large file has a million events.
    """

    def __init__(
        self, text: str | bytes, source: str, what: str, error: type[YamlError] = YamlError
    ) -> None:
        self._text = text
        self._source = source
        self._what = what
        self._error = error
        self._next: Any = None
        try:
            self._event: Callable[[], Any] = _Loader(text).get_event
            self._next = self._event()
        except _UNREADABLE as problem:
            self._refuse(problem)

    @property
    def mark(self) -> Mark:
        """Where what comes next begins."""
        mark: Mark = self._next.start_mark
        return mark

    def fail(self, problem: str, at: Mark | Position | None = None) -> NoReturn:
        """Raise the error at a place; None is where what comes next begins."""
        place = at if isinstance(at, Position) else position_of(at or self.mark)
        raise self._error(f"{self._source}: {place}: {problem}")

    def document(self, version: str, keys: Collection[str], needed: str) -> Iterator[str]:
        """Yield each key of the document but ``version``, whose value must be the given one.

        The value of a key must be taken before the next. The key ``needed`` must be there.
        """
        self._advance()
        if isinstance(self._next, StreamEndEvent):
            self.fail(f"the file is empty; a {self._what} begins with 'version: {version}'")
        self._advance()
        begin = self.mark
        found = set()
        for key in self.mapping(f"the {self._what}", ("version", *keys)):
            found.add(key)
            if key != "version":
                yield key
                continue
            at = self.mark
            written = self.text(key)
            if written != version:
                self.fail(f"version {written} is not known, only {version}", at)
        for key in ("version", needed):
            if key not in found:
                self.fail(f"the {self._what} has no '{key}'", begin)
        self._advance()
        if not isinstance(self._next, StreamEndEvent):
            self.fail(f"a {self._what} file holds one document; here a second begins")

    def mapping(self, what: str, keys: Collection[str]) -> Iterator[str]:
        """Yield each key of a mapping; its value must be taken before the next."""
        for key, at in self.entries(what):
            if key not in keys:
                self.fail(f"{what} has no key {key!r}, only {', '.join(keys)}", at)
            yield key

    def entries(self, what: str) -> Iterator[tuple[str, Mark]]:
        """Yield each key of a mapping that may have any, and where it stands."""
        self._enter(MappingStartEvent, what, "{} must be a mapping of keys to values")
        seen: set[str] = set()
        while self._next.__class__ is not MappingEndEvent:
            at = self._next.start_mark
            key = self.text("a key")
            if key in seen:
                self.fail(f"'{key}' stands twice in {what}", at)
            seen.add(key)
            yield key, at
        self._advance()

    def sequence(self, what: str) -> Iterator[None]:
        """Yield once before each entry of a list; the entry must be taken before the next."""
        self._enter(SequenceStartEvent, _quoted(what), "{} must be a list")
        while self._next.__class__ is not SequenceEndEvent:
            yield
        self._advance()

    def texts(self, what: str) -> Iterator[tuple[str, Mark]]:
        """Yield each text of a list, or the one text in place of it, and where it stands."""
        if self._next.__class__ is ScalarEvent:
            at = self._next.start_mark
            yield self.text(what), at
            return
        for _ in self.sequence(what):
            at = self._next.start_mark
            yield self.text(what), at

    def text(self, key: str) -> str:
        """Take one text, the value of a key."""
        event = self._next
        if event.__class__ is not ScalarEvent:
            self._fail_for(event, f"{_quoted(key)} must be one text")
        if event.anchor or event.tag:
            self.fail(_NO_ANCHORS)
        text: str = event.value
        # An empty plain scalar is YAML's null: somebody forgot to write the value.
        if not text and not event.style:
            self.fail(f"{_quoted(key)} has no value")
        self._advance()
        return text

    def text_at(self, key: str) -> tuple[str, Position, Position | None]:
        """Take one text; return it, where it stands, and where its first character does.

        The latter is None for a text that goes over several lines.
        """
        event, begin = self._next, position_of(self.mark)
        text = self.text(key)
        is_one_line = event.end_mark.line == event.start_mark.line
        quotes = bool(event.style)
        return text, begin, begin._replace(column=begin.column + quotes) if is_one_line else None

    def _enter(self, kind: type[Any], what: str, otherwise: str) -> None:
        """Take the beginning of a list or mapping."""
        event = self._next
        if event.__class__ is not kind:
            self._fail_for(event, otherwise.format(what))
        if event.anchor or event.tag:
            self.fail(_NO_ANCHORS)
        self._advance()

    def _fail_for(self, event: Any, otherwise: str) -> NoReturn:
        """Fail for an event of another kind."""
        is_alias = isinstance(event, AliasEvent)
        self.fail("aliases (*) are not supported; quote the text" if is_alias else otherwise)

    def _advance(self) -> None:
        try:
            self._next = self._event()
        except _UNREADABLE as error:
            self._refuse(error)

    def _refuse(self, error: ReaderError | yaml.MarkedYAMLError) -> NoReturn:
        """Raise the error that says what YAML cannot be read."""
        if isinstance(error, ReaderError):
            # A byte that is no UTF-8, or a control character.
            text = self._text.encode() if isinstance(self._text, str) else self._text
            line = text[: error.position].count(b"\n") + 1
            raise self._error(
                f"{self._source}: line {line}: {error.reason} (#x{_code(error):04x}); save the "
                "file as UTF-8, and write control characters as \\xXX between quotes"
            ) from None
        mark = error.problem_mark or error.context_mark
        # The frequent mistake: a host or name * without quotes.
        hint = "; quote a text that begins with *" if "alias" in str(error.context) else ""
        where = f" {position_of(mark)}:" if mark else ""
        raise self._error(
            f"{self._source}:{where} {error.problem or error.context}{hint}"
        ) from None


def _code(error: ReaderError) -> int:
    """Return the number of the character, or byte, that cannot be read."""
    found = error.character
    return ord(found) if isinstance(found, str | bytes) else int(found)


def _quoted(key: str) -> str:
    return key if key == "a key" else f"'{key}'"
