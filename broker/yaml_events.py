"""Reads YAML that people write by hand, event by event; errors name file, line and column.

PyYAML parses, since a person may write any YAML; only its events are used. So every scalar is the
text as it stands in the file: no name becomes a number, a date or `false`, no tag makes an object,
and no alias can blow up in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple, NoReturn

import yaml

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """A file that is not what it should be; the message names file, line, column and problem."""


class Position(NamedTuple):
    """A place in a file; both numbers begin with 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class YamlReader:
    """Reads one document; each method takes one level of the file.

    ``what`` is what the document is, such as "policy", ``source`` the name of its file. Every
    method raises ``error`` where the text is something else.
    """

    def __init__(
        self, text: str | bytes, source: str, what: str, error: type[YamlError] = YamlError
    ) -> None:
        self._source = source
        self._what = what
        self._error = error
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_Loader))
        self._next: Any = None
        self._advance()

    @property
    def position(self) -> Position:
        """Where what comes next begins."""
        return Position(self._next.start_mark.line + 1, self._next.start_mark.column + 1)

    def fail(self, problem: str, at: Position | None = None) -> NoReturn:
        """Raise the error at a position; None is where what comes next begins."""
        raise self._error(f"{self._source}: {at or self.position}: {problem}")

    def document(self, version: str, keys: Collection[str], needed: str) -> Iterator[str]:
        """Yield each key of the document but ``version``, whose value must be the given one.

        The value of a key must be taken before the next. The key ``needed`` must be there.
        """
        self._take(yaml.StreamStartEvent)
        if isinstance(self._next, yaml.StreamEndEvent):
            self.fail(f"the file is empty; a {self._what} begins with 'version: {version}'")
        self._take(yaml.DocumentStartEvent)
        begin = self.position
        found = set()
        for key in self.mapping(f"the {self._what}", ("version", *keys)):
            found.add(key)
            if key != "version":
                yield key
                continue
            at = self.position
            written = self.text(key)
            if written != version:
                self.fail(f"version {written} is not known, only {version}", at)
        for key in ("version", needed):
            if key not in found:
                self.fail(f"the {self._what} has no '{key}'", begin)
        self._take(yaml.DocumentEndEvent)
        if not isinstance(self._next, yaml.StreamEndEvent):
            self.fail(f"a {self._what} file holds one document; here a second begins")

    def mapping(self, what: str, keys: Collection[str]) -> Iterator[str]:
        """Yield each key of a mapping; its value must be taken before the next."""
        for key, at in self.entries(what):
            if key not in keys:
                self.fail(f"{what} has no key {key!r}, only {', '.join(keys)}", at)
            yield key

    def entries(self, what: str) -> Iterator[tuple[str, Position]]:
        """Yield each key of a mapping that may have any, and where it stands."""
        self._take(yaml.MappingStartEvent, f"{what} must be a mapping of keys to values")
        seen: set[str] = set()
        while not isinstance(self._next, yaml.MappingEndEvent):
            at = self.position
            key = self.text("a key")
            if key in seen:
                self.fail(f"'{key}' stands twice in {what}", at)
            seen.add(key)
            yield key, at
        self._take(yaml.MappingEndEvent)

    def sequence(self, what: str) -> Iterator[None]:
        """Yield once before each entry of a list; the entry must be taken before the next."""
        self._take(yaml.SequenceStartEvent, f"{_quoted(what)} must be a list")
        while not isinstance(self._next, yaml.SequenceEndEvent):
            yield
        self._take(yaml.SequenceEndEvent)

    def texts(self, what: str) -> Iterable[tuple[str, Position]]:
        """Yield each text of a list, or the one text in place of it, and where it stands."""
        if self.is_text:
            at = self.position
            yield self.text(what), at
            return
        for _ in self.sequence(what):
            at = self.position
            yield self.text(what), at

    @property
    def is_text(self) -> bool:
        """Whether one text comes next."""
        return isinstance(self._next, yaml.ScalarEvent)

    def text(self, key: str) -> str:
        """Take one text, the value of a key."""
        event = self._next
        text = self._take(yaml.ScalarEvent, f"{_quoted(key)} must be one text").value
        # An empty plain scalar is YAML's null: somebody forgot to write the value.
        if not text and event.style in (None, ""):
            at = Position(event.start_mark.line + 1, event.start_mark.column + 1)
            self.fail(f"{_quoted(key)} has no value", at)
        return str(text)

    def text_at(self, key: str) -> tuple[str, Position, Position | None]:
        """Take one text; return it, where it stands, and where its first character does.

        The latter is None for a text that goes over several lines.
        """
        event, begin = self._next, self.position
        text = self.text(key)
        is_one_line = event.end_mark.line == event.start_mark.line
        quotes = bool(event.style)
        return text, begin, begin._replace(column=begin.column + quotes) if is_one_line else None

    def _take(self, kind: type[Any], otherwise: str = "") -> Any:
        event = self._next
        if not isinstance(event, kind):
            alias = isinstance(event, yaml.AliasEvent)
            problem = otherwise or f"the file is no {self._what}"
            self.fail("aliases (*) are not supported; quote the text" if alias else problem)
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            self.fail("anchors (&) and tags (!) are not supported; quote the text")
        self._advance()
        return event

    def _advance(self) -> None:
        try:
            self._next = next(self._events, None)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            # The frequent mistake: a host or name * without quotes.
            hint = "; quote a text that begins with *" if "alias" in str(error.context) else ""
            where = f" {Position(mark.line + 1, mark.column + 1)}:" if mark else ""
            raise self._error(
                f"{self._source}:{where} {error.problem or error.context}{hint}"
            ) from None
        except yaml.YAMLError as error:
            # A byte that is no UTF-8, or a control character: the reader knows no line.
            raise self._error(f"{self._source}: {error}") from None


def _quoted(key: str) -> str:
    return key if key == "a key" else f"'{key}'"
