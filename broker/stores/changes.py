"""The rows of the table of changes: ACLs are appended to it, read from it, and deleted if dead."""

from __future__ import annotations

import operator
import sqlite3
import struct
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, compress, islice, product, repeat
from typing import Any, Final, NamedTuple

from aclbroker.broker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.stores import checksums
from aclbroker.broker.stores.schema import FIELDS, InvalidRow, dead_rows
from aclbroker.broker.stores.seal import Seal

_CHUNK: Final = 4096
"""How many ACLs are read at a time."""

_ROWS: Final = 1000
"""How many rows one statement appends at most.

The sqlite3 module gives Python's lock up for a statement, and then has to get it back from a busy
event loop, which can take five milliseconds. So there must not be a statement for each row.
"""

_NAMED: Final = 10
"""How many damaged rows an error names."""

_VALUES: Final = len(FIELDS.split(",")) + 2

CODES: Final = (
    "(resource_type << 24) | (pattern_type << 16) | (operation << 8) | permission | (removed << 32)"
)
"""All numbers of a row in one. Checksums are made of it and ACLs are read from it alone."""

_REMOVED: Final = 1 << 32
_ANY_ID: Final = 2**63

_MEMBERS: Final = {
    members[0] << 24 | members[1] << 16 | members[2] << 8 | members[3]: members
    for members in product(ResourceType, PatternType, AclOperation, AclPermission)
    if members[0] > ResourceType.ANY
    and members[1] > PatternType.MATCH
    and members[2] > AclOperation.ANY
    and members[3] > AclPermission.ANY
}
_CODES: Final = {tuple(map(int, members)): codes for codes, members in _MEMBERS.items()}


class Change(NamedTuple):
    """A row as it stands in the file; ``binding`` is None if the row is not what was written."""

    id: int
    binding: AclBinding | None
    removed: bool
    checksum: int
    shown: str
    """Of a row that is not what was written: its numbers and texts as they are there."""


def append(
    connection: sqlite3.Connection,
    sealed: Seal,
    bindings: Collection[AclBinding],
    *,
    removed: bool,
) -> Seal:
    """Add rows that say that ACLs were added, or removed; return the seal after that."""
    limit = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    size = min(_ROWS, limit // _VALUES)
    rest = iter(bindings)
    while some := list(islice(rest, size)):
        ids = range(sealed.last_change + 1, sealed.last_change + 1 + len(some))
        columns = list(zip(*some, strict=True))
        sums = _insert(connection, ids, columns, [removed] * len(some))
        sealed = sealed.with_changes(sums)
    return sealed


def copy(connection: sqlite3.Connection, some: Sequence[Change]) -> list[int]:
    """Add at most 1,000 valid rows under the ids that they have; return their checksums."""
    ids, bindings, removed, *_ = zip(*some, strict=True)
    return _insert(connection, ids, list(zip(*bindings, strict=True)), removed)


def _insert(
    connection: sqlite3.Connection,
    ids: Sequence[int],
    columns: Sequence[Sequence[Any]],
    removed: Sequence[bool],
) -> list[int]:
    types, names, patterns, principals, hosts, operations, permissions = columns
    # The numbers are plain ones: for each that is a member of an enum the sqlite3 module would look
    # for an adapter, which takes longer than all else that it does. Through bytes no Python runs.
    types, patterns = bytes(types), bytes(patterns)
    operations, permissions = bytes(operations), bytes(permissions)
    numbers = zip(types, patterns, operations, permissions, strict=True)
    codes = list(map(_CODES.__getitem__, numbers))
    if any(removed):
        codes = [code | gone << 32 for code, gone in zip(codes, removed, strict=True)]
    sums = checksums.of_changes(ids, codes, names, principals, hosts)
    rows = zip(
        ids,
        bytes(removed),
        types,
        names,
        patterns,
        principals,
        hosts,
        operations,
        permissions,
        sums,
        strict=True,
    )
    marks = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(sums))
    connection.execute(
        f"INSERT INTO acl_change (id, removed, {FIELDS}, checksum) VALUES {marks}",  # noqa: S608
        list(chain.from_iterable(rows)),
    )
    return sums


class Removals(NamedTuple):
    """What rows of removals say."""

    rows: int
    """How many such rows there are."""

    last: dict[tuple[Any, ...], int]
    """Up to which id the rows of an ACL are dead, by its numbers in one and its texts.

    Those that say that it was removed are among them, and are dead up to any id.
    """


def removals(connection: sqlite3.Connection) -> Removals:
    """Return which ACLs were removed, and not forgotten since. Raises `InvalidRow`."""
    query = f"SELECT id, {CODES}, resource_name, principal, host FROM acl_change WHERE removed"  # noqa: S608
    count, last = 0, dict[tuple[Any, ...], int]()
    with closing(connection.execute(f"{query} ORDER BY id")) as rows:
        while chunk := _fetched(connection, rows):
            for number, codes, *texts in chunk:
                if not isinstance(codes, int):
                    continue  # a damaged row, which `load` names
                last[(codes, *texts)] = _ANY_ID
                last[(codes ^ _REMOVED, *texts)] = number
            count += len(chunk)
    return Removals(count, last)


def load(
    connection: sqlite3.Connection, sealed: Seal, gone: Mapping[tuple[Any, ...], int]
) -> Generator[list[AclBinding]]:
    """Return all ACLs that there are, in lists; ``gone`` is what `removals` found last.

    Raises `InvalidRow` if a row is not what was written, or, in the end, if rows are missing.
    """
    count = total = 0
    query = f"SELECT id, {CODES}, resource_name, principal, host, checksum FROM acl_change"  # noqa: S608
    with closing(connection.execute(f"{query} ORDER BY id")) as rows:
        while chunk := _fetched(connection, rows):
            ids, *columns, sums = zip(*chunk, strict=True)
            if not _have_checksums(ids, columns, sums):
                raise InvalidRow(_damage(connection))
            count, total = count + len(chunk), total + sum(sums)
            if gone:
                dead_up_to = map(gone.get, zip(*columns, strict=True), repeat(0))
                is_alive = list(map(operator.lt, dead_up_to, ids))
                ids, *columns = (tuple(compress(column, is_alive)) for column in (ids, *columns))
            if ids:
                yield _bindings(ids, *columns)
    check_totals(sealed, count, total)


def check_totals(sealed: Seal, count: int, total: int) -> None:
    """Raise `InvalidRow` if there are not as many rows, with the same sum, as the seal has."""
    if count != sealed.changes:
        raise InvalidRow(
            f"{count} rows of the table acl_change where the table seal has {sealed.changes}"
        )
    if total != sealed.changes_sum:
        raise InvalidRow("other rows of the table acl_change than those of the table seal")


def _fetched(connection: sqlite3.Connection, rows: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    try:
        return rows.fetchmany(_CHUNK)
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        # Not from SQLite: a text is not UTF-8. The error would show it, and not say where it is.
        raise InvalidRow(_damage(connection)) from None


def _have_checksums(
    ids: Sequence[int], columns: Sequence[Sequence[Any]], sums: Sequence[int]
) -> bool:
    try:
        return checksums.of_changes(ids, *columns) == list(sums)
    except (TypeError, struct.error):
        return False


def _bindings(
    ids: Sequence[int],
    codes: Sequence[int],
    names: Sequence[str],
    principals: Sequence[str],
    hosts: Sequence[str],
) -> list[AclBinding]:
    try:
        members = map(_MEMBERS.__getitem__, codes)
        types, patterns, operations, permissions = zip(*members, strict=True)
        if not all(names):
            raise InvalidRow(f"row {ids[names.index('')]} of the table acl_change, which is no ACL")
    except KeyError:
        wrong = next(pair[0] for pair in zip(ids, codes, strict=True) if pair[1] not in _MEMBERS)
        raise InvalidRow(f"row {wrong} of the table acl_change, which is no ACL") from None
    fields = zip(types, names, patterns, principals, hosts, operations, permissions, strict=True)
    # As AclBinding._make, without a frame of Python for each.
    return list(map(tuple.__new__, repeat(AclBinding), fields))


def survey(
    connection: sqlite3.Connection, first: int = 1, last: int = 2**63 - 1
) -> Iterator[Change]:
    """Return all rows whose ids are in a range, also those that are damaged, one by one."""
    rows = connection.execute(
        f"SELECT id, {CODES}, CAST(resource_name AS BLOB), CAST(principal AS BLOB), "  # noqa: S608
        "CAST(host AS BLOB), checksum, typeof(resource_name) || typeof(principal) || typeof(host), "
        "removed || ' ' || resource_type || ' ' || pattern_type || ' ' || operation || ' ' || "
        "permission FROM acl_change WHERE id BETWEEN ? AND ? ORDER BY id",
        (first, last),
    )
    with closing(rows):
        for number, codes, *texts, checksum, types, numbers in rows:
            is_read = types == "texttexttext" and isinstance(codes, int)
            binding = _verified(number, codes, texts, checksum) if is_read else None
            if binding is not None:
                yield Change(number, binding, bool(codes & _REMOVED), checksum, "")
            else:
                shown = [(text or b"").decode(errors="replace") for text in texts]
                yield Change(number, None, False, 0, f"{numbers} {shown!r}")


def unchecked(number: int, removed: int, *fields: Any) -> Change:
    """Return the change that a row without a checksum says. Raises `InvalidRow`."""
    types, name, pattern, principal, host, operation, permission = fields
    codes = _CODES.get((types, pattern, operation, permission))
    is_text = type(name) is type(principal) is type(host) is str
    if codes is None or not is_text or not name or removed not in (0, 1):
        raise InvalidRow(f"{(removed, *fields)!r}, which is no ACL (id {number})")
    resource_type, pattern_type, acl_operation, acl_permission = _MEMBERS[codes]
    binding = AclBinding(
        resource_type, name, pattern_type, principal, host, acl_operation, acl_permission
    )
    return Change(number, binding, bool(removed), 0, "")


def _verified(number: int, codes: int, texts: Sequence[bytes], checksum: int) -> AclBinding | None:
    members = _MEMBERS.get(codes & ~_REMOVED)
    try:
        name, principal, host = (text.decode() for text in texts)
        sums = checksums.of_changes([number], [codes], [name], [principal], [host])
    except (UnicodeDecodeError, struct.error):
        return None
    if members is None or not name or sums != [checksum]:
        return None
    resource_type, pattern_type, operation, permission = members
    return AclBinding(resource_type, name, pattern_type, principal, host, operation, permission)


def _damage(connection: sqlite3.Connection) -> str:
    """Return which rows do not have their checksums."""
    wrong = [row.id for row in survey(connection) if row.binding is None]
    named = ", ".join(map(str, wrong[:_NAMED]))
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return f"rows without their checksums in the table acl_change: those with the ids {named}{more}"


def compact(connection: sqlite3.Connection, sealed: Seal, count: int) -> Seal:
    """Delete the oldest ``count`` rows of removals, and all rows of what they removed.

    Returns the seal after that.
    """
    oldest = "SELECT id FROM acl_change WHERE removed ORDER BY id LIMIT ?"
    [last] = connection.execute(f"SELECT max(id) FROM ({oldest})", (count,)).fetchone()  # noqa: S608
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS dead (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM dead")
    connection.execute(f"INSERT INTO dead {dead_rows('removed AND id <= ?')}", (last,))
    [[gone, total]] = connection.execute(
        "SELECT count(*), coalesce(sum(checksum), 0) FROM acl_change "
        "WHERE id IN (SELECT id FROM dead)"
    )
    connection.execute("DELETE FROM acl_change WHERE id IN (SELECT id FROM dead)")
    connection.execute("DELETE FROM dead")
    return sealed.without_changes(gone, total)
