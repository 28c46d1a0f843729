"""What is new in log files since they were read last: growth, new files, and what rotation leaves.

A line that has no end yet is left for the next time, as long as the file may still grow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.ingest.ledger import MARKS, Index, Known, Ledger, known
from aclbroker.pipeline.ingest.texts import Prefix, Text, digest, is_compressed, signature

SETTLED: Final = 3600.0
"""After how many seconds without a change a file is taken for finished, its last line included."""

_BLOCK: Final = 1 << 20
_ROTATED: Final = re.compile(r"[.-][0-9].*")
"""What stands behind a log's name when it was rotated, such as ``.1``, or ``-20261121.gz``."""

EndOf = Callable[[Text, int, int], int]
"""Tells up to which byte of a text, from ``start`` to its ``size``, can be read by now."""


class Read(NamedTuple):
    """Bytes of a file that are to be read; ``prefix`` is how its text begins.

    ``after`` is what is known of the file then, in place of what was at ``position``, if anything.
    """

    path: str
    start: int
    end: int
    prefix: Prefix
    position: int | None
    after: Known


class Plan(NamedTuple):
    """What is to be read, the oldest first.

    ``seen`` has signatures of files that tell nothing new, by what they are. ``notes`` tell a
    person what was left out. ``has_vanished``: a file was renamed while it was looked for.
    """

    reads: list[Read]
    seen: dict[int, list[str]]
    notes: list[str]
    has_vanished: bool


class _Found(NamedTuple):
    text: Text
    head: bytes
    size: int


def plan(ledger: Ledger, paths: Iterable[str], end_of: EndOf) -> Plan:
    """Return what is new in files.

    Files of the same text are read once; the longest of them is. Raises OSError for a file that
    cannot be opened.
    """
    looked = {signature for file in ledger.files for signature in file.seen}
    made = Plan([], {}, [], False)
    with ThreadPoolExecutor() as pool:
        found: list[_Found] = []
        try:
            for each in pool.map(lambda path: _found(path, looked), paths):
                if isinstance(each, _Found):
                    found.append(each)
                elif each == _VANISHED:
                    made = made._replace(has_vanished=True)
                elif each:
                    made.notes.append(each)
            _compare(ledger, _once(found), end_of, made)
        finally:
            for one in found:
                one.text.close()
    return made


_VANISHED: Final = "vanished"


def _found(path: str, looked: set[str]) -> _Found | str:
    """Look into a file, unless it is known as it is; otherwise say why it is left out."""
    try:
        if signature(os.stat(path)) in looked:
            return ""
        text = Text(path)
    except FileNotFoundError:
        return _VANISHED
    try:
        head = text.at(0, MARKS[-1])
        return _Found(text, head, text.size())
    except (OSError, pa.ArrowException) as error:
        text.close()
        if not is_compressed(path):
            raise
        return f"{path} is not whole yet, and left for the next run: {error}"


def _once(found: Sequence[_Found]) -> Iterator[_Found]:
    """Yield each file once, the longest first, and compressed ones behind others."""
    order = sorted(found, key=lambda each: (-each.size, each.text.is_compressed, each.text.path))
    done: set[str] = set()
    for each in order:
        if each.size and each.text.signature not in done:
            done.add(each.text.signature)
            yield each


def _compare(ledger: Ledger, found: Iterable[_Found], end_of: EndOf, made: Plan) -> None:
    before, index = Index(ledger.files), Index(ledger.files)
    reads: list[tuple[float, Read]] = []
    for text, head, size in found:
        position = before.continued(text, head, size)
        start = 0 if position is None else ledger.files[position].length
        if position is None or index.is_taken(position):
            copied = index.continued(text, head, size)
            if copied is None:
                copied = index.holds(head, size)
            if copied is not None:
                _note_seen(made, ledger, index, copied, text)
                continue
            if position is not None and start == size:
                made.seen.setdefault(position, []).append(text.signature)
                continue
            # Of two files that began alike, each goes on in its own way.
            position = None
        if text.is_opaque and start:
            made.notes.append(
                f"{text.path} was changed: only Spark decompresses it, and reads it once"
            )
            continue
        end = end_of(text, start, size)
        if end < size:
            made.notes.append(
                f"{text.path}: the last {size - end:,} bytes, no whole line, wait for the next run"
            )
        if end > start:
            read = _read(text, head, start, end, position, is_whole=end == size)
            index.take(position, read.after)
            reads.append((text.modified, read))
        elif position is not None and end == size:
            _note_seen(made, ledger, index, position, text)
    made.reads.extend(read for _, read in sorted(reads, key=lambda each: (each[0], each[1].path)))


def _note_seen(made: Plan, ledger: Ledger, index: Index, position: int, text: Text) -> None:
    # A copy of what is only about to be read is looked at again next time: that may fail.
    if position < len(ledger.files) and not index.is_taken(position):
        made.seen.setdefault(position, []).append(text.signature)


def _read(
    text: Text, head: bytes, start: int, end: int, position: int | None, *, is_whole: bool
) -> Read:
    after = known(text, text.path, end, head)
    if is_whole:
        after = after._replace(seen=(text.signature,))
    prefix = after.prefix() or Prefix(end, digest(head[:end]))
    return Read(text.path, start, end, prefix, position, after)


def end_of_lines(text: Text, start: int, size: int) -> int:
    """Return where the last whole line ends, ``start`` if there is none."""
    end = size
    while end > start:
        block = max(start, end - _BLOCK)
        cut = text.at(block, end).rfind(b"\n") + 1
        if cut:
            return block + cut
        end = block
    return start


def rotated_from(path: str, since: float) -> list[str]:
    """Return the files that a log file was rotated to and that were written to since a time."""
    name = Path(path).name
    return [
        str(each)
        for each in sorted(Path(path).parent.iterdir())
        if each.name.startswith(name)
        and _ROTATED.fullmatch(each.name, len(name))
        and _modified(each) >= since
        and each.is_file()
    ]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return -1.0
