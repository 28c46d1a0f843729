"""The columns of what is asked, decided and told, and the words that stand in them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from aclbroker.pipeline.replay.questions import QUESTION

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Verdict(StrEnum):
    """How a decision of the log compares with that of the ACLs of its time."""

    AS_LOGGED = "as logged"
    OTHERWISE = "otherwise"
    OTHER_TIME = "other time"
    """The same, by ACLs that were not in force at the time of the event."""

    OTHER_RULE = "other rule"
    """The same, by another kind of rule: such as an ACL in place of a super user."""

    UNTOLD = "cannot be told"


class Why(StrEnum):
    """Why it cannot be told."""

    NO_POSITION = "the log names no position"
    NO_HISTORY = "no history of this cluster is given"
    TOO_EARLY = "the position is before the history begins"
    TOO_LATE = "the position is after the history ends"
    SHORTENED = "the log may have shortened a text of it"


ASKED_KEYS: Final = (*QUESTION, "allowed", "rule", "first", "last", "timing", "why")
"""What rows of a log are gathered by; ``first`` and ``last`` are positions, ``timing`` is a
`timing.Timing`."""

COUNTS: Final[Mapping[str, str]] = {
    "events": "sum",
    "first_seen": "min",
    "last_seen": "max",
    "first_position": "min",
    "last_position": "max",
    "example_host": "min",
}
"""The other columns of all rows, and how those of two rows become one."""

CHANGES: Final = ("grant", "before", "after")
"""Numbers of changes of a history, -1 for none: what granted the ACL that decided; of what was
denied, which change had last revoked an ACL that would allow it, and which one was the next to
grant one."""

DECIDED_KEYS: Final = (
    *(*QUESTION, "allowed", "rule", "verdict", "why", "allowed_then", "rule_then"),
    *CHANGES,
)
"""What rows are gathered by when they are decided."""

_KINDS: Final = {
    **dict.fromkeys((*QUESTION, "rule", "verdict", "why", "rule_then", "example_host"), "string"),
    **dict.fromkeys(("allowed", "allowed_then"), "boolean"),
    **dict.fromkeys(CHANGES, "int"),
    **dict.fromkeys(("events", "first_position", "last_position"), "long"),
    **dict.fromkeys(("first_seen", "last_seen"), "timestamp"),
}

_MADE: Final = ("position", "at", "by", "from")

TOLD: Final[Mapping[str, str]] = {
    "acl": "string",
    **{
        f"{what}_{name}": {"position": "long", "at": "timestamp"}.get(name, "string")
        for what in ("granted", "revoked")
        for name in _MADE
    },
    "allowed_before_by": "string",
    **{
        f"lost_{name}": {"position": "long", "at": "timestamp"}.get(name, "string")
        for name in _MADE
    },
    "allowed_later_by": "string",
    **{
        f"gained_{name}": {"position": "long", "at": "timestamp"}.get(name, "string")
        for name in _MADE
    },
}
"""The columns that tell of changes, in place of their numbers."""

_ASKED: Final = (*QUESTION, "example_host", "allowed", "rule", "verdict")
_THEN: Final = ("allowed_then", "rule_then")
_NUMBERS: Final = (*("events", "first_seen", "last_seen", "first_position", "last_position"),)


def decided_type() -> StructType:
    """Return the columns of what was decided anew."""
    return _struct({name: _KINDS[name] for name in (*DECIDED_KEYS, *COUNTS)})


def told_type() -> StructType:
    """Return the columns of the table of decisions."""
    return _struct({name: _KINDS[name] for name in (*_ASKED, *_THEN, *_NUMBERS)} | dict(TOLD))


def blob_type() -> StructType:
    """Return the columns of rows that were gathered: those of a ``segment`` are packed."""
    return _struct({"segment": "int", "piece": "int", "rows": "long", "packed": "binary"})


def _struct(columns: Mapping[str, str]) -> StructType:
    from aclbroker.pipeline.frames import types

    kinds = {
        "string": types.StringType,
        "boolean": types.BooleanType,
        "int": types.IntegerType,
        "long": types.LongType,
        "timestamp": types.TimestampType,
        "binary": types.BinaryType,
    }
    return types.StructType(
        [types.StructField(name, kinds[kind]()) for name, kind in columns.items()]
    )
