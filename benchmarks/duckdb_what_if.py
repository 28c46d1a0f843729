"""The job what-if in DuckDB: a join in SQL, as somebody would write it without the pipeline.

Each name is made into the patterns that may match it, and these are looked up among the ACLs. A
session has one principal. Lines are read without any of the pipeline's checks, or first counted as
its usage, with those of its checks that SQL can make: keys that a line has twice go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.record import MOST_REFERENCES, PRINCIPAL_FORM

_COLUMNS: Final = {
    **dict.fromkeys(("principal", "host", "operation", "resource_type"), "VARCHAR"),
    "resource_name": "VARCHAR",
}

_ALL: Final = {
    "timestamp": "TIMESTAMP",
    **dict.fromkeys(("level", "event", "cluster_id", "listener"), "VARCHAR"),
    **_COLUMNS,
    **dict.fromkeys(("pattern_type", "api_name", "rule", "client_id"), "VARCHAR"),
    **dict.fromkeys(("node_id", "resource_ref_count", "api_version", "correlation_id"), "BIGINT"),
    "allowed": "BOOLEAN",
    "acl": "STRUCT(resource_type VARCHAR, resource_name VARCHAR, pattern_type VARCHAR, "
    "principal VARCHAR, host VARCHAR, operation VARCHAR, permission_type VARCHAR)",
}


def _among(what: str, names: Iterable[str]) -> str:
    return f"{what} IN ({', '.join(repr(name) for name in sorted(names))})"


def _members(what: str, of: type[IntEnum]) -> str:
    return _among(what, (member.name for member in of))


_CHECKS: Final = (
    *("timestamp IS NOT NULL", _among("level", json_line.LEVELS), "event = 'authorization'"),
    *("length(cluster_id) > 0", "node_id IS NOT NULL", "length(listener) > 0", "length(host) > 0"),
    f"regexp_matches(principal, '^{PRINCIPAL_FORM}')",
    _among("operation", json_line.OPERATIONS),
    _among("resource_type", json_line.RESOURCE_TYPES),
    *("pattern_type = 'LITERAL'", f"resource_ref_count BETWEEN 0 AND {MOST_REFERENCES}"),
    *("length(api_name) > 0", "api_version IS NOT NULL", "correlation_id IS NOT NULL"),
    _among("rule", json_line.RULES),
    f"(allowed OR NOT {_among('rule', json_line.ALLOWING)})",
    "(NOT allowed OR rule <> 'DefaultDeny')",
    f"(acl IS NULL OR {_members('acl.resource_type', ResourceType)}"
    f" AND {_members('acl.pattern_type', PatternType)}"
    f" AND {_members('acl.operation', AclOperation)}"
    f" AND {_members('acl.permission_type', AclPermission)})",
)

_USAGE: Final = """
CREATE OR REPLACE TABLE usage AS
SELECT cluster_id, timestamp::DATE AS day, listener, principal, host, operation, resource_type,
  resource_name, api_name, allowed, rule, level = 'trace' AS quiet, count(*) AS events,
  sum(resource_ref_count) AS reference_count, min(timestamp) AS first_seen,
  max(timestamp) AS last_seen
FROM {log} WHERE {checks} GROUP BY ALL
"""

_QUESTIONS: Final = """
CREATE OR REPLACE TABLE questions AS
SELECT row_number() OVER () AS id, * FROM (
  SELECT principal, host, operation, resource_type, resource_name, {events} AS events
  FROM {log} WHERE resource_name IS NOT NULL GROUP BY ALL
)
"""

_PATTERNS: Final = """
CREATE OR REPLACE TABLE patterns AS
SELECT id, resource_type, principal, host, operation, 'LITERAL' AS kind, resource_name AS name
FROM questions
UNION ALL SELECT id, resource_type, principal, host, operation, 'LITERAL', '*' FROM questions
UNION ALL SELECT id, resource_type, principal, host, operation, 'PREFIXED', left(resource_name, n)
FROM questions, (
  SELECT DISTINCT length(name) AS n FROM current WHERE kind = 'PREFIXED'
  UNION SELECT DISTINCT length(name) FROM proposed WHERE kind = 'PREFIXED'
) WHERE n <= length(resource_name)
"""

_DECIDED: Final = """
CREATE OR REPLACE TABLE {acls}_decided AS
WITH matches AS (
  SELECT id, deny, p.operation AS asked, a.operation AS named, p.host AS peer, a.host AS host
  FROM patterns p JOIN {acls} a
    ON a.principal = p.principal AND a.resource_type = p.resource_type
    AND a.kind = p.kind AND a.name = p.name
  UNION ALL
  SELECT id, deny, p.operation, a.operation, p.host, a.host
  FROM patterns p JOIN {acls} a
    ON a.principal = 'User:*' AND a.resource_type = p.resource_type
    AND a.kind = p.kind AND a.name = p.name
)
SELECT id,
  bool_or(deny AND named IN (asked, 'ALL')) AS denied,
  bool_or(NOT deny AND (
    named IN (asked, 'ALL')
    OR (asked = 'DESCRIBE' AND named IN ('READ', 'WRITE', 'DELETE', 'ALTER'))
    OR (asked = 'DESCRIBE_CONFIGS' AND named = 'ALTER_CONFIGS')
  )) AS granted
FROM matches WHERE host IN (peer, '*') GROUP BY id
"""

_FLIPS: Final = """
SELECT count(*), sum(events) FROM questions q
LEFT JOIN current_decided c USING (id) LEFT JOIN proposed_decided p USING (id)
WHERE q.principal NOT IN (SELECT unnest(?))
AND (coalesce(c.granted, false) AND NOT coalesce(c.denied, false))
 <> (coalesce(p.granted, false) AND NOT coalesce(p.denied, false))
"""


class DuckDb:
    """A database in memory with two sets of ACLs, on two threads."""

    def __init__(self, current: Iterable[AclBinding], proposed: Iterable[AclBinding]) -> None:
        self._connection: Any = duckdb.connect()
        self._connection.execute("SET threads = 2")
        for name, acls in (("current", current), ("proposed", proposed)):
            self._connection.register("given", _table(acls))
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")

    def scan(self, log: Path) -> None:
        """Read the columns of all lines and keep none."""
        self._connection.execute(
            f"SELECT {', '.join(f'max({name})' for name in _COLUMNS)} FROM {_json(log, _COLUMNS)}"
        ).fetchall()

    def what_if(self, log: Path, super_users: list[str]) -> tuple[int, int]:
        """Return how many questions and events flip; ``log`` is a directory of JSON Lines."""
        return self._flips(_json(log, _COLUMNS), "count(*)", super_users)

    def what_if_of_usage(self, log: Path, super_users: list[str]) -> tuple[int, int]:
        """Return the same, but check the lines, and count them as usage first."""
        checks = " AND ".join(_CHECKS)
        self._connection.execute(_USAGE.format(log=_json(log, _ALL), checks=checks))
        return self._flips("usage", "sum(events)", super_users)

    def _flips(self, log: str, events: str, super_users: list[str]) -> tuple[int, int]:
        self._connection.execute(_QUESTIONS.format(log=log, events=events))
        self._connection.execute(_PATTERNS)
        for name in ("current", "proposed"):
            self._connection.execute(_DECIDED.format(acls=name))
        found: tuple[int, int] = self._connection.execute(_FLIPS, [super_users]).fetchone()
        return found


def _json(log: Path, columns: Mapping[str, str]) -> str:
    """Return what columns of a directory of JSON Lines are in DuckDB's FROM."""
    listed = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    return (
        f"read_json('{log}/*.jsonl', format='newline_delimited', ignore_errors=true, "
        f"columns={{{listed}}})"
    )


def _table(acls: Iterable[AclBinding]) -> pa.Table:
    found = list(acls)
    return pa.table(
        {
            "resource_type": [acl.resource_type.name for acl in found],
            "name": [acl.resource_name for acl in found],
            "kind": [
                "PREFIXED" if acl.pattern_type is PatternType.PREFIXED else "LITERAL"
                for acl in found
            ],
            "principal": [acl.principal for acl in found],
            "host": [acl.host for acl in found],
            "operation": [acl.operation.name for acl in found],
            "deny": [acl.permission is AclPermission.DENY for acl in found],
        }
    )
