"""Checksums of rows: those of ACL changes for thousands at once, since a store may have millions.

A checksum is a CRC-32, which tells any single wrong bit and any run of wrong bits up to 32. It
guards against disks and accidents, not against people who may write to the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final
from zlib import crc32

_HEAD: Final = Struct("<qqLL").pack
_HEAD_OF_ORIGIN: Final = Struct("<qqqlL").pack


def of_changes(
    ids: Iterable[int],
    codes: Iterable[int],
    names: Sequence[str],
    principals: Sequence[str],
    hosts: Sequence[str],
) -> list[int]:
    """Return the checksums of rows of ACL changes, which are given by columns.

    ``codes`` has all numbers of a row in one, as `changes.CODES` makes it. The lengths are part of
    it, so that no letter can move from one text into the next. Raises TypeError, struct.error or
    UnicodeError for what cannot stand in a row.
    """
    heads = map(_HEAD, ids, codes, map(len, names), map(len, principals))
    texts = map(str.encode, map("".join, zip(names, principals, hosts, strict=True)))
    return list(map(crc32, texts, map(crc32, heads)))


def of_record(kind: str, name: str, value: str) -> int:
    """Return the checksum of a row of the table of records."""
    return crc32(f"{len(kind)} {len(name)} {kind}{name}{value}".encode())


def of_origins(
    positions: Sequence[int],
    firsts: Sequence[int],
    times: Sequence[int],
    principals: Sequence[str | None],
    hosts: Sequence[str],
    kinds: Sequence[str | None],
    names_changed: Sequence[str | None],
) -> list[int]:
    """Return the checksums of rows of the table of origins, which are given by columns.

    Raises TypeError, struct.error or UnicodeError for what cannot stand in a row.
    """
    heads = map(_HEAD_OF_ORIGIN, positions, firsts, times, map(_size, principals), map(len, hosts))
    names = (text or "" for text in principals)
    kinds_shown = ("" if kind is None else f" {kind}" for kind in kinds)
    changed = ("" if text is None else f" {text}" for text in names_changed)
    texts = map(str.encode, map("".join, zip(names, hosts, kinds_shown, changed, strict=True)))
    return list(map(crc32, texts, map(crc32, heads)))


def _size(text: str | None) -> int:
    return -1 if text is None else len(text)


def of_numbers(numbers: Iterable[int], text: str) -> int:
    """Return the checksum of numbers and one text."""
    return crc32(" ".join([*map(str, numbers), text]).encode())
