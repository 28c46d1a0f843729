"""Kafka's authorizer log in Spark's column expressions: what `kafka_line` says of one line, fast.

One `split` finds the fixed words; that they are the right ones, in order, is seen by putting the
line together again. A regular expression for each field would run over the line as often.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from broker.acl.bindings import PatternType
from pipeline.ingest import kafka_line as kafka
from pipeline.ingest.checks import first_failed
from pipeline.ingest.kafka_line import Dialect, Reason

# The end counts as a word too, which leaves an empty last part. The space that all begin with
# stands once: Java would try each word at each character of the line.
_END: Final = r"[(]kafka[.]authorizer[.]logger[)]\r?\z"
_SPLIT: Final = f" (?:{'|'.join(word.removeprefix(' ') for word in kafka.WORDS)}|{_END})"
_ALL: Final = 2**31 - 1
_CLOCK_LENGTH: Final = len("2026-11-21 07:48:42,328")

# The number of parts that the fixed words of each form make.
_WITHOUT_REQUEST, _WITH_REQUEST, _WITH_RULE = 6, 8, 9


def parts(line: Column) -> Column:
    """Return the array of what stands between the fixed words of a line."""
    return F.split(line, _SPLIT, -1)


def fields(line: Column, part: Column, zone: tzinfo) -> dict[str, Column]:
    """Return the columns of events, ``cluster`` and ``day`` aside, and ``reason``.

    ``part``: the column that holds `parts` of the line. ``zone``: that of the broker's clock.
    Where ``reason`` is not null, the other columns mean nothing.
    """
    size = F.size(part)
    is_old = size != _WITH_RULE
    has_request = size != _WITHOUT_REQUEST
    allowed = F.contains(line, F.when(is_old, kafka.ALLOWED_OLD).otherwise(kafka.ALLOWED))
    timestamp = _timestamp(part, zone)
    principal = _field(part, 1)
    operation = _operation(part, is_old)
    resource_type, resource_name = _resource(part, has_request)
    api = F.when(has_request, _field(part, 5))
    count = F.when(has_request, _field(part, 6))
    rule = _field(part, 7)
    decides, kind, source = _rule(rule)
    checks: dict[str, Column] = {
        Reason.ENCODING: F.is_valid_utf8(line),
        Reason.HEAD: line.rlike(f"^{kafka.HEAD}{kafka.LEVEL}{kafka.PRINCIPAL} "),
        Reason.CUT_OFF: _without_return(line).endswith(kafka.TAIL),
        Reason.WORDS: _is_in_order(line, part, size, allowed),
        Reason.TIME: timestamp.isNotNull(),
        Reason.PRINCIPAL: principal.rlike(f"^{kafka.PRINCIPAL_FORM}"),
        Reason.OPERATION: operation.isNotNull(),
        Reason.HOST: _field(part, 3).rlike(f"^{kafka.HOST_FORM}\\z"),
        Reason.RESOURCE: resource_type.isNotNull(),
        Reason.API: ~has_request | api.isin(*sorted(kafka.APIS)),
        Reason.COUNT: ~has_request | count.rlike(f"^{kafka.COUNT_FORM}\\z"),
        Reason.RULE: is_old | source.isNotNull(),
        Reason.CONTRADICTION: is_old | F.coalesce(decides == allowed, F.lit(True)),
    }
    return {
        "timestamp": timestamp,
        "principal": principal,
        "principals": F.array(principal),
        "host": _field(part, 3),
        "operation": operation,
        "resource_type": resource_type,
        "pattern_type": F.lit(PatternType.LITERAL.name),
        "resource_name": resource_name,
        "allowed": allowed,
        "reference_count": count.try_cast("int"),
        "api": api,
        "listener": F.lit(None).cast("string"),
        "client_id": F.lit(None).cast("string"),
        "rule": F.when(~is_old, kind),
        "source": F.when(is_old, Dialect.ZOOKEEPER.value).otherwise(source),
        "reason": first_failed(checks),
    }


def _field(part: Column, index: int) -> Column:
    """A part without the space before it; null if there is none."""
    return F.substring(F.get(part, F.lit(index)), 2, _ALL)


def _without_return(line: Column) -> Column:
    shorter = F.substring(line, F.lit(1), F.length(line) - 1)
    return F.when(line.endswith("\r"), shorter).otherwise(line)


def _is_in_order(line: Column, part: Column, size: Column, allowed: Column) -> Column:
    """Whether the parts, put together with the words where they belong, are the line again."""

    def words(*order: str) -> list[Column]:
        """The words, each with the part behind it."""
        pairs = [(F.lit(f"{word} "), _field(part, i)) for i, word in enumerate(order, start=1)]
        return [column for pair in pairs for column in pair]

    def joined(yes: str, no: str, *request: str) -> Column:
        verdict = F.when(allowed, yes).otherwise(no)
        asked = words(kafka.PRINCIPAL, yes, kafka.HOST, kafka.RESOURCE, *request)
        asked[2] = F.concat(verdict, F.lit(" "))
        return F.concat(F.get(part, F.lit(0)), *asked, F.lit(kafka.TAIL))

    old = (kafka.ALLOWED_OLD, kafka.DENIED_OLD)
    whole = (
        F.when(
            size == _WITH_RULE,
            joined(kafka.ALLOWED, kafka.DENIED, kafka.REQUEST, kafka.COUNT, kafka.RULE),
        )
        .when(size == _WITH_REQUEST, joined(*old, kafka.REQUEST, kafka.COUNT))
        .when(size == _WITHOUT_REQUEST, joined(*old))
    )
    return whole == _without_return(line)


def _timestamp(part: Column, zone: tzinfo) -> Column:
    # The Z makes it independent of the session's zone.
    clock = F.substring(F.get(part, F.lit(0)), 2, _CLOCK_LENGTH)
    read = F.concat(F.translate(clock, ",", "."), F.lit("Z")).try_cast("timestamp")
    # What is quarantined can claim a time that no table takes.
    possible = F.when(
        read.between(*(F.lit(f"{year}-01-01 00:00:00Z") for year in (2000, 2100))), read
    )
    return possible if str(zone) == "UTC" else F.to_utc_timestamp(possible, str(zone))


def _operation(part: Column, is_old: Column) -> Column:
    printed = _field(part, 2)
    names = F.create_map(*(F.lit(text) for pair in kafka.OLD_OPERATIONS.items() for text in pair))
    new = F.when(printed.isin(*kafka.OPERATIONS), printed)
    return F.when(is_old, F.try_element_at(names, printed)).otherwise(new)


def _resource(part: Column, has_request: Column) -> tuple[Column, Column]:
    """Type and name; null if the text is of no known type."""
    text = _field(part, 4)
    types = names = F.when(F.lit(False), F.lit(""))
    for printed, name in kafka.RESOURCE_TYPES.items():
        heads = {
            f"{printed}:LITERAL:": F.lit(True),
            f"{printed}:": ~has_request,  # before Kafka 2.0
        }
        for head, is_possible in heads.items():
            begins = text.startswith(head) & is_possible
            types = types.when(begins, F.lit(name))
            names = names.when(begins, F.substring(text, len(head) + 1, _ALL))
    return types, names


def _rule(rule: Column) -> tuple[Column, Column, Column]:
    """What the rule decides, its kind, and the dialect, which is null if the rule is unknown."""
    simple = list(kafka.SIMPLE_RULES)
    decides = F.when(rule.isin(*simple), rule != "DefaultDeny")
    source = F.when(rule.isin(*simple), Dialect.ROUND.value).when(
        rule == kafka.REMOVED_ACL, Dialect.SQUARE.value
    )
    for dialect, brackets in kafka.ACL_BRACKETS.items():
        for permission in ("ALLOW", "DENY"):
            named = rule.startswith(kafka.acl_head(brackets)) & rule.endswith(
                kafka.acl_tail(brackets, permission)
            )
            decides = decides.when(named, permission == "ALLOW")
            source = source.when(named, dialect.value)
    return decides, F.when(rule.isin(*simple), rule).otherwise(kafka.MATCHING_ACL), source
