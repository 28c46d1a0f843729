"""The text of a local log file: its bytes, decompressed if its name says so."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa

COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""What a compressed file's name ends in, and what pyarrow calls that."""

HEAD: Final = 1 << 16
"""How many bytes of a text are looked at to tell how it is written."""

OPAQUE: Final = (".deflate", ".lz4", ".snappy")
"""Ends of the names of files that only Spark decompresses."""

_AT_ONCE: Final = 4 << 20


class MovedError(OSError):
    """A file is no longer what it was when its reading was planned, and lies nowhere beside."""


class Prefix(NamedTuple):
    """What the first ``length`` bytes of a text are, as a `digest`."""

    length: int
    digest: str


def digest(data: bytes) -> str:
    """Return what tells these bytes from others; nobody can make others with the same."""
    return blake2b(data, digest_size=16).hexdigest()


def is_compressed(path: str) -> bool:
    """Tell whether a file of this name is decompressed here."""
    return path.endswith(tuple(COMPRESSIONS))


def signature(status: os.stat_result) -> str:
    """Return what stays the same while a file is not written to, whatever its name becomes."""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


class Text:
    """An open file. Raises OSError if it cannot be opened or read, as all methods do.

    ``signature`` and ``modified``, in seconds since 1970, are of the moment when it was opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._compression = next(
            (how for end, how in COMPRESSIONS.items() if path.endswith(end)), None
        )
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by `close`
        status = os.fstat(self._file.fileno())
        self.signature = signature(status)
        self.modified = status.st_mtime

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def is_compressed(self) -> bool:
        """Whether the file is decompressed; such a file does not grow."""
        return self._compression is not None

    @property
    def is_opaque(self) -> bool:
        """Whether the text is not that of the log, but compressed in a way not known here."""
        return self.path.endswith(OPAQUE)

    def stream(self, start: int) -> Any:
        """Return a binary stream of the text from a byte on. One can be read at a time."""
        if self._compression is None:
            self._file.seek(start)
            return self._file
        # Arrow closes what it is given.
        raw = os.fdopen(os.dup(self._file.fileno()), "rb", buffering=0)
        raw.seek(0)
        found = pa.CompressedInputStream(pa.PythonFile(raw, "r"), self._compression)
        while start > 0:
            skipped = len(found.read(min(start, _AT_ONCE)))
            if not skipped:
                break
            start -= skipped
        return found

    def at(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``, fewer if the text ends before."""
        stream = self.stream(start)
        parts: list[bytes] = []
        while start < end and (data := stream.read(min(end - start, _AT_ONCE))):
            parts.append(data)
            start += len(data)
        return b"".join(parts)

    def size(self) -> int:
        """Return how many bytes the text has now; a compressed one is read for it."""
        if self._compression is None:
            return os.fstat(self._file.fileno()).st_size
        stream, size = self.stream(0), 0
        while data := stream.read(_AT_ONCE):
            size += len(data)
        return size

    def begins_with(self, prefix: Prefix) -> bool:
        """Tell whether the text has this beginning."""
        found = self.at(0, prefix.length)
        return len(found) == prefix.length and digest(found) == prefix.digest


def opened(path: str, prefix: Prefix | None = None) -> Text:
    """Open a file, or the one of its directory that has the beginning if it was renamed meanwhile.

    Raises OSError if the file cannot be opened, MovedError if none has the beginning.
    """
    if prefix is None:
        return Text(path)
    with suppress(FileNotFoundError):
        if found := _beginning(path, prefix):
            return found
    directory = str(Path(path).parent)
    # What was renamed while the directory was listed may be missing in the list.
    for is_fresh in (False, True):
        for each in _listing(directory, is_fresh=is_fresh).beginning(prefix):
            with suppress(OSError):
                if found := _beginning(each, prefix):
                    return found
    raise MovedError(f"{path} was rotated, or written anew, while it was read")


def is_there(path: str, prefix: Prefix, end: int) -> bool:
    """Tell whether `opened` finds a text with this beginning that has ``end`` bytes at least."""
    try:
        with opened(path, prefix) as text:
            return text.size() >= end
    except (OSError, pa.ArrowException):
        return False


def _beginning(path: str, prefix: Prefix) -> Text | None:
    """Open a file if it has this beginning, and return None if not, or if it cannot be read.

    Raises OSError if it cannot be opened.
    """
    text = Text(path)
    try:
        if text.begins_with(prefix):
            return text
    except (OSError, pa.ArrowException):
        pass  # such as one that is being compressed
    text.close()
    return None


class _Listing:
    """The files of a directory by how they begin, each looked into once for a length."""

    def __init__(self, directory: str) -> None:
        with os.scandir(directory) as entries:
            self._paths = sorted(each.path for each in entries if each.is_file())
        self._by_length: dict[int, dict[str, list[str]]] = {}

    def beginning(self, prefix: Prefix) -> list[str]:
        """Return the paths of those that had this beginning."""
        if prefix.length not in self._by_length:
            found: dict[str, list[str]] = {}
            for path in self._paths:
                try:
                    with Text(path) as text:
                        head = text.at(0, prefix.length)
                except (OSError, pa.ArrowException):
                    continue
                if len(head) == prefix.length:
                    found.setdefault(digest(head), []).append(path)
            self._by_length[prefix.length] = found
        return self._by_length[prefix.length].get(prefix.digest, [])


_last: list[tuple[str, int, _Listing]] = []
"""The directory that was listed last, when it had been changed then, and what was in it."""


def _listing(directory: str, *, is_fresh: bool) -> _Listing:
    """Return the files of a directory; unless ``is_fresh``, those known if it was not changed."""
    changed = os.stat(directory).st_mtime_ns
    if is_fresh or [each[:2] for each in _last] != [(directory, changed)]:
        _last[:] = [(directory, changed, _Listing(directory))]
    return _last[0][2]
