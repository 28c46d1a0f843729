"""Our own audit log (docs/audit.md, form `json`) in Spark's column expressions.

Nothing that a client says can end a record or begin another there: a line that is no record is the
work of a full disk, of another program, or of somebody who can write the file.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from broker.acl.authorizer import RuleKind
from broker.acl.bindings import PatternType
from pipeline.ingest import kafka_line as kafka
from pipeline.ingest.checks import first_failed

SOURCE: Final = "jsonl"

_SCHEMA: Final = (
    "event STRING, timestamp STRING, cluster_id STRING, listener STRING, principal STRING, "
    "principals ARRAY<STRING>, host STRING, operation STRING, resource_type STRING, "
    "pattern_type STRING, resource_name STRING, resource_ref_count INT, api_name STRING, "
    "client_id STRING, allowed BOOLEAN, rule STRING"
)
_OPTIONS: Final = {"mode": "PERMISSIVE", "allowSingleQuotes": "false"}

_TIME_FORM: Final = r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\z"
_ALLOWING: Final = (RuleKind.SUPER_USER.value, RuleKind.DEFAULT_ALLOW.value)

# What Spark's reader makes a text of although it is none: a number, true, false, an object or an
# array. Only then is the line looked at again, for a key with such a value.
_LOOKS_OTHER: Final = r"^(?:-?[0-9]|true\z|false\z|[{\[])"
_TEXT_KEYS: Final = (
    *("event", "timestamp", "cluster_id", "listener", "principal", "host", "operation"),
    *("resource_type", "pattern_type", "resource_name", "api_name", "client_id", "rule"),
)
# Within a text a quotation mark has a backslash before it, so `key":` can only be a key.
_OTHER_VALUE: Final = rf'"(?:{"|".join(_TEXT_KEYS)})"\s*:\s*[^"\sn]'
_PRINCIPALS_KEY: Final = r'"principals"\s*:'

# A principal of our own has a type, which no number has, and no bracket before it.
_PRINCIPAL_FORM: Final = rf"^(?![{{\[]){kafka.PRINCIPAL_FORM}"

# What is in no record, unless in a text or with spaces: then a closer look is taken. Searching for
# a few fixed texts costs a fraction of one regular expression.
_DOUBTFUL: Final = ("}{", "} ", "}\t", "}\r", "},{", "}}}", "]}}", "null}}", "}]")


def parsed(line: Column) -> Column:
    """Return the struct of a line's keys; those that are missing or of a wrong type are null."""
    return F.from_json(line, _SCHEMA, _OPTIONS)


def fields(line: Column, record: Column) -> dict[str, Column]:
    """Return the columns of events, ``day`` aside, and ``reason``.

    ``record``: the column that holds `parsed` of the line. Where ``reason`` is not null, the other
    columns mean nothing.
    """
    timestamp = F.when(record.timestamp.rlike(_TIME_FORM), record.timestamp.try_cast("timestamp"))
    principals = F.coalesce(record.principals, F.array(record.principal))
    return {
        "cluster": record.cluster_id,
        "timestamp": timestamp,
        "principal": record.principal,
        "principals": principals,
        "host": record.host,
        "operation": record.operation,
        "resource_type": record.resource_type,
        "pattern_type": record.pattern_type,
        "resource_name": record.resource_name,
        "allowed": record.allowed,
        "reference_count": record.resource_ref_count,
        "api": record.api_name,
        "listener": record.listener,
        "client_id": record.client_id,
        "rule": record.rule,
        "source": F.lit(SOURCE),
        "reason": first_failed(_checks(line, record, timestamp, principals)),
    }


def _checks(
    line: Column, record: Column, timestamp: Column, principals: Column
) -> dict[str, Column]:
    return {
        kafka.Reason.ENCODING: F.is_valid_utf8(line),
        "no JSON object with a key event": record.event.isNotNull(),
        "another event than authorization": record.event == "authorization",
        "more than one JSON object": _is_alone(line),
        "timestamp: missing, or no time in UTC": timestamp.isNotNull(),
        "cluster_id: missing": record.cluster_id.isNotNull(),
        "listener: missing": record.listener.isNotNull(),
        "principal: missing, or not of the form Type:name": record.principal.rlike(_PRINCIPAL_FORM),
        "principals: not all of the form Type:name, or the first is not the principal": (
            (F.get(principals, F.lit(0)) == record.principal)
            & F.forall(principals, lambda each: each.isNotNull() & each.rlike(_PRINCIPAL_FORM))
        ),
        "host: missing": F.length(record.host) > 0,
        "operation: missing or unknown": record.operation.isin(*kafka.OPERATIONS),
        "resource_type: missing or unknown": record.resource_type.isin(
            *kafka.RESOURCE_TYPES.values()
        ),
        "pattern_type: not LITERAL": record.pattern_type == PatternType.LITERAL.name,
        "resource_ref_count: no count": record.resource_ref_count >= 0,
        "api_name: missing": F.length(record.api_name) > 0,
        "allowed: neither true nor false": record.allowed.isNotNull(),
        "rule: missing or unknown": record.rule.isin(*(kind.value for kind in RuleKind)),
        "the rule contradicts the decision": _agrees(record),
        "a value of a wrong type": _has_texts(line, record),
    }


def _agrees(record: Column) -> Column:
    return (
        F.when(record.rule.isin(*_ALLOWING), record.allowed)
        .when(record.rule == RuleKind.DEFAULT_DENY.value, ~record.allowed)
        .otherwise(F.lit(True))
    )


def _is_alone(line: Column) -> Column:
    """Whether nothing follows the object: Spark's reader does not look at the rest of the line."""
    is_doubtful = ~line.endswith("}")
    for text in _DOUBTFUL:
        is_doubtful = is_doubtful | line.contains(text)
    in_an_array = F.json_array_length(F.concat(F.lit("["), line, F.lit("]"))) == 1
    return F.when(is_doubtful, in_an_array).otherwise(F.lit(True))


def _has_texts(line: Column, record: Column) -> Column:
    """Whether the keys that should be texts are. A name such as ``5`` costs a second look."""
    is_doubtful = F.lit(False)
    for key in ("resource_name", "cluster_id", "listener", "client_id", "host", "api_name"):
        is_doubtful = is_doubtful | F.coalesce(record[key].rlike(_LOOKS_OTHER), F.lit(False))
    # No array at all is read as null, as if the key were missing.
    has_lost = record.principals.isNull() & line.contains('"principals"')
    return ~((is_doubtful & line.rlike(_OTHER_VALUE)) | (has_lost & line.rlike(_PRINCIPALS_KEY)))
