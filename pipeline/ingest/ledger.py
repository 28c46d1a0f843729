"""Which log files are in the tables, and how far: known by what they say, not by their names.

Logs are rotated: renamed, copied and cut off, compressed. The text stays the same in all of these,
and grows at its end only. So a file is known by digests of the beginning of its text and of what is
before the byte up to which it was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol

from aclbroker.pipeline.ingest.texts import Prefix, digest

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


class Known(NamedTuple):
    """A log file of which ``length`` bytes are in the tables.

    ``marks`` are digests of its first `MARKS` bytes, of as many as ``length`` has, ``line`` of its
    first line, and ``tail`` of the last `_TAIL` bytes before ``length``. ``path`` is where it lay
    then. ``seen`` are signatures (`texts.signature`) of files that have nothing more to tell.
    """

    path: str
    length: int
    marks: tuple[str, ...]
    line: str
    tail: str
    seen: tuple[str, ...] = ()

    def prefix(self) -> Prefix | None:
        """Return the longest beginning that there is a digest of, None if the text is too short."""
        return Prefix(MARKS[len(self.marks) - 1], self.marks[-1]) if self.marks else None


def marks_of(head: bytes, length: int) -> tuple[str, ...]:
    """Return the digests of a text of which ``length`` bytes count, by its beginning."""
    return tuple(digest(head[:mark]) for mark in MARKS if mark <= length)


def known(text: Readable, path: str, length: int, head: bytes) -> Known:
    """Return what is known of a text of which ``length`` bytes were read."""
    tail = digest(text.at(max(length - _TAIL, 0), length))
    return Known(path, length, marks_of(head, length), line_of(head, length), tail)


def line_of(head: bytes, length: int) -> str:
    """Return the digest of the first line of a text, by its beginning; "" if it has no end yet."""
    end = head.find(b"\n", 0, length) + 1
    return digest(head[:end]) if end else ""


@dataclass(frozen=True)
class Ledger:
    """The files of one output. It is a value: `with_read` returns another.

    ``batch`` is the number of the next batch. ``newest`` has for each input that is one file the
    time of the newest text that was read for it, in seconds since 1970.
    """

    batch: int = 0
    files: tuple[Known, ...] = ()
    newest: Mapping[str, float] = field(default_factory=dict)

    def with_read(self, changes: Iterable[tuple[int | None, Known]]) -> Ledger:
        """Return the ledger after a batch.

        Each change replaces the file at a position; with None it is a new file.
        """
        files = list(self.files)
        for position, file in changes:
            if position is None:
                files.append(file)
            else:
                files[position] = file._replace(seen=(*files[position].seen, *file.seen)[-_SEEN:])
        return replace(self, batch=self.batch + 1, files=tuple(files))

    def with_seen(self, seen: Mapping[int, Iterable[str]]) -> Ledger:
        """Return the ledger with signatures of files that tell nothing more than those known."""
        files = list(self.files)
        for position, signatures in seen.items():
            before = files[position].seen
            new = tuple(each for each in signatures if each not in before)
            files[position] = files[position]._replace(seen=(*before, *new)[-_SEEN:])
        return replace(self, files=tuple(files))

    def dumped(self) -> str:
        """Return it as a text, for `loaded`."""
        files = [each._asdict() for each in self.files]
        return json.dumps(
            {"version": 1, "batch": self.batch, "newest": self.newest, "files": files}
        )


def loaded(text: str) -> Ledger:
    """Return the ledger that a text says. Raises ValueError if it says none."""
    try:
        said = json.loads(text)
        if said["version"] != 1:
            raise ValueError(f"version {said['version']}")
        files = tuple(_file(each) for each in said["files"])
        return Ledger(
            int(said["batch"]), files, {str(k): float(v) for k, v in said["newest"].items()}
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _file(said: dict[str, Any]) -> Known:
    return Known(
        str(said["path"]),
        int(said["length"]),
        tuple(map(str, said["marks"])),
        str(said["line"]),
        str(said["tail"]),
        tuple(map(str, said["seen"])),
    )


class Index:
    """Finds which of the known files a text is, by what it says."""

    def __init__(self, files: Iterable[Known]) -> None:
        self._files: dict[int, Known] = {}
        self._by_mark: dict[str, set[int]] = {}
        self._short: set[int] = set()
        self._taken: set[int] = set()
        for position, file in enumerate(files):
            self._put(position, file)

    def take(self, position: int | None, file: Known) -> None:
        """Note that more of a file, or a new one, is about to be read; it may be asked for, too."""
        if position is None:
            position = max(self._files, default=-1) + 1
        self._put(position, file)
        self._taken.add(position)

    def is_taken(self, position: int) -> bool:
        """Whether a file was given to `take`."""
        return position in self._taken

    def continued(self, text: Readable, head: bytes, size: int) -> int | None:
        """Return the position of the file that a text of ``size`` bytes is, and may have more of.

        Of several the one of which most was read. None if there is none.
        """
        found = sorted(self._candidates(head, size), key=lambda each: -self._files[each].length)
        for position in found:
            file = self._files[position]
            if file.length > size or file.marks != marks_of(head, file.length):
                continue
            if digest(text.at(max(file.length - _TAIL, 0), file.length)) == file.tail:
                return position
        return None

    def holds(self, head: bytes, size: int) -> int | None:
        """Return the position of a file that a text is the beginning of: a copy, not finished.

        Compared are the first line, and more than half of the text or its first 64 KiB. A text of
        less than 64 bytes, in which there is room for no record, is the beginning of none.
        """
        marks, line = marks_of(head, size), line_of(head, size)
        if not marks:
            return None
        longer = (
            position
            for position in self._by_mark.get(marks[-1], ())
            if self._files[position].length > size
            and (not line or self._files[position].line == line)
        )
        return min(longer, default=None)

    def _put(self, position: int, file: Known) -> None:
        self._files[position] = file
        for mark in file.marks:
            self._by_mark.setdefault(mark, set()).add(position)
        (self._short.discard if file.marks else self._short.add)(position)

    def _candidates(self, head: bytes, size: int) -> Iterator[int]:
        yield from self._short
        if size >= MARKS[0]:
            yield from self._by_mark.get(digest(head[: MARKS[0]]), ())
