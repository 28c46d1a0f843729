"""The tables' columns. Each function builds its type anew, since pyspark's ``add`` changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_ASKED: Final = {
    **dict.fromkeys(("listener", "principal", "other_principals", "host"), "string"),
    **dict.fromkeys(("operation", "resource_type", "resource_name", "api"), "string"),
    "allowed": "boolean",
    "rule": "string",
    "quiet": "boolean",
}
"""What was asked and decided: the columns that events and usage have in common."""


def events() -> StructType:
    """One line of a log a row: a decision of an authorizer, or the equal ones of a period.

    - ``cluster``: the id from our own log, or the name that the user gave a Kafka's log
    - ``day``: of ``timestamp``, in UTC
    - ``principal``: ``Type:name``; ``other_principals``: the session's further ones, as a JSON
      array; null if none
    - ``host``: the address in canonical form (`acl.hosts`)
    - ``operation``, ``resource_type``: names of `acl.bindings`
    - ``resource_name``: null if the request named none; see `acl.authorizer.ANY_RESOURCE`
    - ``reference_count``: how often the request names the resource; 1 in logs before Kafka 2.4
    - ``api``: the request, such as ``CreateAcls``; null in logs before Kafka 2.4
    - ``listener``, ``client_id``: null in Kafka's log, which does not have them
    - ``rule``: the value of a `acl.authorizer.RuleKind`; null before Kafka 3.3
    - ``quiet``: whether the decision only filtered an answer, or filled one in (level TRACE)
    - ``events``: how many decisions the line stands for; ``timestamp`` is that of the first,
      ``last_timestamp`` of the last of them; ``client_id`` is of the first, and ``reference_count``
      of all
    - ``acls``: the position of the store whose ACLs decided, with ``events`` of the last of them;
      null where a log does not tell. ``first_acls``: of the first of them, null if it is the same
    - ``source``: see `pipeline.ingest.kafka_line.Dialect`, or ``jsonl``
    """
    return _struct(
        cluster="string",
        day="date",
        timestamp="timestamp",
        **_ASKED,
        reference_count="long",
        client_id="string",
        source="string",
        events="long",
        last_timestamp="timestamp",
        acls="long",
        first_acls="long",
    )


def usage() -> StructType:
    """The events of a day that differ in nothing that a decision depends on, counted, a row.

    - ``events``: how many; ``reference_count``: how often their requests named the resource
    - ``first_seen``, ``last_seen``: the time of the first and of the last of them

    The other columns are those of `events`. Several rows may have the same key, and count together.
    """
    return _struct(
        cluster="string",
        day="date",
        **_ASKED,
        events="long",
        reference_count="long",
        first_seen="timestamp",
        last_seen="timestamp",
    )


def hours() -> StructType:
    """Each row has the allowed, or the denied, events of a broker that began in one hour.

    - ``broker``: the node or the file (`pipeline.ingest.hours`); null if the log names neither
    - ``hour``: the beginning of the hour, in UTC; ``day``: its day
    - ``events``, ``first_seen``, ``last_seen``: as in `usage`

    Several rows may have the same key. Add them up.
    """
    return _struct(
        cluster="string",
        day="date",
        broker="string",
        hour="timestamp",
        allowed="boolean",
        events="long",
        first_seen="timestamp",
        last_seen="timestamp",
    )


def quarantine() -> StructType:
    """One line that is no event a row, and the reason.

    ``day`` is of the time that the line claims, in UTC, or null if none can be read. ``line`` is
    the text as it was, with U+FFFD for bytes that are not UTF-8.
    """
    return _struct(
        cluster="string",
        day="date",
        source_file="string",
        line="string",
        reason="string",
    )


def arrow(schema: StructType) -> pa.Schema:
    """Return the same columns as Arrow's."""
    import pyarrow as pa

    found = {
        "string": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "boolean": pa.bool_(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "binary": pa.binary(),
    }
    return pa.schema([(each.name, found[each.dataType.simpleString()]) for each in schema.fields])


def _struct(**columns: str) -> StructType:
    from aclbroker.pipeline.frames import types

    found: dict[str, Any] = {
        "string": types.StringType,
        "date": types.DateType,
        "timestamp": types.TimestampType,
        "boolean": types.BooleanType,
        "long": types.LongType,
    }
    return types.StructType(
        [types.StructField(name, found[kind]()) for name, kind in columns.items()]
    )
