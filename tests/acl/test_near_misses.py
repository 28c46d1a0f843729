"""Which ACLs nearly allow what is denied, and that finding them is bounded work."""

from __future__ import annotations

import pytest

from aclbroker.broker.acl.bindings import AclBinding, AclOperation
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.acl.permissions import Permissions
from tests.acl.examples import ALL, DESCRIBE, GROUP, PREFIXED, READ, TOPIC, WRITE, allow, deny

HOST = "10.0.0.1"


def near(
    *acls: AclBinding, operation: AclOperation = READ, name: str = "orders", principals: str = ""
) -> list[AclBinding]:
    """What is near to reading orders from `HOST`."""
    peer = (("User:alice", *principals.split()), HOST)
    return AclIndex(acls).near_misses(peer, operation, TOPIC, name)


@pytest.mark.parametrize(
    "acl",
    [
        allow(host="10.0.0.2"),
        allow(operation=WRITE),
        allow(operation=WRITE, host=HOST),
        allow(operation=DESCRIBE, host="10.0.0.2"),
        allow(name="ord", pattern_type=PREFIXED, host="10.0.0.2"),
        allow(name="*", operation=WRITE),
        allow("User:*", host="10.0.0.2"),
        allow("Group:admins", host="10.0.0.2"),
        allow(operation=ALL, host="10.0.0.2"),
    ],
)
def test_an_acl_with_another_host_or_operation_is_near(acl: AclBinding):
    assert near(acl, principals="Group:admins") == [acl]


@pytest.mark.parametrize(
    "acl",
    [
        deny(host="10.0.0.2"),
        allow("User:bob"),
        allow(name="orders.eu", host="10.0.0.2"),
        allow(name="orders.", pattern_type=PREFIXED, host="10.0.0.2"),
        allow(name="other", pattern_type=PREFIXED, host="10.0.0.2"),
        allow(resource_type=GROUP, host="10.0.0.2"),
    ],
)
def test_an_acl_of_others_or_of_another_resource_is_not(acl: AclBinding):
    assert near(acl) == []


def test_the_nearest_come_first_and_no_more_than_three():
    elsewhere = allow(host="10.0.0.2")
    other = allow(operation=WRITE)
    both = [allow(operation=each, host="10.0.0.3") for each in (WRITE, DESCRIBE)]
    assert near(*both, other, elsewhere)[:2] == [elsewhere, other]
    assert len(near(*both, other, elsewhere)) == 3


def test_an_operation_that_implies_the_one_denied_grants_it():
    implied = allow(operation=READ, host="10.0.0.2")
    other = allow(operation=AclOperation.CREATE)
    assert near(other, implied, operation=DESCRIBE) == [implied, other]


def test_the_work_does_not_grow_with_the_acls(monkeypatch: pytest.MonkeyPatch):
    index = AclIndex(
        allow(name="x" * size, pattern_type=PREFIXED, host=f"10.1.0.{host}", operation=WRITE)
        for size in range(1, 200)
        for host in range(20)
    )
    asked = 0
    of_type = Permissions.of_type

    def counting(permissions: Permissions, *pattern: object) -> dict[str, int]:
        nonlocal asked
        asked += 1
        return of_type(permissions, *pattern)  # type: ignore[arg-type]

    monkeypatch.setattr(Permissions, "of_type", counting)
    peer = (("User:alice",), HOST)
    assert len(index.near_misses(peer, READ, TOPIC, "x" * 256)) == 3
    assert asked < 100  # as soon as enough are found
    asked = 0
    assert index.near_misses(peer, READ, TOPIC, "y" * 256) == []
    assert asked == 250
