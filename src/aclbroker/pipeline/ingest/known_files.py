"""A million known log files in memory: a few hundred bytes for each, found by digests."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from aclbroker.pipeline.ingest.positions import Keys, Positions

DIGEST: Final = 16
"""How many bytes a digest has."""

_HEADER: Final = struct.Struct("<QIBB")
_AT_ONCE: Final = 1 << 14
_UINT64: Final = (1 << 64) - 1


class Known(NamedTuple):
    """A log file of which ``length`` bytes are in the tables.

    ``marks`` are the digests of its first `ledger.MARKS` bytes, of as many as ``length`` has, one
    behind the other, ``line`` is that of its first line, b"" if it has none, and ``tail`` of what
    is before ``length``. ``path`` is where it lay then. ``seen`` are signatures (`texts.signature`)
    of files that have nothing more to tell.
    """

    path: str
    length: int
    marks: bytes
    line: bytes
    tail: bytes
    seen: tuple[str, ...] = ()


class Files:
    """Known files by their positions; each is kept as bytes, its directory once for all in it."""

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self._directories: list[str] = []
        self._numbers: dict[str, int] = {}
        self.forget()
        self.short_lengths: set[int] = set()
        """The lengths of files that are too short for a digest of their beginning."""

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, position: int) -> Known:
        record = self._records[position]
        length, directory, count, has_line = _HEADER.unpack_from(record)
        line = _HEADER.size + DIGEST * count
        tail = line + DIGEST * has_line
        name, *seen = record[tail + DIGEST :].decode("utf-8", "surrogatepass").split("\0")
        return Known(
            self._directories[directory] + name,
            length,
            record[_HEADER.size : line],
            record[line:tail],
            record[tail : tail + DIGEST],
            tuple(seen),
        )

    def length(self, position: int) -> int:
        """Return how many bytes of a file are in the tables."""
        return int(_HEADER.unpack_from(self._records[position])[0])

    def put(self, position: int, file: Known) -> None:
        """Replace a file, or add one at the end. Raises ValueError for a position behind it."""
        if not 0 <= position <= len(self._records):
            raise ValueError(f"file {position} of {len(self._records)}")
        record = self._packed(file)
        if not file.marks:
            self.short_lengths.add(file.length)
        if position == len(self._records):
            self._records.append(record)
            return
        before = self[position]
        self._records[position] = record
        if position < self._indexed:
            self._replaced += 1
            self._add(range(position, position + 1), before)

    def are_seen(self, signatures: Sequence[str]) -> list[bool]:
        """Tell which signatures are known to have nothing more to tell."""
        self._index()
        found = self._by_signature.find(np.array([*map(_key, signatures)], np.uint64))
        return [
            any(each in self[position].seen for position in positions)
            for each, positions in zip(signatures, found, strict=True)
        ]

    def ending(self, digests: Sequence[bytes]) -> Iterator[int]:
        """Yield the files whose longest digest, or ``tail`` if they have none, is one of these.

        Each once. Others may be among them.
        """
        self._index()
        found = self._by_end.find(_keys(b"".join(digests)))
        return iter(dict.fromkeys(chain.from_iterable(found)))

    def having(self, digest: bytes) -> Iterator[int]:
        """Yield the files of which this is one of ``marks``; others may be among them."""
        self._index()
        return iter(dict.fromkeys(self._by_mark.find(_keys(digest))[0]))

    def forget(self) -> None:
        """Free what files are found by, and leave it to the next look to make all findable."""
        self._by_mark, self._by_end, self._by_signature = Positions(), Positions(), Positions()
        self._indexed = self._replaced = 0

    def _index(self) -> None:
        """Make all files findable."""
        if self._replaced > max(_AT_ONCE, len(self._records)):
            # What files were found by before they were replaced has come to be the larger part.
            self.forget()
        for first in range(self._indexed, len(self._records), _AT_ONCE):
            self._add(range(first, min(first + _AT_ONCE, len(self._records))))
        self._indexed = len(self._records)

    def _packed(self, file: Known) -> bytes:
        directory, name = os.path.split(file.path)
        directory = file.path[: len(file.path) - len(name)]
        number = self._numbers.setdefault(directory, len(self._directories))
        if number == len(self._directories):
            self._directories.append(directory)
        header = _HEADER.pack(file.length, number, len(file.marks) // DIGEST, bool(file.line))
        names = "\0".join((name, *file.seen)).encode("utf-8", "surrogatepass")
        return b"".join((header, file.marks, file.line, file.tail, names))

    def _add(self, positions: range, before: Known | None = None) -> None:
        """Make files findable; what the one ``before`` was found by already is left out."""
        marks: list[bytes] = []
        ends: list[bytes] = []
        seen: list[int] = []
        looked: list[int] = []
        old = before or Known("", 0, b"", b"", b"")
        for position in positions:
            file = self[position]
            marks.append(file.marks[len(old.marks) :])
            ends.append(_end(file) if _end(file) != _end(old) else b"")
            seen += (_key(each) for each in file.seen if each not in old.seen)
            looked.append(sum(each not in old.seen for each in file.seen))
        numbers = np.arange(positions.start, positions.stop, dtype=np.uint32)

        def add(index: Positions, keys: Keys, counts: list[int]) -> None:
            index.add(keys, np.repeat(numbers, counts))

        add(self._by_mark, _keys(b"".join(marks)), [len(each) // DIGEST for each in marks])
        add(self._by_end, _keys(b"".join(ends)), [len(each) // DIGEST for each in ends])
        add(self._by_signature, np.array(seen, np.uint64), looked)


def _end(file: Known) -> bytes:
    """Return the digest of the longest beginning that there is one of."""
    return file.marks[-DIGEST:] or file.tail


def _keys(digests: bytes) -> Keys:
    """Return the first 64 bits of each digest."""
    return np.frombuffer(digests, "<u8")[::2].astype(np.uint64)


def _key(signature: str) -> int:
    return hash(signature) & _UINT64
