"""Files of statements that must be true of a set of ACLs (docs/reasoning.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.acl.files.yaml_events import YamlError, YamlReader
from aclbroker.acl.reasoning.invariants import Invariant
from aclbroker.acl.reasoning.sentences import SentenceError, parse_sentence

_VERSION: Final = "1"
_STATEMENTS: Final = "invariants"


class InvariantError(YamlError):
    """A file that has no statements; the message names the file, the line and column."""


class Statement(NamedTuple):
    """A statement, as it was written and where, line and column from 1."""

    text: str
    line: int
    column: int
    invariant: Invariant


def read_invariants(path: Path) -> list[Statement]:
    """Read a file. Raises InvariantError, and OSError if it cannot be read."""
    return parse_invariants(path.read_bytes(), str(path))


def parse_invariants(text: str | bytes, source: str = _STATEMENTS) -> list[Statement]:
    """Return the statements of a text. Raises InvariantError, which names ``source``."""
    return _Parser(text, source, "file of invariants", InvariantError).statements()


class _Parser(YamlReader):
    def statements(self) -> list[Statement]:
        """Return the statements of the whole text."""
        begin, found = self.mark, list[Statement]()
        for key in self.document(_VERSION, (_STATEMENTS,), needed=_STATEMENTS):
            found += [self._statement() for _ in self.sequence(key)]
        if not found:
            self.fail(f"'{_STATEMENTS}' has no statement", begin)
        return found

    def _statement(self) -> Statement:
        text, at, begin = self.text_at(_STATEMENTS)
        try:
            return Statement(text, *at, parse_sentence(text))
        except SentenceError as error:
            # Of a text that goes over several lines only the beginning is known.
            wrong = begin._replace(column=begin.column + error.offset) if begin else at
            self.fail(f"{error} ({text!r})", wrong)
