"""Finds the layout of a log by its first lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import chain
from typing import Final

from aclbroker.pipeline.ingest import json_line, kafka_line
from aclbroker.pipeline.ingest.conversion_pattern import compiled
from aclbroker.pipeline.ingest.envelopes import Envelope, WrappedLayout, json_object, opened
from aclbroker.pipeline.ingest.layouts import (
    JSON,
    LOOKED_FOR,
    Layout,
    TextLayout,
    has_logger,
)

_DEPTH: Final = 3
"""The most envelopes around one line, for example syslog around Docker around kubectl."""

_NOT_BEGUN: Final = (kafka_line.KafkaReason.HEAD, kafka_line.KafkaReason.OTHER)
_WORD: Final = kafka_line.PRINCIPAL.encode()
_KNOWN: Final = tuple(TextLayout(compiled(each)) for each in LOOKED_FOR)


def layout_of(head: bytes, more: Iterable[bytes] = (), pattern: str | None = None) -> Layout | None:
    """Return the layout of a log by its beginning; None for our own JSON Lines.

    The first line decides whether the log is JSON. The first record decides the layout and the
    envelopes. The candidates are the layout of ``pattern`` if it is given, or else the known ones.
    If the beginning has no record, the lines ``more`` are searched, too. A log without any record
    gets Kafka's own layout, or that of the pattern. Raises PatternError.
    """
    known = _KNOWN if pattern is None else (TextLayout(compiled(pattern)),)
    lines = _lines(head)
    if lines and own_envelope(lines[0]) is not None:
        return None
    if not lines or not lines[0].lstrip(b" \t").startswith(b"{"):
        return _first(chain(lines, more), known) or known[0]
    objects = (line for line in lines if json_object(line) is not None)
    first = next(objects, b"")
    if has_logger(first):
        return JSON if pattern is None else known[0]
    # A record of Kafka comes before an event of ours, which may be the text of a client.
    return None if _is_ours(first) else _first(chain([first], objects, more), known)


def own_envelope(head: bytes) -> Envelope | None:
    """Return the envelope around the first event of our own log in the beginning of a log.

    None if that event has no envelope, and if there is none.
    """
    for line in _lines(head):
        if _is_ours(line):
            return None
        for envelope, inner in opened(line):
            if _is_ours(inner):
                return envelope
    return None


def _lines(head: bytes) -> list[bytes]:
    """Return the lines of the beginning of a log that are not blank, without byte order mark."""
    return [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]


def _is_ours(line: bytes) -> bool:
    return json_line.is_event(json_object(line))


def _first(lines: Iterable[bytes], known: Sequence[TextLayout]) -> Layout | None:
    """Return the layout of the first line that is a record; None if no line begins as one.

    The first line that begins as a record decides which layouts are possible. The lines behind it
    may be the text of a client, so they cannot add a layout.
    """
    begun: list[Layout] = []
    for line in lines:
        if _WORD not in line and not line.lstrip().startswith(b"{"):
            continue
        found = dict(_told(line, known, _DEPTH))
        if not found:
            continue
        begun = [each for each in begun if each in found] if begun else list(found)
        for each in begun:
            if not isinstance(found[each], kafka_line.KafkaReason):
                return each
    return next(iter(begun), None)


def _told(line: bytes, known: Sequence[TextLayout], depth: int) -> Iterator[tuple[Layout, object]]:
    """Yield each layout in which a line begins as a record, with the result of parsing it."""
    layouts: Sequence[Layout] = (JSON,) if line.startswith(b"{") else known
    for each in layouts:
        said = kafka_line.parse(each.brought(line, UTC), "")
        if said not in _NOT_BEGUN:
            yield each, said
    if not depth:
        return
    for envelope, inner in opened(line):
        for layout, found in _told(inner, known, depth - 1):
            yield WrappedLayout(envelope, layout), found
