"""The rows of the table of changes: ACLs are appended to it, read from it, and deleted if dead."""

from __future__ import annotations

import gc
import json
import operator
import sqlite3
import struct
from bisect import bisect_right
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, compress, islice, product, repeat
from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.stores import checksums
from aclbroker.broker.stores.schema import FIELDS, InvalidRow, fetched
from aclbroker.broker.stores.seal import Seal

_CHUNK: Final = 8192
"""How many rows are read at a time; each of their texts may have 32,767 bytes.

With half as many, the thread that reads and the loop wait longer for each other than they work.
"""

_ROWS: Final = 1000
"""How many rows one statement appends at most.

The sqlite3 module gives Python's lock up for a statement, and then has to get it back from a busy
event loop, which can take five milliseconds. So there must not be a statement for each row.
"""

_STAYING: Final = 10_000
"""After how many ACLs of one change the garbage collector is told to ignore the objects that exist.

It would look through all of them, again and again, with Python's lock: see `IndexChanges`.
"""

_NAMED: Final = 10
"""How many damaged rows an error names."""

_VALUES: Final = len(FIELDS.split(",")) + 2

CODES: Final = (
    "(resource_type << 24) | (pattern_type << 16) | (operation << 8) | permission | (removed << 32)"
)
"""All numbers of a row in one. Checksums are made of it and ACLs are read from it alone."""

_AS_COLUMNS: Final = (
    "SELECT json_group_array(id), json_group_array(codes), json_group_array(resource_name), "  # noqa: S608
    "json_group_array(principal), json_group_array(host), json_group_array(checksum) "
    f"FROM (SELECT *, {CODES} AS codes FROM acl_change WHERE id >= ? ORDER BY id LIMIT ?)"
)

_REMOVED: Final = 1 << 32
_FIRST_ID: Final = -(2**63)
_ANY_ID: Final = 2**63 - 1

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


def removals(connection: sqlite3.Connection, last: int = _ANY_ID) -> dict[tuple[Any, ...], int]:
    """Return which ACLs were removed up to a position, and not forgotten since.

    By the numbers of an ACL in one and its texts it says up to which id its rows are dead. Those
    that say that it was removed are among them, and are dead up to any id. Raises `InvalidRow`.
    """
    query = (
        f"SELECT id, {CODES}, resource_name, principal, host FROM acl_change "  # noqa: S608
        "WHERE removed AND id <= ? ORDER BY id"
    )
    dead = dict[tuple[Any, ...], int]()
    with closing(connection.execute(query, (last,))) as rows:
        while chunk := fetched(rows, _CHUNK, lambda: _damage(_wrong_rows(connection))):
            for number, codes, *texts in chunk:
                if not isinstance(codes, int):
                    continue  # a damaged row, which `load` names
                dead[(codes, *texts)] = _ANY_ID
                dead[(codes ^ _REMOVED, *texts)] = number
    return dead


def load(
    connection: sqlite3.Connection,
    sealed: Seal,
    gone: Mapping[tuple[Any, ...], int],
    last: int = _ANY_ID,
) -> Generator[list[AclBinding]]:
    """Return all ACLs that there are, in lists; ``gone`` is what `removals` found last.

    With ``last`` it is those that there were at that position, for which ``gone`` was found, too.
    All rows are checked in any case. Raises `InvalidRow` if a row is not what was written, or, in
    the end, if rows are missing.
    """
    count = total = 0
    for ids, *columns, sums in _columns(connection):
        if not _have_checksums(ids, columns, sums):
            raise InvalidRow(_damage(_wrong_rows(connection)))
        count, total = count + len(ids), total + sum(sums)
        if ids[-1] > last:
            count_of_then = bisect_right(ids, last)
            ids, *columns = (column[:count_of_then] for column in (ids, *columns))
        if gone:
            dead_up_to = map(gone.get, zip(*columns, strict=True), repeat(0))
            is_alive = list(map(operator.lt, dead_up_to, ids))
            ids, *columns = (list(compress(column, is_alive)) for column in (ids, *columns))
        if ids:
            yield _bindings(ids, *columns)
    check_totals(sealed, count, total)


def _columns(connection: sqlite3.Connection) -> Iterator[list[list[Any]]]:
    """Yield the columns of some rows, in the order of their ids, then those of the next ones.

    As texts in JSON they are made by SQLite without Python's lock, so that another thread works
    meanwhile, and are read in half of the time that as many rows take.
    """
    first, is_more = _FIRST_ID, True
    while is_more:
        try:
            row = connection.execute(_AS_COLUMNS, (first, _CHUNK)).fetchone()
        except sqlite3.OperationalError as error:
            # What JSON cannot hold is no ACL either: other bytes than UTF-8, which the error would
            # show, and others than texts and numbers.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code != sqlite3.SQLITE_ERROR or not (wrong := _wrong_rows(connection)):
                raise
            raise InvalidRow(_damage(wrong)) from None
        columns = list(map(json.loads, row))
        ids = columns[0]
        if ids:
            yield columns
        is_more = len(ids) == _CHUNK and ids[-1] < _ANY_ID
        first = ids[-1] + 1 if is_more else first


def between(
    connection: sqlite3.Connection, first: int, last: int
) -> tuple[list[AclBinding], list[AclBinding]]:
    """Return the ACLs that rows of a range of ids have added, and those that they have removed.

    Raises `InvalidRow` if a row is not what was written, or missing.
    """
    query = (
        f"SELECT id, {CODES}, resource_name, principal, host, checksum FROM acl_change "  # noqa: S608
        "WHERE id BETWEEN ? AND ? ORDER BY id"
    )
    found: tuple[list[AclBinding], list[AclBinding]] = ([], [])
    count = 0
    with closing(connection.execute(query, (first, last))) as rows:
        while chunk := fetched(rows, _CHUNK, lambda: _damage(_wrong_rows(connection))):
            ids, codes, *texts, sums = zip(*chunk, strict=True)
            if not _have_checksums(ids, (codes, *texts), sums):
                raise InvalidRow(_damage(_wrong_rows(connection)))
            count += len(ids)
            if count >= _STAYING:
                gc.freeze()
            bindings = _bindings(ids, [code & ~_REMOVED for code in codes], *texts)
            is_removed = [code >= _REMOVED for code in codes]
            found[1].extend(compress(bindings, is_removed))
            found[0].extend(compress(bindings, map(operator.not_, is_removed)))
    if count != last - first + 1:
        raise InvalidRow(f"{count} rows with ids from {first} to {last} in the table acl_change")
    return found


def check_totals(sealed: Seal, count: int, total: int) -> None:
    """Raise `InvalidRow` if there are not as many rows, with the same sum, as the seal has."""
    if count != sealed.changes:
        raise InvalidRow(
            f"{count} rows of the table acl_change where the table seal has {sealed.changes}"
        )
    if total != sealed.changes_sum:
        raise InvalidRow("other rows of the table acl_change than those of the table seal")


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


def _wrong_rows(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the rows that do not have their checksums."""
    return [row.id for row in survey(connection, _FIRST_ID) if row.binding is None]


def _damage(wrong: Sequence[int]) -> str:
    named = ", ".join(map(str, wrong[:_NAMED]))
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return f"rows without their checksums in the table acl_change: those with the ids {named}{more}"
