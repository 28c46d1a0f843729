"""What is new in log files since they were read last: growth, new files, and what rotation leaves.

A line that has no end yet is left for the next time, as long as the file may still grow.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from aclbroker.pipeline.ingest.ledger import MARKS, Index, Ledger, beginning, known
from aclbroker.pipeline.ingest.reads import Reads, in_order
from aclbroker.pipeline.ingest.texts import Text, is_compressed, signature

SETTLED: Final = 3600.0
"""After how many seconds without a change a file is taken for finished, its last line included."""

_BLOCK: Final = 1 << 20
_ROTATED: Final = re.compile(r"[.-][0-9].*")
"""What stands behind a log's name when it was rotated, such as ``.1``, or ``-20261121.gz``."""

EndOf = Callable[[Text, int, int], int]
"""Tells up to which byte of a text, from ``start`` to its ``size``, can be read by now."""


class Plan(NamedTuple):
    """What is to be read, the oldest first.

    ``seen`` has signatures of files that tell nothing new, by what they are. ``notes`` tell a
    person what was left out. ``waiting`` are files whose end is left for the next time.
    ``has_vanished``: a file was renamed while it was looked for.
    """

    reads: Reads
    seen: dict[int, list[str]]
    notes: list[str]
    waiting: list[str]
    has_vanished: bool


class _Found(NamedTuple):
    """A file, and how many bytes its text has."""

    path: str
    signature: str
    size: int


class _Looked:
    """Files that were looked into: their paths, and a few bytes for each."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.sizes = array("q")
        self.signatures = array("q")
        """A hash of each signature: who takes two for the same file meets the other next time."""

    def add(self, found: _Found) -> None:
        self.paths.append(found.path)
        self.sizes.append(found.size)
        self.signatures.append(hash(found.signature))

    def each_once(self) -> Iterator[int]:
        """Yield their numbers, the longest first, and compressed ones behind others as long."""
        sizes = -np.asarray(self.sizes)
        are_compressed = np.fromiter(map(is_compressed, self.paths), bool, len(self.paths))
        order = in_order([sizes, are_compressed], self.paths.__getitem__)
        _, first = np.unique(np.asarray(self.signatures)[order], return_index=True)
        return iter(order[np.sort(first)].tolist())


def plan(ledger: Ledger, paths: Iterable[str], end_of: EndOf) -> Plan:
    """Return what is new in files; ``paths`` are looked at as they come.

    Files of the same text are read once; the longest of them is. Raises OSError for a file that
    cannot be opened.
    """
    index = Index(ledger.files)
    made = Plan(Reads(index.taken), {}, [], [], False)
    looked = _Looked()
    for each in _looked_at(ledger, paths):
        if isinstance(each, _Found):
            looked.add(each)
        elif each == _VANISHED:
            made = made._replace(has_vanished=True)
        else:
            made.notes.append(each)
    comparing = _Comparing(ledger, index, end_of, made)
    for number in looked.each_once():
        try:
            with Text(looked.paths[number]) as text:
                is_other = text.is_compressed and (
                    hash(text.signature) != looked.signatures[number]
                )
                if not is_other:
                    size = looked.sizes[number] if text.is_compressed else text.size()
                    comparing.compare(text, size)
        except FileNotFoundError:
            is_other = True
        if is_other:
            made = made._replace(has_vanished=True)
    index.taken.forget()
    return made


_VANISHED: Final = "vanished"
_LOOKED: Final = 256
"""How many files one thread looks at before the next."""
_WAITING: Final = 64
"""How many times as many are looked at before what was found of them is taken."""


def _looked_at(ledger: Ledger, paths: Iterable[str]) -> Iterator[_Found | str]:
    """Yield what `_found` tells of the files that are not known as they are."""
    rest = iter(paths)
    # Those that are compressed are decompressed for it, and a file system may be far away.
    with ThreadPoolExecutor() as pool:
        while some := list(islice(rest, _LOOKED * _WAITING)):
            parts = (some[first : first + _LOOKED] for first in range(0, len(some), _LOOKED))
            signatures = [*chain.from_iterable(pool.map(_signatures, parts))]
            some = [path for path, each in zip(some, signatures, strict=True) if each is not None]
            yield from (_VANISHED for each in signatures if each is None)
            there = [each for each in signatures if each is not None]
            are_seen = ledger.files.are_seen(there)
            new = [path for path, is_seen in zip(some, are_seen, strict=True) if not is_seen]
            yield from pool.map(_found, new)


def _signatures(paths: Iterable[str]) -> list[str | None]:
    """Return the signatures of files, None for those that are not there any more."""
    found: list[str | None] = []
    for path in paths:
        try:
            found.append(signature(os.stat(path)))
        except FileNotFoundError:
            found.append(None)
    return found


def _found(path: str) -> _Found | str:
    """Look into a file; if it is left out, say why."""
    try:
        with Text(path) as text:
            return _Found(path, text.signature, text.size())
    except FileNotFoundError:
        return _VANISHED
    except (OSError, pa.ArrowException) as error:
        if not is_compressed(path):
            raise
        return f"{path} is not whole yet, and left for the next run: {error}"


class _Comparing:
    """Compares texts with what is known, the longest first, and notes in ``made`` what is new."""

    def __init__(self, ledger: Ledger, index: Index, end_of: EndOf, made: Plan) -> None:
        self._ledger = ledger
        self._index = index
        self._end_of = end_of
        self._made = made

    def compare(self, text: Text, size: int) -> None:
        """Look what is new in a text of so many bytes."""
        if not size:
            return
        head = text.at(0, MARKS[-1])
        begin = beginning(head, size)
        position = self._index.known(text, begin)
        start = 0 if position is None else self._ledger.files.length(position)
        if position is None or self._index.is_taken(position):
            copied = self._index.continued(text, begin)
            if copied is None:
                copied = self._index.holds(begin)
            if copied is not None:
                self._note_seen(copied, text)
                return
            if position is not None and start == size:
                self._made.seen.setdefault(position, []).append(text.signature)
                return
            # Of two files that began alike, each goes on in its own way.
            position = None
        self._go_on(text, head, size, position, start)

    def _go_on(self, text: Text, head: bytes, size: int, position: int | None, start: int) -> None:
        if text.is_opaque and start:
            self._made.notes.append(
                f"{text.path} was changed: only Spark decompresses it, and reads it once"
            )
            return
        end = self._end_of(text, start, size)
        if end < size:
            self._made.waiting.append(text.path)
            self._made.notes.append(
                f"{text.path}: the last {size - end:,} bytes, no whole line, wait for the next run"
            )
        if end > start:
            after = known(text, text.path, end, head)
            if end == size:
                after = after._replace(seen=(text.signature,))
            self._index.take(position, after)
            self._made.reads.add(start, position, text.modified)
        elif position is not None and end == size:
            self._note_seen(position, text)

    def _note_seen(self, position: int, text: Text) -> None:
        # A copy of what is only about to be read is looked at again next time: that may fail.
        if position < len(self._ledger.files) and not self._index.is_taken(position):
            self._made.seen.setdefault(position, []).append(text.signature)


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
    directory, name = os.path.split(path)
    with os.scandir(directory) as entries:
        found = [
            each.path
            for each in entries
            if each.name.startswith(name)
            and _ROTATED.fullmatch(each.name, len(name))
            and _modified(each.path) >= since
            and each.is_file()
        ]
    return sorted(found)


def looked_since(
    before: Mapping[str, float], now: Mapping[str, float], waiting: Iterable[str]
) -> dict[str, float]:
    """Return since when `rotated_from` is to look next, by log file.

    ``before``: since when it looked now. ``now``: when the log files were written to last. What a
    log was rotated to and is ``waiting`` must be found again.
    """
    held = {path for path in now for each in waiting if each != path and each.startswith(path)}
    return {**before, **{path: time for path, time in now.items() if path not in held}}


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return -1.0
