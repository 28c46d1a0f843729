"""The tables' columns. Each function builds its type anew, since pyspark's ``add`` changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def events() -> StructType:
    """One decision of an authorizer a row.

    - ``cluster``: the id from our own log, or the name that the user gave a Kafka's log
    - ``day``: of ``timestamp``, in UTC
    - ``principals``: all principals of the session, ``principal`` first
    - ``operation``, ``resource_type``, ``pattern_type``: names of `broker.acl.bindings`
    - ``resource_name``: null if the request named none
    - ``reference_count``: how often the request names the resource; null in logs before Kafka 2.4
    - ``api``: the request, such as ``CreateAcls``; null in logs before Kafka 2.4
    - ``listener``, ``client_id``: null in Kafka's log, which does not have them
    - ``rule``: the name of a `broker.acl.authorizer.RuleKind`; null in the logs of ZooKeeper's time
    - ``source``: see `pipeline.ingest.kafka_line.Dialect`, or ``jsonl``
    """
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        DateType,
        IntegerType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    return StructType(
        [
            StructField("cluster", StringType()),
            StructField("day", DateType()),
            StructField("timestamp", TimestampType()),
            StructField("principal", StringType()),
            StructField("principals", ArrayType(StringType())),
            StructField("host", StringType()),
            StructField("operation", StringType()),
            StructField("resource_type", StringType()),
            StructField("pattern_type", StringType()),
            StructField("resource_name", StringType()),
            StructField("allowed", BooleanType()),
            StructField("reference_count", IntegerType()),
            StructField("api", StringType()),
            StructField("listener", StringType()),
            StructField("client_id", StringType()),
            StructField("rule", StringType()),
            StructField("source", StringType()),
        ]
    )


def quarantine() -> StructType:
    """One line that is no event a row, and why it is none.

    ``day`` is of the time that the line claims, in UTC, or null if none can be read. ``line`` is
    the text as it was, with U+FFFD for bytes that are not UTF-8.
    """
    from pyspark.sql.types import DateType, StringType, StructField, StructType

    return StructType(
        [
            StructField("cluster", StringType()),
            StructField("day", DateType()),
            StructField("source_file", StringType()),
            StructField("line", StringType()),
            StructField("reason", StringType()),
        ]
    )


def usage() -> StructType:
    """The events of a day that differ in nothing that a decision depends on, counted, a row.

    - ``other_principals``: the session's principals after the first, as a JSON array; null if none
    - ``listener``, ``rule``: as in `events`; null where the log does not tell
    - ``quiet``: whether the decision only filtered an answer, or filled one in (level TRACE)
    - ``events``: how many; ``reference_count``: how often their requests named the resource
    - ``first_seen``, ``last_seen``: the time of the first and of the last of them

    There may be several rows of the same key: they are to be added up.
    """
    from pyspark.sql.types import (
        BooleanType,
        DateType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    return StructType(
        [
            StructField("cluster", StringType()),
            StructField("day", DateType()),
            StructField("listener", StringType()),
            StructField("principal", StringType()),
            StructField("other_principals", StringType()),
            StructField("host", StringType()),
            StructField("operation", StringType()),
            StructField("resource_type", StringType()),
            StructField("resource_name", StringType()),
            StructField("api", StringType()),
            StructField("allowed", BooleanType()),
            StructField("rule", StringType()),
            StructField("quiet", BooleanType()),
            StructField("events", LongType()),
            StructField("reference_count", LongType()),
            StructField("first_seen", TimestampType()),
            StructField("last_seen", TimestampType()),
        ]
    )
