"""The intended differences in what stories are answered, each with its name and its reason.

docs/conformance.md lists them for users.
"""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.divergences import Divergence
from aclbroker.conformance.recording import Step
from aclbroker.conformance.rules import Difference
from aclbroker.protocol.messages import ApiKey

_READING_NOTHING: Final = frozenset(("writer", "describer", "no-topics", "nobody"))
"""The roles without READ on any topic."""


def _is_unreadable(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.PRODUCE
        and "magic 3" in step.label
        and (difference.recorded, difference.actual) == ("2", "29")
    )


def _is_not_looked_into(step: Step, _difference: Difference) -> bool:
    return step.key == ApiKey.PRODUCE and any(
        f"{codec} that is none" in step.label for codec in ("snappy", "lz4", "zstd")
    )


def _is_latest_of_deleted(step: Step, _difference: Difference) -> bool:
    return step.key == ApiKey.LIST_OFFSETS and step.label.endswith("all at -3")


def _is_refused_fetch(step: Step, _difference: Difference) -> bool:
    return (
        step.key == ApiKey.FETCH
        and step.role in _READING_NOTHING
        and step.label.startswith("records are read:")
    )


def _is_refused_session(step: Step, _difference: Difference) -> bool:
    return (
        step.key == ApiKey.FETCH
        and step.role in _READING_NOTHING
        and step.label.startswith("sessions of fetches:")
    )


def _is_named_twice(step: Step, _difference: Difference) -> bool:
    return step.key == ApiKey.DELETE_TOPICS and step.label.endswith("by name and by id")


def _is_unknown_operation(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.INCREMENTAL_ALTER_CONFIGS
        and step.label.endswith("an unknown operation")
        and (difference.recorded, difference.actual) == ("-1", "42")
    )


def _is_zero_id(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.METADATA
        and step.label.endswith("by the zero id")
        and (difference.recorded, difference.actual) == ("-1", "42")
    )


def _is_refused_marker_of_nothing(step: Step, _difference: Difference) -> bool:
    return (
        step.key == ApiKey.WRITE_TXN_MARKERS
        and step.role != "operator"
        and "no partition at" in step.label
    )


DIVERGENCES: Final = (
    Divergence(
        "unreadable batches",
        "A Produce with a batch of an unknown format fails in Kafka as a whole, before anybody's "
        "rights are looked at; here who may not write is told so.",
        _is_unreadable,
    ),
    Divergence(
        "unread compression",
        "Kafka reads compressed batches and refuses those that are broken. Here snappy, lz4 and "
        "zstd are kept and not looked into; gzip is.",
        _is_not_looked_into,
    ),
    Divergence(
        "latest of deleted records",
        "When all records of a partition are deleted, Kafka still finds the latest time (-3) of "
        "those that are not gone from its disk.",
        _is_latest_of_deleted,
    ),
    Divergence(
        "refused fetches",
        "Here a refused Fetch is answered as it was asked, with a partition twice and with a topic "
        "of which no partition was wanted; Kafka names each partition once.",
        _is_refused_fetch,
    ),
    Divergence(
        "refused sessions",
        "Kafka opens a fetch session for who may read none of its topics. Here there is none, and "
        "the client names its partitions each time.",
        _is_refused_session,
    ),
    Divergence(
        "names and ids",
        "A deletion that gives a topic by its name and by its id, too, is refused by Kafka with "
        "one entry, here with one for each.",
        _is_named_twice,
    ),
    Divergence(
        "unknown operations",
        "An operation on a setting that does not exist is an unknown error (-1) in Kafka, and an "
        "invalid request (42) here.",
        _is_unknown_operation,
    ),
    Divergence(
        "zero ids in metadata",
        "A Metadata that asks for a topic by the zero id fails in Kafka as a whole with an unknown "
        "error (-1); it is an invalid request (42) here.",
        _is_zero_id,
    ),
    Divergence(
        "refused markers",
        "Here a refused WriteTxnMarkers is answered as it was asked, with a topic of which no "
        "partition was named; Kafka leaves that out.",
        _is_refused_marker_of_nothing,
    ),
)
"""All divergences; the first one that explains a difference counts."""
