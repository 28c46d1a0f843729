"""Whether the partitions of a topic can be made as a client wants them, in Kafka's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.memory.batch import LogError
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.turns import in_turns

MOST_AT_ONCE: Final = 10_000
"""How many partitions one request may make, as in Kafka."""

MOST_PARTITIONS: Final = 50_000
"""How many partitions there may be: each takes memory, also without records."""

_LONGEST_NAME: Final = 249
_DEFAULT: Final = -1


def check_name(name: str, existing: Mapping[str, object]) -> None:
    """Refuse the name of a new topic: one that is invalid, taken, or too much like another.

    Raises `LogError`.
    """
    if (why := why_invalid(name)) is not None:
        raise LogError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
    if name in existing:
        raise LogError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if "." in name or "_" in name:
        alike = name.replace(".", "_")
        for other in in_turns(existing):
            if other.replace(".", "_") == alike:
                raise LogError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topic: {other}",
                )


def why_invalid(name: str) -> str | None:
    """Return why no topic can have a name, None if one can."""
    return None if is_topic_name(name) else f"Topic name is invalid: {_what_is_wrong(name)}"


def _what_is_wrong(name: str) -> str:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > _LONGEST_NAME:
        return f"the length of '{shown_name(name)}' is longer than the max allowed length 249"
    return (
        f"'{shown_name(name)}' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )


def check_count(wanted: int, existing: int) -> None:
    """Refuse to make more partitions than there may be. Raises `LogError`."""
    if wanted > MOST_AT_ONCE:
        raise LogError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    if wanted + existing > MOST_PARTITIONS:
        raise LogError(
            ErrorCode.POLICY_VIOLATION,
            f"There are {existing} partitions, and at most {MOST_PARTITIONS} are kept in memory.",
        )


def creates_itself(
    name: str,
    partitions: int,
    replicas: int,
    nodes: Collection[int],
    topics: Mapping[str, object],
    existing: int,
) -> bool:
    """Tell whether a topic that a Metadata asks for can be created."""
    try:
        check_name(name, topics)
        check_numbers(partitions, replicas, nodes)
        check_count(partitions, existing)
    except LogError:
        return False
    return True


def check_numbers(partitions: int, replicas: int, nodes: Collection[int]) -> None:
    """Refuse numbers of partitions and replicas; -1 stands for the default. Raises `LogError`."""
    if replicas < _DEFAULT or replicas == 0:
        raise LogError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions < _DEFAULT or partitions == 0:
        raise LogError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if replicas > len(nodes):
        raise LogError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor "
            f"of {replicas} cannot be reached because only {len(nodes)} broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        )


def check_unset(partitions: int, replicas: int) -> None:
    """Refuse numbers beside an assignment, which says them already. Raises `LogError`."""
    for what, number in (("replication factor", replicas), ("numPartitions", partitions)):
        if number != _DEFAULT:
            raise LogError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )


def assigned(given: Sequence[tuple[int, Sequence[int]]], nodes: Collection[int]) -> list[list[int]]:
    """Return the nodes of each partition from pairs of its index and its nodes, in any order.

    Raises `LogError` if the indices or the nodes are not those that can be.
    """
    by_index: dict[int, list[int]] = {}
    for index, ids in in_turns(given):
        if index in by_index:
            raise LogError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        by_index[index] = list(ids)
    if set(by_index) != set(range(len(by_index))):
        raise LogError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    found = [by_index[index] for index in in_turns(range(len(by_index)))]
    check_nodes(found, nodes)
    return found


def check_nodes(
    assignments: Sequence[Sequence[int]], nodes: Collection[int], size: int | None = None
) -> None:
    """Refuse assignments to nodes that cannot be; ``size`` is how many each must have, if known.

    Raises `LogError` with INVALID_REPLICA_ASSIGNMENT.
    """
    for ids in in_turns(assignments):
        message = None
        if not ids:
            message = "includes an empty replica list."
        elif unknown := [node for node in ids if node not in nodes]:
            message = f"includes broker {unknown[0]}, but no such broker is registered."
        elif len(set(ids)) < len(ids):
            twice = next(node for node in ids if list(ids).count(node) > 1)
            message = f"includes the broker {twice} more than once."
        elif len(ids) != (size := size or len(ids)):
            message = (
                f"includes a partition with {len(ids)} replica(s), but this is not consistent with "
                f"previous partitions, which have {size} replica(s)."
            )
        if message is not None:
            message = f"The manual partition assignment {message}"
            raise LogError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
