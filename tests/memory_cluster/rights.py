"""Rights that a program needs, all of them, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from aclbroker.testing import AclBroker


class Right(NamedTuple):
    """An operation on a resource: `topic`, `group`, `transactional_id` or `cluster`."""

    kind: str
    name: str
    operation: str


ALTER_CLUSTER = Right("cluster", "kafka-cluster", "ALTER")
CLUSTER_ACTION = Right("cluster", "kafka-cluster", "CLUSTER_ACTION")


def rights(kind: str, name: str, *operations: str) -> list[Right]:
    """Return operations on one resource."""
    return [Right(kind, name, each) for each in operations]


def grant(broker: AclBroker, user: str, given: Iterable[Right]) -> None:
    """Allow a user all of them."""
    for each in given:
        resource: dict[str, Any] = {each.kind: each.name if each.kind != "cluster" else True}
        broker.grant(user, each.operation, **resource)


def was_enough(broker: AclBroker, given: Iterable[Right]) -> None:
    """Assert that nothing was denied, and that every right was made use of."""
    assert [str(each) for each in broker.denials()] == []
    used = {
        Right(each.resource_type.name.lower(), each.name or "", each.operation.name)
        for each in broker.used()
    }
    assert [each for each in given if each not in used] == []
