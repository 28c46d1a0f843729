"""One line of our own audit log (docs/audit.md, form `json`), read strictly.

Nothing that a client says can end a record or begin another there: a line that is no record is the
work of a full disk, of another program, or of somebody who can write the file.
"""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import PatternType
from aclbroker.pipeline.ingest.record import (
    ASKED,
    LAST_POSITION,
    MOST_REFERENCES,
    PRINCIPAL_FORM,
    RESOURCES,
    Record,
    address_of,
    canonical_host,
    is_cluster,
)

SOURCE: Final = "jsonl"

TIME: Final = r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
OPERATIONS: Final = frozenset(operation.name for operation in ASKED)
RESOURCE_TYPES: Final = frozenset(each.name for each in RESOURCES)
LEVELS: Final = frozenset(["info", "debug", "trace"])
RESERVED: Final = RuleKind.RESERVED_TOPIC.value
"""The rule of lines that are passed over: whatever ACLs there are, it denies."""

RULES: Final = frozenset(kind.value for kind in RuleKind) - {RESERVED}
ALLOWING: Final = frozenset([RuleKind.SUPER_USER.value, RuleKind.DEFAULT_ALLOW.value])
"""The rules that only allow; DefaultDeny only denies."""

TEXTS: Final = (
    *("event", "timestamp", "level", "cluster_id", "listener", "principal", "host", "operation"),
    *("resource_type", "pattern_type", "resource_name", "api_name", "client_id", "rule"),
    "last_timestamp",
)
POSITIONS: Final = ("acls", "first_acls")
KEYS: Final = frozenset(
    [*TEXTS, "principals", "resource_ref_count", "count", "allowed", *POSITIONS]
)
"""The keys that make an event. Other keys may have any value, and may be there twice."""


class JsonReason(StrEnum):
    """Why a line is quarantined, in the order in which it is asked."""

    ENCODING = "bytes or escapes that are not UTF-8"
    JSON = "no JSON object, or something beside it, or a key twice"
    NO_EVENT = "event: missing, or no name"
    EVENT = "another event than authorization"
    LEFT_OUT = "tells of decisions that the log leaves out"
    TIMESTAMP = "timestamp: missing, or no time in UTC"
    LEVEL = "level: missing or unknown"
    CLUSTER = "cluster_id: missing, too long, or with a NUL"
    LISTENER = "listener: missing"
    PRINCIPAL = "principal: missing, or not of the form Type:name"
    PRINCIPALS = "principals: not all of the form Type:name, or the first is not the principal"
    HOST = "host: missing, or no address"
    OPERATION = "operation: missing or unknown"
    RESOURCE_TYPE = "resource_type: missing or unknown"
    PATTERN_TYPE = "pattern_type: not LITERAL"
    RESOURCE_NAME = "resource_name: missing, or no text"
    COUNT = "resource_ref_count: no count"
    API = "api_name: missing"
    CLIENT = "client_id: missing, or no text"
    ALLOWED = "allowed: neither true nor false"
    RULE = "rule: missing or unknown"
    ACLS = "acls or first_acls: no position"
    CONTRADICTION = "the rule contradicts the decision"
    ROLL_UP = "count or last_timestamp: missing, or not those of decisions of one day"


class Said(NamedTuple):
    """What a line says: of ``events`` equal decisions, the first at ``time``, the last at ``last``.

    The record's ``reference_count`` is that of all of them together.
    """

    time: datetime
    record: Record
    events: int
    last: datetime


CHANGE: Final = "change"
"""The event of lines that record changes: they are passed over."""


def parse(line: bytes) -> Said | JsonReason | None:
    r"""Return what a line, without its ``\n``, says, or the reason to quarantine it.

    None if it records a change, or a decision that no ACL can change.
    """
    keys: list[list[str]] = []
    try:
        found = json.loads(line.decode(), object_pairs_hook=lambda each: _noted(keys, each))
        # A lone surrogate is an escape that JSON allows, and no character.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeError:
        return JsonReason.ENCODING
    except (ValueError, RecursionError):
        return JsonReason.JSON
    # Objects are made from the inside out. Of a key that stands twice readers take either value.
    if not isinstance(found, dict) or len(keys[-1]) != len(set(keys[-1])):
        return JsonReason.JSON
    if found.get("event") == CHANGE:
        return None
    timestamp = time_of(found.get("timestamp"))
    reason = _wrong_origin(found, timestamp) or _wrong_request(found) or _wrong_rule(found)
    if reason is not None or timestamp is None:
        return reason or JsonReason.TIMESTAMP
    count, last = _roll_up(found, timestamp)
    if last is None:
        return JsonReason.ROLL_UP
    if found["rule"] == RESERVED:
        return None
    return Said(timestamp, _record(found)._replace(broker=broker_of(line)), count, last)


def _roll_up(found: dict[str, Any], timestamp: datetime) -> tuple[int, datetime | None]:
    """Return how many decisions a line stands for, and the time of the last one.

    That is None unless it is on the day of the first one, and not before it.
    """
    count, last = found.get("count"), found.get("last_timestamp")
    if count is None and last is None:
        return 1, timestamp
    time = time_of(last)
    is_count = type(count) is int and 1 <= count <= MOST_REFERENCES
    if not is_count or time is None or time < timestamp or time.date() != timestamp.date():
        return 0, None
    return int(count or 0), time


def _noted(keys: list[list[str]], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys.append([key for key, _ in pairs if key in KEYS])
    return dict(pairs)


def time_of(text: Any) -> datetime | None:
    """Return the time of a timestamp in the log's form; None if it is none."""
    if not isinstance(text, str) or not re.match(TIME, text, re.ASCII) or text.endswith("\n"):
        return None
    try:
        second = datetime.fromisoformat(f"{text[:19]}+00:00")
    except ValueError:
        return None
    return second + timedelta(microseconds=int(text[20:26]))


def day_of(line: bytes) -> date | None:
    """Return the day that a quarantined line claims to be of, None if it claims none."""
    claimed = re.search(rb'"timestamp":"(20[^"]{25})"', line)
    time = claimed and time_of(claimed[1].decode(errors="replace"))
    return time.date() if time else None


def others(principals: Any, principal: str) -> str | None:
    """Return the principals after the first as a JSON array, None if there are none.

    Raises ValueError unless all have the form ``Type:name`` and the first is ``principal``.
    """
    if principals is None:
        return None
    if not isinstance(principals, list) or not all(_is_principal(each) for each in principals):
        raise ValueError(JsonReason.PRINCIPALS)
    if principals[:1] != [principal]:
        raise ValueError(JsonReason.PRINCIPALS)
    return json.dumps(principals[1:]) if len(principals) > 1 else None


def _is_principal(value: Any) -> bool:
    return isinstance(value, str) and re.match(PRINCIPAL_FORM, value) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_text_or_null(found: dict[str, Any], key: str) -> bool:
    return key in found and (found[key] is None or isinstance(found[key], str))


def _wrong_origin(found: dict[str, Any], timestamp: datetime | None) -> JsonReason | None:
    """Who asked, when and where."""
    checks = {
        JsonReason.LEFT_OUT: found.get("event") != "left_out",
        JsonReason.NO_EVENT: _is_event_name(found.get("event")),
        JsonReason.EVENT: found.get("event") == "authorization",
        JsonReason.TIMESTAMP: timestamp is not None,
        JsonReason.LEVEL: _is_text(found.get("level")) and found["level"] in LEVELS,
        JsonReason.CLUSTER: _is_text(found.get("cluster_id")) and is_cluster(found["cluster_id"]),
        JsonReason.LISTENER: _is_text(found.get("listener")),
        JsonReason.PRINCIPAL: _is_principal(found.get("principal")),
        JsonReason.PRINCIPALS: _has_principals(found),
        JsonReason.HOST: _is_text(found.get("host")) and address_of(found["host"]) is not None,
    }
    return next((reason for reason, holds in checks.items() if not holds), None)


def _is_event_name(value: Any) -> bool:
    """Tell whether a value names an event; a collector may put a whole line under that key."""
    return isinstance(value, str) and re.fullmatch(r"[\w .-]{1,100}", value, re.ASCII) is not None


def is_event(found: Any) -> bool:
    """Tell whether a JSON value is an event of our own log: a decision, a change or another."""
    if not isinstance(found, dict) or not _is_event_name(found.get("event")):
        return False
    is_known = found["event"] in ("authorization", CHANGE)
    return is_known or ("level" in found and time_of(found.get("timestamp")) is not None)


def _has_principals(found: dict[str, Any]) -> bool:
    try:
        others(found.get("principals"), found.get("principal", ""))
    except ValueError:
        return False
    return True


def _wrong_request(found: dict[str, Any]) -> JsonReason | None:
    """What was asked."""
    count = found.get("resource_ref_count")
    is_count = type(count) is int and 0 <= count <= MOST_REFERENCES
    checks = {
        JsonReason.OPERATION: _is_text(found.get("operation")) and found["operation"] in OPERATIONS,
        JsonReason.RESOURCE_TYPE: (
            _is_text(found.get("resource_type")) and found["resource_type"] in RESOURCE_TYPES
        ),
        JsonReason.PATTERN_TYPE: found.get("pattern_type") == PatternType.LITERAL.name,
        JsonReason.RESOURCE_NAME: _is_text_or_null(found, "resource_name"),
        JsonReason.COUNT: is_count,
        JsonReason.API: _is_text(found.get("api_name")),
        JsonReason.CLIENT: _is_text_or_null(found, "client_id"),
    }
    return next((reason for reason, holds in checks.items() if not holds), None)


def _wrong_rule(found: dict[str, Any]) -> JsonReason | None:
    """What was decided."""
    allowed, rule = found.get("allowed"), found.get("rule")
    if not isinstance(allowed, bool):
        return JsonReason.ALLOWED
    if not isinstance(rule, str) or rule not in (*RULES, RESERVED):
        return JsonReason.RULE
    if not all(is_position(found.get(key)) for key in POSITIONS):
        return JsonReason.ACLS
    denies = rule in (RuleKind.DEFAULT_DENY.value, RESERVED)
    if (rule in ALLOWING and not allowed) or (denies and allowed):
        return JsonReason.CONTRADICTION
    return None


def is_position(value: Any) -> bool:
    """Tell whether a value is a position of ACLs, or None."""
    return value is None or (type(value) is int and 0 <= value <= LAST_POSITION)


def _record(found: dict[str, Any]) -> Record:
    return Record(
        cluster=found["cluster_id"],
        listener=found["listener"],
        principal=found["principal"],
        other_principals=others(found.get("principals"), found["principal"]),
        host=canonical_host(found["host"]),
        operation=found["operation"],
        resource_type=found["resource_type"],
        resource_name=found["resource_name"],
        api=found["api_name"],
        allowed=found["allowed"],
        rule=found["rule"],
        quiet=found["level"] == "trace",
        reference_count=found["resource_ref_count"],
        client_id=found["client_id"],
        source=SOURCE,
        acls=found.get("acls"),
        first_acls=found.get("first_acls"),
    )


def broker_of(line: bytes) -> str | None:
    """Return the name of a line's broker by its node id; None if the line has no node id."""
    found = re.search(NODE.encode(), line)
    return found and node_name(found["node"].decode())


NODE: Final = '"node_id":(?P<node>0|-?[1-9][0-9]{0,17}),'
"""The key that names the broker.

It cannot match inside a value, because JSON escapes quotation marks there.
"""


def node_name(node: str) -> str:
    """Return the name of the broker with a node id."""
    return f"node {node}"
