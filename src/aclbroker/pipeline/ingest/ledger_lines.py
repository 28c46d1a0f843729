"""A ledger as a text of lines: one for each file, and one that ends each commit.

The first line says the version. That of a file is what is known of it then, in place of what an
earlier line says of its position. That of a commit ends in a checksum of all before it, so that
what a killed run left behind the last one is told from damage: it counts for nothing.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple
from zlib import crc32

from aclbroker.pipeline.ingest.known_files import DIGEST, Known
from aclbroker.pipeline.ingest.ledger import Change, Ledger

HEADER: Final = b'{"version": 2}\n'
"""The first line."""

_CHECKSUM: Final = len(" 00000000\n")


class Whole(NamedTuple):
    """The part of a text that is whole: up to the end of its last commit.

    ``lines`` and ``size`` tell how many lines and bytes that are, ``checksum`` is theirs. ``first``
    is the size up to the end of the first commit, which told all that was known then. ``batch`` is
    the number of the next batch, ``newest`` the ledger's.
    """

    first: int
    lines: int
    size: int
    checksum: int
    batch: int
    newest: dict[str, float]


def commit_lines(change: Change, checksum: int) -> Iterator[bytes]:
    """Yield the lines of a commit behind a text of this checksum."""
    return _commit_lines(change.files, change.batch, change.newest, checksum)


def all_lines(ledger: Ledger) -> Iterator[bytes]:
    """Yield all lines of a text that says a ledger in one commit."""
    yield HEADER
    files = ((position, ledger.files[position]) for position in range(len(ledger.files)))
    yield from _commit_lines(files, ledger.batch, ledger.newest, crc32(HEADER))


def whole(lines: Iterable[bytes]) -> Whole:
    """Return which part of a text is whole; behind it may be what a commit that was killed left.

    Raises ValueError for what no killed run leaves.
    """
    found: Whole | None = None
    newest: dict[str, float] = {}
    size = checksum = 0
    for number, line in enumerate(lines, 1):
        if number == 1 and line != HEADER:
            raise ValueError(f"it begins with {line[:40]!r}")
        before, checksum = checksum, crc32(line, checksum)
        size += len(line)
        if number > 1 and not _is_of_file(line) and not _is_cut(line, before):
            batch, new = _commit(line, before, number)
            newest.update(new)
            first = size if found is None else found.first
            found = Whole(first, number, size, checksum, batch, newest)
    if found is None:
        raise ValueError("it has no end")
    return found


def loaded(lines: Iterable[bytes], part: Whole) -> Ledger:
    """Return the ledger that the part of a text says which is whole.

    Raises ValueError if it says none.
    """
    ledger = Ledger()
    for line in islice(lines, part.lines):
        if line.startswith(b"["):
            position, file = _file_of(line)
            ledger.files.put(position, file)
    ledger.apply(Change(part.batch, part.newest, ()))
    return ledger


def is_old(line: bytes) -> bool:
    """Tell whether a text that begins with a line is of the first version."""
    return line.startswith(b'{"version": 1,')


def loaded_old(text: bytes) -> Ledger:
    """Return the ledger that a text of the first version says, or raise ValueError."""
    try:
        said = json.loads(text)
        ledger = Ledger()
        for position, each in enumerate(said["files"]):
            ledger.files.put(position, _old_file(each))
        newest = {str(name): float(time) for name, time in said["newest"].items()}
        ledger.apply(Change(int(said["batch"]), newest, ()))
        return ledger
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _is_of_file(line: bytes) -> bool:
    return line.startswith(b"[") and line.endswith(b"]\n")


def _is_cut(line: bytes, checksum: int) -> bool:
    """Tell whether nobody finished a line; it is the last, and more than its end is missing."""
    if line.endswith(b"\n"):
        return False
    said = line[:-_CHECKSUM]
    return not line.startswith(b"%s %08x" % (said, crc32(said, checksum)))


def _commit_lines(
    files: Iterable[tuple[int, Known]], batch: int, newest: Mapping[str, float], checksum: int
) -> Iterator[bytes]:
    for position, file in files:
        line = _line_of(position, file)
        checksum = crc32(line, checksum)
        yield line
    said = json.dumps({"batch": batch, "newest": dict(newest)}).encode()
    yield b"%s %08x\n" % (said, crc32(said, checksum))


def _commit(line: bytes, checksum: int, number: int) -> tuple[int, dict[str, float]]:
    said = line[:-_CHECKSUM]
    if line != b"%s %08x\n" % (said, crc32(said, checksum)):
        raise ValueError(f"what is up to line {number} has another checksum")
    commit = json.loads(said)
    return commit["batch"], commit["newest"]


def _line_of(position: int, file: Known) -> bytes:
    digests = (b2a_base64(each, newline=False).decode() for each in file[2:5])
    return json.dumps([position, file.path, file.length, *digests, file.seen]).encode() + b"\n"


def _file_of(line: bytes) -> tuple[int, Known]:
    position, path, length, marks, first, tail, seen = json.loads(line)
    digests = a2b_base64(marks), a2b_base64(first), a2b_base64(tail)
    return position, Known(path, length, *digests, tuple(seen))


def _old_file(said: dict[str, Any]) -> Known:
    marks = b"".join(_old_digest(each) for each in said["marks"])
    line = _old_digest(said["line"]) if said["line"] else b""
    seen = tuple(map(str, said["seen"]))
    return Known(
        str(said["path"]), int(said["length"]), marks, line, _old_digest(said["tail"]), seen
    )


def _old_digest(said: str) -> bytes:
    digest = bytes.fromhex(said)
    if len(digest) != DIGEST:
        raise ValueError(f"the digest {said!r}")
    return digest
