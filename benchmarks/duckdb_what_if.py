"""The job what-if in DuckDB: a join in SQL, as somebody would write it without the pipeline.

Each name is made into the patterns that may match it, and these are looked up among the ACLs. Lines
are read without any of the pipeline's checks, and a session has one principal.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from aclbroker.broker.acl.bindings import AclBinding, AclPermission, PatternType

_COLUMNS: Final = {
    **dict.fromkeys(("principal", "host", "operation", "resource_type"), "VARCHAR"),
    "resource_name": "VARCHAR",
}

_QUESTIONS: Final = """
CREATE OR REPLACE TABLE questions AS
SELECT row_number() OVER () AS id, * FROM (
  SELECT principal, host, operation, resource_type, resource_name, count(*) AS events
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
            f"SELECT {', '.join(f'max({name})' for name in _COLUMNS)} FROM {json(log)}"
        ).fetchall()

    def what_if(self, log: str, super_users: list[str]) -> tuple[int, int]:
        """Return how many questions and events flip; ``log`` is as `json` returns it."""
        self._connection.execute(_QUESTIONS.format(log=log))
        self._connection.execute(_PATTERNS)
        for name in ("current", "proposed"):
            self._connection.execute(_DECIDED.format(acls=name))
        found: tuple[int, int] = self._connection.execute(_FLIPS, [super_users]).fetchone()
        return found


def json(log: Path) -> str:
    """Return what a directory of JSON Lines is in DuckDB's FROM."""
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in _COLUMNS.items())
    return (
        f"read_json('{log}/*.jsonl', format='newline_delimited', ignore_errors=true, "
        f"columns={{{columns}}})"
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
