"""The differences from Kafka 4.3.0 that are wanted: each by name, in one table, and no wider.

The names d1 to d4 are those of docs/ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from aclbroker.protocol.messages import APIS
from tests.conformance.comparison import Exchange, Moment, Record
from tests.conformance.player import CLOSED
from tests.conformance.requests import (
    ANY,
    API_VERSIONS,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    MATCH,
    UNKNOWN,
)

INVALID_REQUEST, UNSUPPORTED_VERSION = 42, 35
TEXT = "a text"
"""Stands for every error message that is not empty."""


class Divergence(NamedTuple):
    """A difference that is wanted."""

    name: str
    reason: str
    allows: Callable[[Exchange, Record], bool]
    """Says whether it explains that the answers differ; given all of Kafka's answers, too."""


def reworded(answer: Any) -> Any:
    """Return an answer with every error message that is not empty replaced by `TEXT`."""
    if isinstance(answer, dict):
        return {
            name: TEXT if name == "error_message" and value else reworded(value)
            for name, value in answer.items()
        }
    return [reworded(entry) for entry in answer] if isinstance(answer, list) else answer


def _without_pattern_types(answer: Any) -> Any:
    if isinstance(answer, dict):
        kept = {name: value for name, value in answer.items() if name != "pattern_type"}
        return {name: _without_pattern_types(value) for name, value in kept.items()}
    return (
        [_without_pattern_types(entry) for entry in answer] if isinstance(answer, list) else answer
    )


LAST = {"resource_type": 7, "pattern_type": 4, "operation": 15, "permission_type": 3}
"""The last code of each field of a filter."""

CODES = ("type", "operation")
"""What the names of the fields that carry an enum's byte contain."""


def _codes(entry: dict[str, Any]) -> list[int]:
    return [value for name, value in entry.items() if any(code in name for code in CODES)]


def _is_any(creation: dict[str, Any]) -> bool:
    return ANY in _codes(creation) or creation["resource_pattern_type"] == MATCH


def _created(code: int) -> dict[str, Any]:
    return {"error_code": code, "error_message": TEXT if code else ""}


def _any_in_a_creation(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != CREATE_ACLS or exchange.request.raw is not None:
        return False
    creations = exchange.request.fields["creations"]
    failed = {"error_code": -1, "error_message": None}
    ours = [_created(INVALID_REQUEST if _is_any(creation) else 0) for creation in creations]
    return (
        any(map(_is_any, creations))
        and exchange.kafka == {"results": [failed] * len(creations)}
        and reworded(exchange.ours) == {"results": ours}
    )


def _unknown_in_a_creation(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != CREATE_ACLS or exchange.request.raw is not None:
        return False
    unknown = [UNKNOWN in _codes(creation) for creation in exchange.request.fields["creations"]]
    ours = [_created(INVALID_REQUEST if each else 0) for each in unknown]
    return (
        any(unknown) and exchange.kafka == CLOSED and reworded(exchange.ours) == {"results": ours}
    )


def _refused(answer: Any) -> bool:
    """Say whether a description or a filter's result is refused, for a code it does not know."""
    if answer == CLOSED:
        return False
    empty = not answer.get("resources") and not answer.get("matching_acls")
    return answer["error_code"] == UNSUPPORTED_VERSION and bool(answer["error_message"]) and empty


def _unknown_in_a_description(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != DESCRIBE_ACLS or exchange.request.raw is not None:
        return False
    unknown = UNKNOWN in _codes(exchange.request.fields)
    return unknown and exchange.kafka == CLOSED and _refused(exchange.ours)


def _unknown_in_a_deletion(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != DELETE_ACLS or exchange.request.raw is not None:
        return False
    unknown = [UNKNOWN in _codes(each) for each in exchange.request.fields["filters"]]
    if not any(unknown) or exchange.kafka != CLOSED or exchange.ours == CLOSED:
        return False
    results = exchange.ours["filter_results"]
    return unknown == list(map(_refused, results)) and all(
        refused or (result["error_code"] == 0 and result["matching_acls"])
        for refused, result in zip(unknown, results, strict=True)
    )


def _known(entry: dict[str, Any]) -> bool:
    """Say whether each code of a filter stands for something."""
    return all(
        0 <= value <= last
        for code, last in LAST.items()
        for name, value in entry.items()
        if name.startswith(code)
    )


def _beyond_in_a_description(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != DESCRIBE_ACLS or exchange.request.raw is not None:
        return False
    nothing: dict[str, Any] = {"error_code": 0, "error_message": "", "resources": []}
    odd = not _known(exchange.request.fields)
    return odd and exchange.kafka == nothing and _refused(exchange.ours)


def _beyond_in_a_deletion(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != DELETE_ACLS or exchange.kafka == CLOSED:
        return False
    filters, results = exchange.request.fields["filters"], exchange.kafka["filter_results"]
    expected = [
        result if _known(each) else result | {"error_code": UNSUPPORTED_VERSION}
        for each, result in zip(filters, results, strict=True)
    ]
    odd = not all(map(_known, filters))
    return odd and reworded({"filter_results": expected}) == reworded(exchange.ours)


def _version_zero(exchange: Exchange, record: Record) -> bool:
    """Kafka's answer to the same request at version 1, which is the next step, is expected."""
    moment = exchange.moment
    if exchange.version or exchange.kafka != CLOSED or not moment.scenario.startswith("version 0"):
        return False
    expected = record[moment._replace(step=moment.step + 1)]
    return bool(reworded(_without_pattern_types(expected)) == reworded(exchange.ours))


def _deleted_by_version_zero(exchange: Exchange, record: Record) -> bool:
    """What Kafka deletes at version 1 was deleted here by the step before, at version 0."""
    if exchange.moment != Moment("version 0 delete", 0, 2) or exchange.version != 1:
        return False
    nothing: dict[str, Any] = {"error_code": 0, "error_message": None, "matching_acls": []}
    found = [result["matching_acls"] for result in exchange.kafka["filter_results"]]
    return all(found) and exchange.ours == {"filter_results": [nothing] * len(found)}


def _advertised(exchange: Exchange, record: Record) -> bool:
    if exchange.request.key != API_VERSIONS or CLOSED in (exchange.kafka, exchange.ours):
        return False
    oldest = {key: api.versions[0] for key, api in APIS.items()}
    keys = [row | {"min_version": oldest[row["api_key"]]} for row in exchange.kafka["api_keys"]]
    return bool(exchange.ours == exchange.kafka | {"api_keys": keys})


def _address_as_address(exchange: Exchange, record: Record) -> bool:
    """Kafka's answers where the host is written as Java writes it are expected."""
    moment = exchange.moment
    if moment.scenario != "alice with alter from this host in IPv6":
        return False
    expected = record[moment._replace(scenario="alice with alter from this host")]
    return bool(reworded(expected) == reworded(exchange.ours))


def _no_text(exchange: Exchange, record: Record) -> bool:
    named = exchange.moment.scenario == "a name that is no UTF-8"
    nothing: dict[str, Any] = {"error_code": 0, "error_message": "", "resources": []}
    return named and exchange.kafka == nothing and exchange.ours == CLOSED


def _wording(exchange: Exchange, record: Record) -> bool:
    return bool(reworded(exchange.kafka) == reworded(exchange.ours))


DIVERGENCES = (
    Divergence(
        "d1 independent creations",
        "ANY in one creation makes Kafka fail all with -1; here that one gets 42 (KIP-140)",
        _any_in_a_creation,
    ),
    Divergence(
        "d2 unknown codes: creation",
        "Kafka hangs up at the byte 0; here that creation gets 42 (KIP-140)",
        _unknown_in_a_creation,
    ),
    Divergence(
        "d2 unknown codes: description",
        "Kafka hangs up at the byte 0; here the filter gets 35 (KIP-140)",
        _unknown_in_a_description,
    ),
    Divergence(
        "d2 unknown codes: deletion",
        "Kafka hangs up at the byte 0; here that filter gets 35, the others apply (KIP-140)",
        _unknown_in_a_deletion,
    ),
    Divergence(
        "d2 unknown codes: description, beyond the last",
        "Kafka finds nothing; here the filter gets 35, as for the byte 0",
        _beyond_in_a_description,
    ),
    Divergence(
        "d2 unknown codes: deletion, beyond the last",
        "Kafka answers 42 for that filter; here it gets 35, as for the byte 0",
        _beyond_in_a_deletion,
    ),
    Divergence(
        "d3 old versions",
        "Kafka 4 hangs up at version 0; here it is answered like version 1, literal patterns only",
        _version_zero,
    ),
    Divergence(
        "d3 old versions: deleted",
        "so there is nothing left to delete for the version 1 behind it",
        _deleted_by_version_zero,
    ),
    Divergence(
        "d3 old versions: advertised",
        "Kafka 4 dropped the first versions of many keys; here they are answered as in Kafka 3.9",
        _advertised,
    ),
    Divergence(
        "d4 mapped addresses",
        "Kafka compares hosts as text; here ::ffff:a.b.c.d is a.b.c.d",
        _address_as_address,
    ),
    Divergence(
        "bytes that are no text",
        "Kafka replaces bytes that are no UTF-8 in a string; here they end the connection",
        _no_text,
    ),
    Divergence(
        "wording",
        "where Kafka's answer says why it refuses, so does ours, in other words",
        _wording,
    ),
)
"""All differences that are wanted. The first that allows an exchange explains it."""


def explanation(exchange: Exchange, record: Record) -> Divergence | None:
    """Return the divergence that allows the answers to differ, or None."""
    return next((each for each in DIVERGENCES if each.allows(exchange, record)), None)
