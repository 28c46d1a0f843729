"""What is removed opens nothing: for every request near the ACLs, however hosts are read."""

from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.proof import is_overlooked, removed
from tests.acl.examples import ALL, GROUP, PREFIXED, READ, WRITE, allow, deny
from tests.pipeline.random_acls import few_hosts, random_acls
from tests.pipeline.universe import Universe, on_kafka, with_subnets
from tests.support.tables import check_each

WITHOUT_SUBNETS = pytest.param(False, id="addresses", marks=pytest.mark.thorough)
CIDR = pytest.mark.parametrize("cidr", [WITHOUT_SUBNETS, pytest.param(True, id="subnets")])
CLOSED_OR_OPEN = pytest.mark.parametrize("default", [False, True], ids=["closed", "open"])


def opens_nothing(before: Ruleset, after: Ruleset) -> None:
    universe = Universe(before.acls)
    for read in (with_subnets, on_kafka, lambda rules: rules):
        assert universe.allowed(read(after)) <= universe.allowed(read(before))


@CLOSED_OR_OPEN
@CIDR
def test_whatever_is_to_go_what_goes_opens_nothing(default: bool, cidr: bool) -> None:
    random = Random(f"{default} {cidr}")
    put_back = gone = 0
    for _ in range(30):
        rules = Ruleset(
            random_acls(random, random.choice((3, 8, 20)), few_hosts(random)),
            frozenset(["User:bob"] if random.random() < 0.2 else []),
            allow_everyone_if_no_acl_found=default,
            cidr=cidr,
        )
        going = {
            acl
            for acl in rules.acls
            if random.random() < (0.8 if acl.permission is AclPermission.DENY else 0.3)
        }
        found = removed(rules, going)
        assert set(found.remaining.acls) == set(rules.acls) - (going - found.put_back)
        opens_nothing(rules, found.remaining)
        universe = Universe(rules.acls)
        lost = universe.allowed(rules) - universe.allowed(found.remaining)
        assert bool(lost) == bool(found.changed.closed)
        assert not found.changed.opened
        put_back += len(found.put_back)
        gone += len(going - found.put_back)
    assert put_back > 10
    assert gone > 60


def put_back(acls: list[AclBinding], *going: AclBinding, default: bool = False) -> set[AclBinding]:
    rules = Ruleset(ordered(acls), allow_everyone_if_no_acl_found=default)
    return removed(rules, going).put_back


def test_a_deny_that_takes_back_what_is_allowed_is_put_back_and_no_other() -> None:
    wide, denied = allow(operation=ALL, name="*"), deny(operation=ALL, name="hr.")
    idle = deny("User:bob")
    assert put_back([wide, denied, idle], denied, idle) == {denied}
    assert put_back([wide, denied, idle], wide, denied, idle) == set()


def test_every_deny_of_principals_hosts_and_operations_that_open_together_is_put_back() -> None:
    anybody = allow("User:*", ALL)
    denies = [
        deny(user, operation, host=host)
        for user in ("User:a", "User:b")
        for operation in (READ, WRITE)
        for host in ("10.0.0.1", "10.0.0.2")
    ]
    assert put_back([anybody, *denies], *denies) == set(denies)


def test_the_last_acl_of_a_pattern_is_put_back_where_that_would_be_open() -> None:
    read, write, other = allow(), allow(operation=WRITE), allow(name="g", resource_type=GROUP)
    assert put_back([read, write, other], read, write, other, default=True) == {read, other}
    denied = deny(operation=ALL)
    assert put_back([read, denied], read, denied, default=True) == {denied}
    inner = allow(name="orders")
    outer = allow("User:bob", name="ord", pattern_type=PREFIXED)
    assert put_back([inner, outer], inner, default=True) == set()


def test_what_is_nobodys_address_to_kafka_protects_nothing_there() -> None:
    anybody = allow("User:*")
    kafkas, ours = deny(host="0:0:0:0:0:0:0:1"), deny(host="::1")
    assert put_back([anybody, kafkas, ours], kafkas) == {kafkas}
    assert put_back([anybody, kafkas, ours], ours) == set()


def test_a_deny_on_a_subnet_protects_it_though_subnets_are_not_switched_on() -> None:
    anybody, inner, denied = allow("User:*"), allow("User:*", WRITE), deny(host="10.0.0.0/8")
    assert put_back([anybody, inner, denied], denied) == {denied}
    assert put_back([inner, denied], denied) == set()


ADDRESSES = [
    ("*", False),
    ("10.0.0.1", False),
    ("0:0:0:0:0:0:0:1", False),
    ("fe80:0:0:0:0:0:0:1%eth0", False),
    ("a name", False),
    ("10.0.0.0/8", False),
    ("::1", True),
    ("FE80:0:0:0:0:0:0:1", True),
    ("0:0:0:0:0:0:0:01", True),
    ("::ffff:10.0.0.1", True),
]


def test_kafka_knows_addresses_as_java_prints_them() -> None:
    def check(case: tuple[str, bool]) -> None:
        host, overlooked = case
        assert is_overlooked(host) == overlooked

    check_each(ADDRESSES, check)
