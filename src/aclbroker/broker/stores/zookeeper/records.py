"""Where records are kept in ZooKeeper: SCRAM credentials, delegation tokens, ids of topics.

Kafka knows nothing of these nodes, which are beside its own, below /aclbroker. Names become names
of nodes with all that ZooKeeper does not take as %XX.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final
from urllib.parse import quote, unquote

from aclbroker.broker.stores.zookeeper.layout import UnreadableNode

ROOT: Final = "/aclbroker"
RECORDS: Final = f"{ROOT}/records"
RECORD_CHANGES: Final = f"{ROOT}/record-changes"
RECORD_CHANGE_PREFIX: Final = "change_"
_EMPTY: Final = "%"
_VERSION: Final = 1


def directories() -> list[str]:
    """Return the paths of all directories, parents first."""
    return [ROOT, RECORDS, RECORD_CHANGES]


def kind_path(kind: str) -> str:
    """Return the path of the directory of a kind of records."""
    return f"{RECORDS}/{_quoted(kind)}"


def record_path(kind: str, name: str) -> str:
    """Return the path of the node that has the value of a record."""
    return f"{kind_path(kind)}/{_quoted(name)}"


def name_of(node: str) -> str:
    """Return what a node below `RECORDS` is named after: a kind, or a record."""
    return "" if node == _EMPTY else unquote(node)


def encode_record_change(kind: str, names: Collection[str]) -> bytes:
    """Return the data of a node that tells which records of a kind have changed."""
    return json.dumps({"version": _VERSION, "kind": kind, "names": [*names]}).encode()


def decode_record_change(data: bytes | None) -> tuple[str, list[str]]:
    """Return a kind and the names of records that have changed. Raises `UnreadableNode`."""
    try:
        value = json.loads(data or b"")
        kind, names = value["kind"], value["names"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableNode("it names no records") from None
    if not isinstance(kind, str) or not isinstance(names, list):
        raise UnreadableNode("it names no records")
    if not all(isinstance(name, str) for name in names):
        raise UnreadableNode("it names no records")
    return kind, names


def _quoted(name: str) -> str:
    if not name:
        return _EMPTY
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted
