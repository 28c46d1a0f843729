"""Which ACLs nearly allow what is denied, and that finding them is bounded work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aclbroker.acl import near_misses
from aclbroker.acl.bindings import AclBinding, AclOperation, PatternType
from aclbroker.acl.index import AclIndex
from aclbroker.acl.permissions import Permissions
from tests.acl.examples import ALL, DESCRIBE, GROUP, PREFIXED, READ, TOPIC, WRITE, allow, deny

HOST = "10.0.0.1"


def near(
    *acls: AclBinding,
    operation: AclOperation = READ,
    name: str | None = "orders",
    principals: str = "",
) -> list[AclBinding]:
    """What is near to reading orders from `HOST`; without a name, to reading any topic."""
    peer = (("User:alice", *principals.split()), HOST)
    return [each.acl for each in AclIndex(acls).near_misses(peer, operation, TOPIC, name)]


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


def near_any(*acls: AclBinding) -> list[AclBinding]:
    """What is near to writing any topic from `HOST`."""
    return near(*acls, operation=WRITE, name=None)


@pytest.mark.parametrize(
    "acl",
    [
        allow(operation=WRITE, host="10.0.0.2"),
        allow(operation=WRITE, name="pay.", pattern_type=PREFIXED, host="10.0.0.2"),
        allow(operation=ALL, host="10.0.0.2"),
        allow("User:*", WRITE, host="10.0.0.2"),
        allow(operation=READ),
        allow(operation=DESCRIBE, host="10.0.0.2"),
        deny(operation=WRITE),
        deny(operation=ALL, host=HOST),
    ],
)
def test_where_any_topic_would_do_an_acl_on_each_is_near(acl: AclBinding):
    assert near_any(acl) == [acl]


@pytest.mark.parametrize(
    "acl",
    [
        allow("User:bob", WRITE),
        allow(operation=WRITE, resource_type=GROUP),
        deny(operation=WRITE, host="10.0.0.2"),
        deny(operation=READ),
    ],
)
def test_where_any_topic_would_do_an_acl_of_others_or_a_denial_of_something_else_is_not(
    acl: AclBinding,
):
    assert near_any(acl) == []


def test_where_any_topic_would_do_what_is_taken_away_comes_first_and_then_who_does_it():
    own = allow(operation=WRITE, name="orders.eu")
    taken = deny(operation=WRITE, name="orders.", pattern_type=PREFIXED)
    elsewhere = allow(operation=WRITE, host="10.0.0.2")
    others = [allow(operation=READ), allow(operation=READ, host="10.0.0.2")]
    assert near_any(*others, elsewhere, taken, own) == [own, taken, elsewhere]
    assert near_any(*others, taken, elsewhere) == [elsewhere, taken, others[0]]
    assert near_any(*reversed(others)) == others


def test_an_acl_of_the_operation_is_found_among_many_of_others():
    reads = [allow(name=f"topic-{number}", host="10.0.0.3") for number in range(1000)]
    wanted = allow(operation=WRITE, host="10.0.0.2")
    assert near_any(*reads, wanted)[0] == wanted


def test_where_any_topic_would_do_the_work_does_not_grow_with_the_acls(
    monkeypatch: pytest.MonkeyPatch,
):
    index = AclIndex(
        allow(name=f"topic-{number}", host=f"10.1.{host}.0")
        for number in range(100)
        for host in range(300)
    )
    looked_at = 0
    patterns = near_misses._patterns

    def counting(permissions: Permissions) -> Iterator[tuple[Permissions, PatternType, str, int]]:
        nonlocal looked_at
        for each in patterns(permissions):
            looked_at += 1
            yield each

    monkeypatch.setattr(near_misses, "_patterns", counting)
    assert len(index.near_misses((("User:alice",), HOST), WRITE, TOPIC, None)) == 3
    assert looked_at == 250


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


@pytest.mark.parametrize(
    ("acl", "why"),
    [
        (allow(host="10.0.0.2"), "it is for host 10.0.0.2"),
        (allow(operation=WRITE), "it allows WRITE"),
        (allow(operation=WRITE, host="10.0.0.2"), "it is for host 10.0.0.2 and it allows WRITE"),
    ],
)
def test_what_each_lacks_is_told(acl: AclBinding, why: str):
    [found] = AclIndex([acl]).near_misses(ALICE, READ, TOPIC, "orders")
    assert found.why == why


def test_where_any_topic_would_do_it_is_told_what_takes_back_and_what_is_taken_back():
    acls = [allow(), deny(name="o", pattern_type=PREFIXED), allow(operation=DESCRIBE, host="::2")]
    found = AclIndex(acls).near_misses(ALICE, READ, TOPIC, None)
    assert [each.why for each in found] == [
        "a DENY takes it back",
        "it denies READ",
        "it is for host ::2 and it allows DESCRIBE",
    ]


ALICE = (("User:alice", "Group:staff"), HOST)


def decisive(*acls: AclBinding, name: str = "orders") -> near_misses.Decisive | None:
    return AclIndex(acls).decisive(ALICE, READ, TOPIC, name)


def test_all_denials_of_the_peer_decide_and_whether_anything_allows():
    denials = (deny(), deny("User:*", ALL, "o", pattern_type=PREFIXED), deny("Group:staff"))
    others = (deny("User:bob"), deny(operation=WRITE), deny(host="::2"), deny(name="other"))
    found = decisive(*denials, *others, allow("User:bob"))
    assert found is not None
    assert (set(found.denials), found.is_granted) == (set(denials), False)
    assert decisive(*others, allow(operation=ALL)) == ((), True)


def test_a_denial_that_is_met_twice_is_told_once():
    assert decisive(deny(name="*"), name="*") == ((deny(name="*"),), False)


def test_more_denials_than_are_shown_are_not_told():
    denials = [deny(), deny(operation=ALL), deny("User:*"), deny("Group:staff")]
    assert decisive(*denials[:3]) is not None
    assert decisive(*denials) is None


def test_of_many_patterns_not_all_are_looked_at():
    prefixes = [allow(name="x" * size, pattern_type=PREFIXED) for size in range(1, 256)]
    assert decisive(*prefixes[:240], name="x" * 256) == ((), True)
    assert decisive(*prefixes, name="x" * 256) is None
