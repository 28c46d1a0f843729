"""Find log files whose text is also in another file: copies, compressed copies, and beginnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.ingest.texts import Text, is_compressed

_BEGINNING: Final = 64
"""In bytes. Files are compared if they begin with the same bytes, which mostly include a time."""

_AT_ONCE: Final = 1 << 20


class _File(NamedTuple):
    path: str
    size: int


def copies(paths: Sequence[str]) -> Mapping[str, str]:
    """Return each file that repeats another file, or its beginning, with that other file.

    A file that cannot be read is no copy. Among equal files, the original is an uncompressed one,
    and among these the first by name.
    """
    alike: dict[bytes, list[str]] = {}
    for path in paths:
        try:
            with Text(path) as text:
                begin = b"" if text.is_opaque else text.at(0, _BEGINNING)
        except (OSError, pa.ArrowException):
            continue
        if len(begin) == _BEGINNING:
            alike.setdefault(begin, []).append(path)
    found: dict[str, str] = {}
    for some in alike.values():
        if len(some) > 1:
            found |= _among(some)
    return found


def _among(paths: Sequence[str]) -> dict[str, str]:
    files = []
    for path in paths:
        try:
            with Text(path) as text:
                files.append(_File(path, text.size()))
        except (OSError, pa.ArrowException):
            continue
    files.sort(key=lambda each: (-each.size, is_compressed(each.path), each.path))
    kept: list[_File] = []
    found: dict[str, str] = {}
    for file in files:
        original = next((each for each in kept if _begins_with(each.path, file.path)), None)
        if original is None:
            kept.append(file)
        else:
            found[file.path] = original.path
    return found


def _begins_with(longer: str, shorter: str) -> bool:
    try:
        with Text(longer) as one, Text(shorter) as other:
            first, second = one.stream(0), other.stream(0)
            while data := second.read(_AT_ONCE):
                rest = data
                while rest:
                    there = first.read(len(rest))
                    if not there or there != rest[: len(there)]:
                        return False
                    rest = rest[len(there) :]
    except (OSError, pa.ArrowException):
        return False
    return True
