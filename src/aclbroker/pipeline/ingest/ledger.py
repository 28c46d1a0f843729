"""Which log files are in the tables, and how far: known by what they say, not by their names.

Logs are rotated: renamed, copied and cut off, compressed. The text stays the same in all of these,
and grows at its end only. So a file is known by digests of the beginning of its text and of what is
before the byte up to which it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from aclbroker.pipeline.ingest.known_files import DIGEST, Files, Known
from aclbroker.pipeline.ingest.texts import Prefix

MARKS: Final = tuple(1 << power for power in range(6, 17))
"""Of how many bytes at the beginning of a text digests are kept, as far as it was read."""

_TAIL: Final = 4096
_SEEN: Final = 4
"""How many of a file's copies are remembered, so as not to look into them again."""


class Readable(Protocol):
    """A text that can be looked into, such as a `texts.Text`."""

    def at(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``, fewer if the text ends before."""
        ...


class Beginning(NamedTuple):
    """The first `MARKS` bytes of a text, ``size`` bytes of which count, and their digests."""

    head: bytes
    size: int
    marks: bytes


def beginning(head: bytes, size: int) -> Beginning:
    """Return what a text of ``size`` bytes begins with."""
    return Beginning(head, size, marks_of(head, size))


def marks_of(head: bytes, length: int) -> bytes:
    """Return the digests of a text of which ``length`` bytes count, by its beginning."""
    marks, hashed, done = b"", blake2b(digest_size=DIGEST), 0
    for mark in MARKS:
        if mark > length:
            break
        hashed.update(head[done:mark])
        done = mark
        marks += hashed.copy().digest()
    return marks


def known(text: Readable, path: str, length: int, head: bytes) -> Known:
    """Return what is known of a text of which ``length`` bytes were read."""
    tail = _digest(text.at(max(length - _TAIL, 0), length))
    return Known(path, length, marks_of(head, length), line_of(head, length), tail)


def prefix_of(file: Known) -> Prefix:
    """Return the longest beginning of a file that there is a digest of, all of a short one."""
    count = len(file.marks) // DIGEST
    if not count:
        # What is before the end of a short one is all of it.
        return Prefix(file.length, file.tail.hex())
    return Prefix(MARKS[count - 1], file.marks[-DIGEST:].hex())


def line_of(head: bytes, length: int) -> bytes:
    """Return the digest of the first line of a text, by its beginning; b"" if it has no end yet."""
    end = head.find(b"\n", 0, length) + 1
    return _digest(head[:end]) if end else b""


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()


class Change(NamedTuple):
    """What a commit changes in a ledger.

    ``batch`` is the number of the next batch then. ``newest`` has what is other or new in the
    ledger's, ``files`` what is known then of files at positions; new files follow those known.
    """

    batch: int
    newest: Mapping[str, float]
    files: Sequence[tuple[int, Known]]


class Ledger:
    """The files of one output.

    ``batch`` is the number of the next batch. ``newest`` has for each input that is one file the
    time of the newest text that was read for it, in seconds since 1970.
    """

    def __init__(self) -> None:
        self.batch = 0
        self.newest: dict[str, float] = {}
        self.files = Files()

    def read(
        self, changes: Iterable[tuple[int | None, Known]], newest: Mapping[str, float]
    ) -> Change:
        """Return what a batch changes.

        Each of ``changes`` replaces the file at a position; with None it is a new file.
        """
        end, files = len(self.files), []
        for position, file in changes:
            if position is None:
                files.append((end, file))
                end += 1
            else:
                seen = (*self.files[position].seen, *file.seen)
                files.append((position, file._replace(seen=seen[-_SEEN:])))
        return Change(self.batch + 1, self._newer(newest), files)

    def saw(self, seen: Mapping[int, Iterable[str]], newest: Mapping[str, float]) -> Change:
        """Return what signatures of files change that tell nothing more than those known."""
        files = []
        for position, signatures in seen.items():
            file = self.files[position]
            new = tuple(each for each in signatures if each not in file.seen)
            if new:
                files.append((position, file._replace(seen=(*file.seen, *new)[-_SEEN:])))
        return Change(self.batch, self._newer(newest), files)

    def apply(self, change: Change) -> None:
        """Change it. Raises ValueError if a file's position is behind the end."""
        for position, file in change.files:
            self.files.put(position, file)
        self.batch = change.batch
        self.newest.update(change.newest)

    def changes(self, change: Change) -> bool:
        """Tell whether a change changes anything."""
        return bool(change.files or change.newest or change.batch != self.batch)

    def _newer(self, newest: Mapping[str, float]) -> dict[str, float]:
        before = self.newest
        return {name: time for name, time in newest.items() if before.get(name) != time}


class Index:
    """Finds which of the known files a text is, by what it says; also of those about to be read.

    ``taken`` are these, in the order in which they were given to `take`.
    """

    def __init__(self, files: Files) -> None:
        self._known = files
        self.taken = Files()
        self._positions: list[int] = []
        self._taken: set[int] = set()
        self._end = len(files)

    def take(self, position: int | None, file: Known) -> None:
        """Note that more of a file, or a new one, is about to be read; it may be asked for, too."""
        if position is None:
            position, self._end = self._end, self._end + 1
        self._taken.add(position)
        self.taken.put(len(self.taken), file)
        self._positions.append(position)

    def is_taken(self, position: int) -> bool:
        """Whether a file was given to `take`."""
        return position in self._taken

    def known(self, text: Readable, begin: Beginning) -> int | None:
        """Return the position of the file that a text is, and may have more of.

        Of several the one of which most was read; what was given to `take` does not count. None if
        there is none.
        """
        found = _longest(self._known, _continued(self._known, text, begin))
        return None if found is None else found[1]

    def continued(self, text: Readable, begin: Beginning) -> int | None:
        """Return what `known` does, with what was given to `take` in place of what was known."""
        before = (each for each in self._known_now(_candidates(self._known, begin)))
        found = [
            _longest(self._known, _same(self._known, before, text, begin)),
            _longest(self.taken, _continued(self.taken, text, begin)),
        ]
        old, new = found
        if new is None or (old is not None and old[0] >= new[0]):
            return None if old is None else old[1]
        return self._positions[new[1]]

    def holds(self, begin: Beginning) -> int | None:
        """Return the position of a file that a text is the beginning of: a copy, not finished.

        Compared are the first line, and more than half of the text or its first 64 KiB. A text of
        less than 64 bytes, in which there is room for no record, is the beginning of none.
        """
        if not begin.marks:
            return None
        line = line_of(begin.head, begin.size)
        before = min(self._known_now(_longer(self._known, begin, line)), default=None)
        new = (self._positions[each] for each in _longer(self.taken, begin, line))
        return min(new, default=None) if before is None else before

    def _known_now(self, positions: Iterable[int]) -> Iterator[int]:
        return (each for each in positions if each not in self._taken)


def _candidates(files: Files, begin: Beginning) -> Iterator[int]:
    """Yield the files whose longest digest is one of a text's, those too short for one included."""
    ends = range(DIGEST, len(begin.marks) + 1, DIGEST)
    digests = [begin.marks[end - DIGEST : end] for end in ends]
    shorts = [length for length in files.short_lengths if length <= begin.size]
    return files.ending([*digests, *(_digest(begin.head[:length]) for length in shorts)])


def _continued(files: Files, text: Readable, begin: Beginning) -> Iterator[int]:
    return _same(files, _candidates(files, begin), text, begin)


def _same(
    files: Files, candidates: Iterable[int], text: Readable, begin: Beginning
) -> Iterator[int]:
    """Yield those of the candidates that a text is."""
    for number in candidates:
        file = files[number]
        if file.length > begin.size or file.marks != begin.marks[: len(file.marks)]:
            continue
        if len(file.marks) != DIGEST * sum(mark <= file.length for mark in MARKS):
            continue
        if _digest(text.at(max(file.length - _TAIL, 0), file.length)) == file.tail:
            yield number


def _longest(files: Files, numbers: Iterable[int]) -> tuple[int, int] | None:
    """Return the length and the number of the longest file, the first of those as long."""
    lengths = [(files.length(number), -number) for number in numbers]
    if not lengths:
        return None
    length, number = max(lengths)
    return length, -number


def _longer(files: Files, begin: Beginning, line: bytes) -> Iterator[int]:
    for number in files.having(begin.marks[-DIGEST:]):
        file = files[number]
        if file.length <= begin.size or file.marks[: len(begin.marks)] != begin.marks:
            continue
        if not line or file.line == line:
            yield number
