"""Finds the last denial in an audit log, in each form of `aclbroker audit`, and that of consoles.

This module needs none of the packages of `aclbroker audit`.
"""

from __future__ import annotations

import bz2
import gzip
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from aclbroker.cli.records import Recorded, of_console, of_json, of_kafka
from aclbroker.cli.rules_source import SourceError
from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.kafka_line import LONGEST_RECORD, KafkaReason
from aclbroker.pipeline.ingest.layout_search import layout_of, own_envelope
from aclbroker.pipeline.ingest.layouts import LAYOUTS, Layout

_BLOCK: Final = 1 << 20
_HEAD: Final = 1_000
"""The number of lines that show the layout of a log."""

_DENIALS: Final = (
    *(b'"allowed":false', b'"allowed": false', b'\\"allowed\\":false'),
    *(b" allowed=false ", b" is Denied "),
)
"""Every record of a denial has one of these."""

_ELSEWHERE: Final = {".zst": "zstd -dc", ".lz4": "lz4 -dc", ".xz": "xz -dc", ".zip": "unzip -p"}
"""The commands that decompress the formats that this module cannot read."""

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_SHOWN: Final = 100
_NONE: Final = "there is no record of a denial (one that only filtered an answer does not count)"
_DOUBTFUL: Final = "a record before it is cut off, so that a client may have written it"


def of_file(place: str, pattern: str | None = None) -> Recorded:
    """Return the last denial in a log that did more than filter an answer; ``-`` is stdin.

    ``pattern`` is the conversion pattern of a Kafka's log. Raises SourceError without such a
    denial, or for a file that cannot be read, and PatternError.
    """
    try:
        with ExitStack() as stack:
            if place == "-":
                place, file = "standard input", sys.stdin.buffer
                found = _last_of(file, pattern) if file.seekable() else _forward(file, pattern)
            elif place.endswith(".gz"):
                found = _forward(stack.enter_context(gzip.open(place, "rb")), pattern)
            elif place.endswith(".bz2"):
                found = _forward(stack.enter_context(bz2.open(place, "rb")), pattern)
            elif end := next(filter(place.endswith, _ELSEWHERE), None):
                raise SourceError(
                    f"{place}: {end} files are not read here: "
                    f"{_ELSEWHERE[end]} {place} | aclbroker explain --record -"
                )
            else:
                found = _last_of(stack.enter_context(Path(place).open("rb")), pattern)
    except (OSError, EOFError, UnicodeError) as error:
        raise SourceError(f"{place}: {getattr(error, 'strerror', None) or error}") from error
    return found.recorded(place)


@dataclass(slots=True)
class _Unread:
    """The number of unreadable lines that look like denials, and the last one with its reason."""

    lines: int = 0
    last: bytes = b""
    reason: str = ""

    def add(self, line: bytes, reason: str) -> None:
        self.lines, self.last, self.reason = self.lines + 1, line, reason


@dataclass(slots=True)
class _Found:
    """The last denial so far, and the unreadable lines that look like one."""

    last: Recorded | None = None
    unread: _Unread = field(default_factory=_Unread)

    def recorded(self, place: str) -> Recorded:
        """Return the denial. Raises SourceError if there is none."""
        lines, reason = self.unread.lines, self.unread.reason
        if self.last is None and not lines:
            raise SourceError(f"{place}: {_NONE}")
        look = (
            f"{lines:,} {'line looks like a denial' if lines == 1 else 'lines look like denials'}"
        )
        if self.last is None:
            shown = self.unread.last[:_SHOWN].decode(errors="replace")
            raise SourceError(
                f"{place}: {look} in a layout that is not known ({reason}): {shown!r}... "
                f"Name the layout with --pattern. A look at the log finds {LAYOUTS}"
            )
        if not lines:
            return self.last
        note = f"{look} and could not be read ({reason})"
        return self.last._replace(notes=(*self.last.notes, note))


class _Form(Protocol):
    """A reader of the lines of a log, one after the other."""

    def read(self, line: bytes) -> Recorded | str | None:
        """Return the decision of a line that may be a denial, or why it cannot be read.

        Return None for a line that cannot be one.
        """
        ...


class _Ours:
    """Reads our own JSON Lines, or lines for a console, each by itself."""

    def read(self, line: bytes) -> Recorded | str | None:
        """Return the decision of a line that may be a denial, or why it cannot be read."""
        if not _looks_denied(line):
            return None
        envelope = own_envelope(line)
        inner = None if envelope is None else envelope.opened(line)
        return of_json(inner or of_console(line) or line)


class _Kafkas:
    """Reads a Kafka's log, whose lines a client can break by a line break in a name.

    The lines behind a cut-off record may be that client's, up to a line that ends as a record but
    is none.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._clock = "" if layout.zone(_LOCAL) is _LOCAL else " UTC"
        self._doubtful = 0
        """The number of next bytes that may be a client's."""

    def read(self, line: bytes) -> Recorded | str | None:
        """Return the decision of a line that may be a denial, or why it cannot be read."""
        own = self._layout.brought(line, UTC)
        found = kafka_line.parse(own, "")
        is_doubtful = self._doubtful > 0
        self._doubtful -= self._layout.size(line)
        if self._layout.is_breakable() and isinstance(found, KafkaReason):
            if found is KafkaReason.CUT_OFF:
                self._doubtful = LONGEST_RECORD
            elif kafka_line.ends_as_record(own):
                self._doubtful = 0
        if not _looks_denied(line):
            return None
        if is_doubtful and not isinstance(found, KafkaReason):
            return _DOUBTFUL
        return of_kafka(found, f"{own[1:24].decode()}{self._clock}")


_LOCAL: Final = timezone(timedelta(0), "the broker's")
"""A stand-in for the broker's zone, which lines do not name."""


def _layout_of(lines: Iterable[bytes], pattern: str | None) -> Layout | None:
    """Return the layout of a Kafka's log that has such lines; None for our own log."""
    head = [line.rstrip(b"\r\n") for line in lines]
    if any(of_console(line) is not None for line in head[:1]):
        return None
    return layout_of(b"\n".join(head), pattern=pattern)


def _form(layout: Layout | None) -> _Form:
    """Return a new reader for the lines of a layout."""
    return _Ours() if layout is None else _Kafkas(layout)


def _search(lines: Iterable[bytes], form: _Form, found: _Found) -> None:
    """Note the last denial of lines, and the unreadable lines, in ``found``."""
    for line in lines:
        text = line.rstrip(b"\r\n")
        said = form.read(text)
        if isinstance(said, str):
            found.unread.add(text, said)
        elif said is not None and not said.is_allowed and not said.is_quiet:
            found.last = said


def _looks_denied(line: bytes) -> bool:
    """Cheap check for a denial before the exact one: True may be wrong, False never is."""
    return any(each in line for each in _DENIALS)


def _forward(lines: Iterable[bytes], pattern: str | None) -> _Found:
    """Search the lines of a stream that cannot be read from its end."""
    rest = iter(lines)
    head = list(islice(rest, _HEAD))
    _check_encoding(b"".join(head[:1]))
    found = _Found()
    _search(chain(head, rest), _form(_layout_of(head, pattern)), found)
    return found


def _last_of(file: BinaryIO, pattern: str | None) -> _Found:
    """Search a file block by block from its end, until a block has a denial."""
    file.seek(0)
    head = list(islice(file, _HEAD))
    _check_encoding(b"".join(head[:1]))
    found = _Found()
    layout, is_known = None, False
    for before, block in _blocks(file):
        if not is_known:
            layout, is_known = _layout_of(chain(head, block), pattern), True
        form = _form(layout)
        # The lines before the block show whether it begins within a broken record.
        _search(before, form, _Found())
        _search(block, form, found)
        if found.last is not None:
            break
    return found


def _blocks(file: BinaryIO) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the lines of a file in blocks, the last block first, and the lines before each."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = begin = end
        size = _BLOCK
        while begin in (start, end) and start:
            start = max(0, end - size)
            data = _read(file, start, end)
            # A line that begins before the block belongs to the next one.
            begin = start + (data.find(b"\n") + 1 if start else 0)
            size *= 2
        lead = max(0, begin - LONGEST_RECORD)
        before = _read(file, lead, begin)
        yield before.split(b"\n")[bool(lead) : -1], data[begin - start :].split(b"\n")
        end = begin


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _check_encoding(head: bytes) -> None:
    """Raise UnicodeError for the beginning of a text that is not UTF-8."""
    if head.startswith(_UTF_16):
        raise UnicodeError("the log is UTF-16: convert it with iconv -f UTF-16 -t UTF-8")
