"""A file with all that the topic said up to an offset, so that a start need not read all of it.

It is a SQLite file that is written whole beside the old one and takes its place. A digest is over
all that it has. What is damaged, or of another topic, is not used.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.files import sync
from aclbroker.broker.stores.kafka.messages import binding_of, fields_of

_FORMAT: Final = 2
_AT_ONCE: Final = 256
"""So few rows are made, or read, in a call that keeps other threads waiting for a millisecond."""

_SCHEMA: Final = """
CREATE TABLE about (line TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE acl (
    resource_type TEXT NOT NULL, name TEXT NOT NULL, pattern_type TEXT NOT NULL,
    principal TEXT NOT NULL, host TEXT NOT NULL, operation TEXT NOT NULL, permission TEXT NOT NULL
);
CREATE TABLE record (kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
"""
_PUT_ACL: Final = "INSERT INTO acl VALUES (?, ?, ?, ?, ?, ?, ?)"
_PUT_RECORD: Final = "INSERT INTO record VALUES (?, ?, ?)"


class About(NamedTuple):
    """Of which topic a snapshot is, and of which moment."""

    cluster: str
    """The id of the Kafka cluster."""

    topic_id: str
    """That Kafka gave the topic when it was made."""

    offset: int
    """Up to where the topic was read."""

    position: int
    """Behind the last message that said something."""

    time_ms: int
    """The moment of the contents, in milliseconds since the epoch."""

    boot: str
    """The id of the boot in which it was written; "" if unknown."""

    boot_s: float
    """The moment of the contents, in seconds since that boot."""

    has_format: bool
    acls: int
    records: int


class Snapshot(NamedTuple):
    """What a file has."""

    about: About
    bindings: dict[AclBinding, None]
    records: dict[tuple[str, str], str]


class DamagedSnapshot(Exception):
    """A file is no snapshot as this program writes it; the text says why."""


def read_snapshot(path: Path) -> Snapshot | None:
    """Return what a file has, None if there is no file.

    It may take seconds, and is to be called in a thread. Raises `DamagedSnapshot`, and `OSError`.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return _read(database)
    except sqlite3.Error as error:
        raise DamagedSnapshot(str(error)) from error


def _read(database: sqlite3.Connection) -> Snapshot:
    [(line, digest)] = _exactly_one(database.execute("SELECT line, digest FROM about"))
    about = _about(line)
    found = sha256(line.encode())
    bindings: dict[AclBinding, None] = {}
    records: dict[tuple[str, str], str] = {}
    for rows in _pieces(database.execute("SELECT * FROM acl ORDER BY rowid")):
        found.update(_text(rows))
        bindings.update(dict.fromkeys(map(_binding, rows)))
    for rows in _pieces(database.execute("SELECT * FROM record ORDER BY rowid")):
        found.update(_text(rows))
        records.update(((kind, name), value) for kind, name, value in rows)
    if found.hexdigest() != digest or (len(bindings), len(records)) != about[-2:]:
        raise DamagedSnapshot("what it has is not what was written")
    return Snapshot(about, bindings, records)


def _exactly_one(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    found = list(islice(rows, 2))
    if len(found) != 1:
        raise DamagedSnapshot("it does not say of what it is")
    return found


def _about(line: str) -> About:
    try:
        version, *fields = json.loads(line)
        if version != _FORMAT:
            raise DamagedSnapshot(f"it has version {version!r}, and this program knows {_FORMAT}")
        return About(*fields)
    except (ValueError, TypeError) as error:
        raise DamagedSnapshot(f"it does not say of what it is: {error}") from error


def _binding(row: Sequence[str]) -> AclBinding:
    try:
        return binding_of(row)
    except KeyError as error:
        raise DamagedSnapshot(f"it has the word {error}, which is not known") from error


def remove_unfinished(path: Path) -> None:
    """Remove what a broker has left that was killed while it wrote a snapshot: it has secrets.

    Raises `OSError`.
    """
    for each in path.parent.glob(f".{path.name}.*"):
        each.unlink(missing_ok=True)


def write_snapshot(
    path: Path,
    about: About,
    bindings: list[AclBinding],
    records: Sequence[tuple[tuple[str, str], str]],
) -> None:
    """Write a file in place of the one that is there; it is whole, or there is the old one.

    It has secrets, and nobody but its owner may read it. The list of bindings is used up. It may
    take seconds, and is to be called in a thread. Raises `OSError`.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            made.unlink()
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(made, isolation_level=None)) as database:
            _write(database, about, bindings, records)
        sync(made)
        made.replace(path)
        sync(path.parent)
    except sqlite3.Error as error:
        raise OSError(None, str(error)) from error
    finally:
        made.unlink(missing_ok=True)


def _write(
    database: sqlite3.Connection,
    about: About,
    bindings: list[AclBinding],
    records: Sequence[tuple[tuple[str, str], str]],
) -> None:
    # Until it is whole it has no name that anybody would read, so nothing of it need be kept.
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(_SCHEMA)
    database.execute("BEGIN")
    line = json.dumps([_FORMAT, *about])
    digest = sha256(line.encode())
    for rows in _pieces(map(fields_of, _used_up(bindings))):
        digest.update(_text(rows))
        database.executemany(_PUT_ACL, rows)
    for rows in _pieces((kind, name, value) for (kind, name), value in records):
        digest.update(_text(rows))
        database.executemany(_PUT_RECORD, rows)
    database.execute("INSERT INTO about VALUES (?, ?)", (line, digest.hexdigest()))
    database.execute("COMMIT")


def _used_up(bindings: list[AclBinding]) -> Iterator[AclBinding]:
    """Yield all, and free each: nobody else may have it any more, and all at once takes long."""
    while bindings:
        yield bindings.pop()


def _pieces(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    rest = iter(rows)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _text(rows: Iterable[Sequence[str]]) -> bytes:
    # Each text with its end, so that no two lists of rows have the same; there is no such byte
    # in UTF-8.
    return b"".join(f"{text}".encode() + b"\xff" for text in chain.from_iterable(rows))
