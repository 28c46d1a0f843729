"""The formats of files of ACLs: policies, JSON, CSV, and what ``kafka-acls.sh --list`` prints."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import groupby
from typing import Any, Final, NamedTuple

from aclbroker.broker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.policy import PolicyError, parse_policy, policy_text
from aclbroker.cli.acls.texts import entry_lines, pattern_line
from aclbroker.pipeline.acls.acl_files import parse_listing

Found = tuple[list[AclBinding], str | None]
"""The ACLs of a file, each once, and the id of their cluster, if the file tells it."""


class Format(NamedTuple):
    """How ACLs are read from the bytes of a file, which has a name, and written to one.

    ``read`` raises ValueError, or a `PolicyError` that names the file. ``text`` has ACLs in order.
    ``refusal`` tells why a file of the format cannot hold an ACL; None if it can.
    """

    read: Callable[[bytes, str], Found]
    text: Callable[[Sequence[AclBinding], str | None], Iterable[str]]
    refusal: Callable[[AclBinding], str | None] = lambda _: None


_ENUMS: Final[Mapping[str, Any]] = {
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission": AclPermission,
}
_FIELDS: Final = AclBinding._fields
_VERSION: Final = 1
_QUOTED: Final = re.compile(r'[,"\r\n\0]|\A\s|\s\Z')


def _acl(fields: Mapping[str, Any]) -> AclBinding:
    """Return the ACL of its fields, all of which are texts; raises ValueError."""
    if set(fields) != set(_FIELDS):
        raise ValueError(f"expected exactly {', '.join(_FIELDS)}, not {', '.join(fields)}")
    values: list[Any] = []
    for name in _FIELDS:
        value = fields[name]
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a text, not {json.dumps(value)}")
        kind = _ENUMS.get(name)
        values.append(value if kind is None else _member(name, kind, value))
    return AclBinding(*values)


def _member(name: str, kind: type[IntEnum], word: str) -> IntEnum:
    try:
        return kind[word.strip().upper()]
    except KeyError:
        known = ", ".join(each.name for each in kind if each > 1 and each.name != "MATCH")
        raise ValueError(f"{name} must be one of {known}; {word!r} is not") from None


def _words(acl: AclBinding) -> Iterator[str]:
    return (each.name if isinstance(each, IntEnum) else each for each in acl)


def _read_policy(content: bytes, source: str) -> Found:
    return parse_policy(content, source)


def _read_json(content: bytes, _: str) -> Found:
    try:
        found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_each_once)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(found, dict) or set(found) - {"cluster"} != {"version", "acls"}:
        raise ValueError('expected {"version": 1, "acls": [...]}')
    if found["version"] != _VERSION:
        raise ValueError(f"version must be {_VERSION}, not {json.dumps(found['version'])}")
    acls = found["acls"]
    if not isinstance(acls, list) or not all(isinstance(each, dict) for each in acls):
        raise ValueError("acls must be a list of objects")
    cluster = found.get("cluster")
    if not isinstance(cluster, str | None):
        raise ValueError("cluster must be a text")
    return _each(acls, "entry"), cluster


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {json.dumps(twice)} more than once")
    return found


def _each(rows: Iterable[Mapping[str, Any]], what: str) -> list[AclBinding]:
    acls: dict[AclBinding, None] = {}
    for number, row in enumerate(rows, start=1):
        try:
            acls[_acl(row)] = None
        except ValueError as error:
            raise ValueError(f"{what} {number}: {error}") from None
    return list(acls)


def _json_text(acls: Sequence[AclBinding], cluster: str | None) -> Iterator[str]:
    yield f'{{"version": {_VERSION},\n'
    if cluster is not None:
        yield f'"cluster": {json.dumps(cluster)},\n'
    yield '"acls": ['
    for number, acl in enumerate(acls):
        fields = dict(zip(_FIELDS, _words(acl), strict=True))
        yield f"{',' * bool(number)}\n{json.dumps(fields, ensure_ascii=False)}"
    yield "\n]}\n"


def _read_csv(content: bytes, _: str) -> Found:
    text = content.decode("utf-8-sig")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = next(rows, [])
        if sorted(head) != sorted(_FIELDS):
            raise ValueError(f"the first line must name the columns: {','.join(_FIELDS)}")
        lines = [row for row in rows if row]
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None
    for number, row in enumerate(lines, start=1):
        if len(row) != len(head):
            raise ValueError(f"row {number}: it has {len(row)} values for {len(head)} columns")
    return _each((dict(zip(head, row, strict=True)) for row in lines), "row"), None


def _csv_text(acls: Sequence[AclBinding], _: str | None) -> Iterator[str]:
    yield f"{','.join(_FIELDS)}\n"
    for acl in acls:
        yield f"{','.join(map(_cell, _words(acl)))}\n"


def _cell(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _read_listing(content: bytes, source: str) -> Found:
    return list(dict.fromkeys(parse_listing(content.decode(), source))), None


def _listing_text(acls: Sequence[AclBinding], _: str | None) -> Iterator[str]:
    for pattern, theirs in groupby(acls, key=lambda acl: acl[:3]):
        head = pattern_line("Current ACLs for resource `{}`:", *pattern)
        yield "\n".join((head, *entry_lines(acl[3:] for acl in theirs), "\n"))


def _not_in_listing(acl: AclBinding) -> str | None:
    try:
        if list(parse_listing("".join(_listing_text([acl], None)), "")) == [acl]:
            return None
    except PolicyError:
        pass
    return "what kafka-acls.sh lists would have more than one meaning"


_POLICY: Final = Format(_read_policy, policy_text)
FORMATS: Final[Mapping[str, Format]] = {
    ".yaml": _POLICY,
    ".yml": _POLICY,
    ".json": Format(_read_json, _json_text),
    ".csv": Format(_read_csv, _csv_text),
    ".txt": Format(_read_listing, _listing_text, _not_in_listing),
}
"""By the end of a file's name."""
