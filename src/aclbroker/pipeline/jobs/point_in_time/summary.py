"""What the ACLs of each time decide, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Figure, JobResult, Table
from aclbroker.pipeline.jobs.point_in_time.columns import Verdict
from aclbroker.pipeline.jobs.point_in_time.find import (
    DECISIONS,
    OTHERWISE,
    UNTOLD,
    PointInTime,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ORDER: Final = (
    *("cluster", "principal", "operation", "resource_type", "resource_name", "first_position"),
    "allowed",
)


def summary(inputs: Inputs, found: PointInTime, top: int) -> JobResult:
    """Return what was found as tables, figures and sentences."""
    events = found.events
    otherwise = events.get(Verdict.OTHERWISE.value, 0)
    return JobResult(
        "point-in-time",
        "What the ACLs of each time decide",
        _sentence(events),
        _figures(inputs, events),
        [
            _otherwise(found.otherwise, top),
            _allowed(found.decisions, top),
            _denied(found.decisions, top),
            _untold(found.untold),
        ],
        warnings=_warnings(events),
        outputs=found.outputs,
        alarms={"decided-otherwise": otherwise},
        left_out=_left_out(found),
    )


def _sentence(events: Mapping[str, int]) -> str:
    untold = events.get(Verdict.UNTOLD.value, 0)
    decided = sum(events.values()) - untold
    otherwise = events.get(Verdict.OTHERWISE.value, 0)
    found = (
        f"{otherwise:,} of {decided:,} events were decided otherwise than the ACLs of their time "
        "decide"
    )
    return f"{found}; of {untold:,} that cannot be told." if untold else f"{found}."


def _figures(inputs: Inputs, events: Mapping[str, int]) -> list[Figure]:
    notes = {
        Verdict.AS_LOGGED: ("Decided as logged", "by the ACLs of their time"),
        Verdict.OTHERWISE: ("Decided otherwise", "than the ACLs of their time decide"),
        Verdict.OTHER_TIME: ("By ACLs of another time", "the position is not of the event's time"),
        Verdict.OTHER_RULE: ("By another rule", "as logged, but by an ACL and not as a super user"),
        Verdict.UNTOLD: ("Cannot be told", "the table says why"),
    }
    changes = sum(len(each) for each in inputs.histories.values())
    return [
        Figure("Events", sum(events.values())),
        *(Figure(label, events.get(each.value, 0), note) for each, (label, note) in notes.items()),
        Figure("Changes of ACLs", changes, "in the history that was given"),
    ]


def _warnings(events: Mapping[str, int]) -> list[str]:
    found = []
    if events.get(Verdict.OTHERWISE.value):
        found.append(
            "Events were decided otherwise than the ACLs of their time decide: super users, broker "
            "users, --cidr or a default to allow were not given as the broker has them; or the "
            "log, the store or the broker was altered."
        )
    if events.get(Verdict.OTHER_TIME.value):
        found.append(
            "Events name ACLs that were not in force at their time: a backup of the store was "
            "restored, a clock was wrong, or the log was altered."
        )
    return found


def _left_out(found: PointInTime) -> dict[str, str]:
    reasons: dict[str, list[str]] = {}
    for row in found.untold:
        reasons.setdefault(row["cluster"], []).append(row["why"])
    told = {row["cluster"] for row in found.decisions.select("cluster").distinct().collect()}
    return {
        cluster: ", and ".join(each) for cluster, each in reasons.items() if cluster not in told
    }


def _rows(table: DataFrame, top: int) -> tuple[Sequence[Any], int]:
    return table.orderBy(F.desc("events"), *_ORDER).take(top), table.count()


def _otherwise(table: DataFrame, top: int) -> Table:
    rows, total = _rows(table, top)
    return Table(
        "Not as the ACLs of the time say",
        (
            *("Cluster", "Who", "Asked", "How", "Logged", "By the ACLs then", "By", "Events"),
            *("First", "Last", "Position"),
        ),
        [
            [
                row["cluster"],
                *_asked(row),
                row["verdict"],
                _decision(row["allowed"], row["rule"]),
                _decision(row["allowed_then"], row["rule_then"]),
                row["acl"],
                row["events"],
                *_times(row),
                _span(row),
            ]
            for row in rows
        ],
        total,
        source=OTHERWISE,
    )


def _allowed(table: DataFrame, top: int) -> Table:
    rows, total = _rows(table.where(F.col("allowed_then") & F.col("acl").isNotNull()), top)
    return Table(
        "Which ACLs allowed what",
        (
            *("Cluster", "Who", "Asked", "ACL", "Granted", "By", "Position", "Revoked", "Events"),
            *("First", "Last"),
        ),
        [
            [
                row["cluster"],
                *_asked(row),
                row["acl"],
                _time(row["granted_at"]),
                _by(row, "granted"),
                row["granted_position"],
                _made(row, "revoked"),
                row["events"],
                *_times(row),
            ]
            for row in rows
        ],
        total,
        source=DECISIONS,
    )


def _denied(table: DataFrame, top: int) -> Table:
    rows, total = _rows(table.where(~F.col("allowed_then")), top)
    return Table(
        "What was denied, and when it was allowed",
        (
            *("Cluster", "Who", "Asked", "Denied by", "Until then allowed by", "Revoked"),
            *("Later allowed by", "Granted", "Events", "First", "Last"),
        ),
        [
            [
                row["cluster"],
                *_asked(row),
                row["acl"] or row["rule_then"],
                row["allowed_before_by"],
                _made(row, "lost"),
                row["allowed_later_by"],
                _made(row, "gained"),
                row["events"],
                *_times(row),
            ]
            for row in rows
        ],
        total,
        source=DECISIONS,
    )


def _untold(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "What cannot be told",
        ("Cluster", "Why", "Events", "First", "Last", "Positions"),
        [[row["cluster"], row["why"], row["events"], *_times(row), _span(row)] for row in rows],
        len(rows),
        source=UNTOLD,
    )


def _asked(row: Mapping[str, Any]) -> tuple[Cell, Cell]:
    who = f"{row['principal']} from {row['example_host']}"
    resource = resource_text(str(row["resource_type"]), row["resource_name"])
    return who, f"{row['operation']} on {resource}"


def _decision(allowed: bool, rule: str | None) -> str:
    word = "allowed" if allowed else "denied"
    return word if rule is None else f"{word} by {rule}"


def _span(row: Mapping[str, Any]) -> Cell:
    first, last = row["first_position"], row["last_position"]
    return first if first == last else f"{first} to {last}"


def _times(row: Mapping[str, Any]) -> tuple[Cell, Cell]:
    return _time(row["first_seen"]), _time(row["last_seen"])


def _time(time: Any) -> Cell:
    return None if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def _made(row: Mapping[str, Any], what: str) -> Cell:
    """When a change was made, and by whom; None if there is none."""
    if row[f"{what}_position"] is None:
        return None
    return f"{_time(row[f'{what}_at']) or row[f'{what}_position']} by {_by(row, what)}"


def _by(row: Mapping[str, Any], what: str) -> str:
    who, host = row[f"{what}_by"], row[f"{what}_from"]
    return (who or "somebody not known") + (f" from {host}" if host else "")
