"""A report with all that one can hold, and names as an attacker would choose them."""

from array import array
from collections.abc import Sequence
from datetime import date, datetime

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.report.content import (
    AuditReport,
    Column,
    LoggedCluster,
    Source,
    WrittenTable,
)

MARKUP = '<script>alert("1")</script>'
ENDING = "</script><!-- <script> --><b>bold"
FORGED = "x\n[2026-01-01 00:00:00,000] DEBUG Principal = User:mallory\x1b[2J"
REVERSED = "User:\u202egnp.exe"
HOSTILE = (MARKUP, FORGED, REVERSED, "a&amp;b", "' onload='x", "\u2028", "CORP\\n")


def written(columns: Sequence[str], rows: Sequence[Sequence[Cell]], total: int = 0) -> WrittenTable:
    """A table that a job wrote, as it is kept for the report."""
    found = []
    for at, name in enumerate(columns):
        values = [row[at] for row in rows]
        distinct = list(dict.fromkeys(values))
        codes = array("i", [distinct.index(value) for value in values])
        found.append(Column(name, distinct, codes))
    return WrittenTable(found, total or len(rows), f"{columns[0]}.csv")


ACL = AclBinding(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)

WHAT_IF = JobResult(
    "what-if",
    "What the proposed ACLs would change",
    "5,811 events of 43 principals would be denied.",
    [Figure("events newly denied", 5811, "of 950,122"), Figure("share", 0.25), Figure("first", "")],
    [
        Table(
            "Newly denied",
            ("principal", "operation", "events", "deciding ACL"),
            [("User:alice", "READ", 12345, None), *((name, "WRITE", 6, name) for name in HOSTILE)],
            812,
            "Ordered by events.",
            "what-if/flips",
        ),
        Table("Newly allowed", ("principal", "events"), [], 0),
    ],
    [
        Chart(
            "Changes by day",
            "columns",
            ["2026-01-01", "2026-01-02"],
            {"newly denied": [100, 70031], "newly allowed": [0, 17]},
        ),
        Chart("Principals", "bars", ["User:alice", *HOSTILE], {"events": [9001, *range(1, 8)]}),
        Chart("Empty", "bars", [], {"events": []}),
    ],
    ["The ACLs were changed within these days.", f"A warning about {MARKUP}"],
    {"what-if/flips": "every question whose decision changes"},
    {"newly-denied": 5811, "newly-allowed": 0},
)
FLIPS = written(
    ("cluster", "principal", "operation", "resource_type", "resource_name", "direction",
     "flipped_events", "removed", "acl_id"),
    [
        (MARKUP, name, "READ", "TOPIC", name, "newly denied" if at % 3 else "newly allowed",
         1_000 - at, "ALLOW READ" if at % 2 else None, "0123")
        for at, name in enumerate([*HOSTILE, ENDING, *(f"User:u{n:03}" for n in range(120))])
    ],
    812,
)  # fmt: skip
MATRIX = JobResult("matrix", "Who uses what", "Two principals used three topics.")

REPORT = AuditReport(
    [WHAT_IF, MATRIX],
    datetime(2026, 2, 1, 9, 30),
    Window(date(2026, 1, 1), date(2026, 1, 30), 1_000_000, 950_122, 49_878, 14),
    [LoggedCluster(MARKUP, 1_000_000, Ruleset((ACL,), frozenset(["User:root"])), Ruleset())],
    {"cut off": 13, "unknown rule": 1},
    {"diff": "needs --other"},
    ["A warning about all."],
    [("s3a://logs/2026", "log, JSON Lines")],
    "/srv/audit",
    "aclbroker audit all --input 'a b'",
    {"what-if/flips": FLIPS},
    [Source("--acls", "policies/now acls.yaml"), Source("--proposed", "policies/new.yaml")],
)
