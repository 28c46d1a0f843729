"""Reads ACLs from tables: JSON and CSV of our own, CSV of kafka-security-manager, JSON of rpk."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import Policy
from aclbroker.acl.files.words import FIELDS, acl_of

VERSION: Final = 1
"""The version of our own JSON."""

_KSM: Final = {
    "KafkaPrincipal": "principal",
    "ResourceType": "resource_type",
    "PatternType": "pattern_type",
    "ResourceName": "resource_name",
    "Operation": "operation",
    "PermissionType": "permission",
    "Host": "host",
}
"""The columns of kafka-security-manager. Its files of Kafka before 2.0 have no PatternType."""

_RPK: Final = {
    "principal": "principal",
    "host": "host",
    "resource_type": "resource_type",
    "resource_name": "resource_name",
    "resource_pattern_type": "pattern_type",
    "operation": "operation",
    "permission": "permission",
}
_ROLE: Final = "RedpandaRole:"


def loaded(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError, also for a duplicate key."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("no JSON: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {json.dumps(twice)} more than once")
    return found


def read_json(text: str, _: str) -> Policy:
    """Return the ACLs of our own JSON. Raises ValueError."""
    found = loaded(text)
    if not isinstance(found, dict) or set(found) - {"cluster"} != {"version", "acls"}:
        raise ValueError('expected {"version": 1, "acls": [...]}')
    if found["version"] != VERSION:
        raise ValueError(f"version must be {VERSION}, not {json.dumps(found['version'])}")
    acls = found["acls"]
    if not isinstance(acls, list) or not all(isinstance(each, dict) for each in acls):
        raise ValueError("acls must be a list of objects")
    cluster = found.get("cluster")
    if not isinstance(cluster, str | None):
        raise ValueError("cluster must be a text")
    return Policy(_each(enumerate(acls, start=1), "entry", _own), cluster)


def read_csv(text: str, _: str) -> Policy:
    """Return the ACLs of our own CSV. Raises ValueError."""
    head, rows = _rows(text)
    if sorted(head) != sorted(FIELDS):
        raise ValueError(f"the first line must name the columns: {','.join(FIELDS)}")
    return Policy(_each(rows, "line", _own))


def read_ksm(text: str, _: str) -> Policy:
    """Return the ACLs of a CSV of kafka-security-manager. Raises ValueError."""
    head, rows = _rows(text)
    head = [name.strip() for name in head]
    columns = list(_KSM)
    if sorted(head) not in (sorted(columns), sorted({*columns} - {"PatternType"})):
        raise ValueError(f"the first line must name the columns: {','.join(columns)}")

    def acl(row: Mapping[str, Any]) -> AclBinding:
        named = {_KSM[name.strip()]: value for name, value in row.items()}
        return acl_of({"pattern_type": "LITERAL"} | named)

    return Policy(_each(rows, "line", acl))


def read_rpk(text: str, _: str) -> Policy:
    """Return the ACLs that ``rpk security acl list --format json`` printed. Raises ValueError."""
    found = loaded(text)
    acls = found["matches"]
    if not isinstance(acls, list) or not all(isinstance(each, dict) for each in acls):
        raise ValueError("matches must be a list of objects")
    return Policy(_each(enumerate(acls, start=1), "match", _of_rpk))


def _of_rpk(row: Mapping[str, Any]) -> AclBinding:
    if row.get("error"):
        raise ValueError(f"rpk reports an error: {row['error']}")
    found = {}
    for key, name in _RPK.items():
        if not isinstance(row.get(key), str):
            raise ValueError(f"{key} must be a text")
        found[name] = row[key]
    if found["principal"].startswith(_ROLE):
        raise ValueError(f"{found['principal']!r} is a role of Redpanda, which Kafka does not have")
    return acl_of(found)


def _own(fields: Mapping[str, Any]) -> AclBinding:
    if set(fields) != set(FIELDS):
        raise ValueError(f"expected exactly {', '.join(FIELDS)}, not {', '.join(fields)}")
    for name in FIELDS:
        if not isinstance(fields[name], str):
            raise ValueError(f"{name} must be a text, not {json.dumps(fields[name])}")
    return acl_of(fields)


def _each(
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    what: str,
    acl: Callable[[Mapping[str, Any]], AclBinding],
) -> list[AclBinding]:
    acls: dict[AclBinding, None] = {}
    for number, row in rows:
        try:
            acls[acl(row)] = None
        except ValueError as error:
            raise ValueError(f"{what} {number}: {error}") from None
    return list(acls)


def _rows(text: str) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the column names of a CSV, and each row with the number of its last line."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = next(rows, [])
        lines = [(rows.line_num, row) for row in rows if any(row)]
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None
    for number, row in lines:
        if len(row) != len(head):
            raise ValueError(f"line {number}: it has {len(row)} values for {len(head)} columns")
        for value in row:
            _check_blanks(text, number, value)
    return head, ((number, dict(zip(head, row, strict=True))) for number, row in lines)


def _check_blanks(text: str, number: int, value: str) -> None:
    """Raise ValueError for a value with blanks around it that the text nowhere has in quotes."""
    doubled = value.replace('"', '""')
    if value != value.strip() and f'"{doubled}"' not in text and not value.strip().isalpha():
        raise ValueError(
            f"line {number}: {value!r} has a blank at its end or beginning; remove it, or quote "
            "the value if the blank belongs to the name"
        )
