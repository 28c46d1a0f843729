"""Covered ACLs and contradictions: planted ones are found, and random ones are what they are."""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from aclbroker.broker.acl.authorizer import Action, Session
from aclbroker.broker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.coverage import Contradiction, Covered, contradictions, covered
from aclbroker.pipeline.analysis.scope import kafka_overlooks
from tests.acl.examples import (
    ALL,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)

NAMES = ["a", "ab", "abc", "abd", "b", "*"]
PRINCIPALS = ["User:alice", "User:bob", "Group:staff"]
PEERS = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "::1", "fe80::2", "socket"]
HOSTS = [
    "*", "*", "*", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1/32", "10.0.0.0/24", "10.0.0.9/24",
    "10.0.0.0/8", "0.0.0.0/0", "::1", "0:0:0:0:0:0:0:1", "0::1", "::1/128", "::/0", "socket", "1/2",
]  # fmt: skip
OPERATIONS = [ALL, READ, WRITE, CREATE, DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS]
QUESTIONS = [
    (Session((*principals,), peer, ""), Action(operation, kind, name))
    for principals in (["User:alice"], ["User:bob"], ["User:bob", "Group:staff"], ["User:carol"])
    for peer, operation, kind in product(PEERS, OPERATIONS, (TOPIC, GROUP))
    for name in ("a", "ab", "abcd", "abd", "*", "other")
]


def random_acls(random: Random, size: int, hosts: Sequence[str] = HOSTS) -> tuple[AclBinding, ...]:
    # Few words, so that many meet; a session is never User:* itself, but ACLs are.
    return ordered(
        AclBinding(
            random.choice((TOPIC, TOPIC, GROUP)),
            random.choice(NAMES),
            random.choice((PatternType.LITERAL, PREFIXED)),
            random.choice((*PRINCIPALS, "User:*")),
            random.choice(hosts),
            random.choice(OPERATIONS),
            random.choice((AclPermission.ALLOW, AclPermission.DENY)),
        )
        for _ in range(size)
    )


def decisions(rules: Ruleset) -> list[bool]:
    core = rules.authorizer()
    return [core.decide(session, action).allowed for session, action in QUESTIONS]


@pytest.mark.parametrize("cidr", [False, True], ids=["addresses", "subnets"])
@pytest.mark.parametrize("default", [False, True], ids=["closed", "open"])
def test_without_the_covered_acls_every_decision_is_the_same(cidr: bool, default: bool) -> None:
    random = Random(f"{cidr} {default}")
    removed = 0
    for _ in range(25):
        rules = Ruleset(
            random_acls(random, random.choice((5, 20, 60))),
            super_users=frozenset(["Group:staff"] if random.random() < 0.2 else []),
            allow_everyone_if_no_acl_found=default,
            cidr=cidr,
        )
        found = covered(rules)
        gone = {each.acl for each in found}
        assert not gone & {each.by for each in found}
        smaller = rules.with_acls(set(rules.acls) - gone)
        assert decisions(smaller) == decisions(rules)
        assert covered(smaller) == []
        assert writers_anywhere(smaller) == writers_anywhere(rules)
        removed += len(gone)
    assert removed > 40


def writers_anywhere(rules: Ruleset) -> list[bool]:
    """Who may WRITE on any topic (KIP-679), which producers are asked for."""
    core = rules.authorizer()
    return [
        core.authorize_by_resource_type(Session((who,), peer, ""), WRITE, TOPIC).allowed
        for who, peer in product(PRINCIPALS, PEERS)
    ]


@pytest.mark.parametrize(
    ("acl", "by"),
    [
        (allow(name="orders"), allow(name="*")),
        (allow(name="orders"), allow(name="ord", pattern_type=PREFIXED)),
        (allow(name="orders"), allow(name="orders", pattern_type=PREFIXED)),
        (allow(name="ord", pattern_type=PREFIXED), allow(name="o", pattern_type=PREFIXED)),
        (allow(name="ord", pattern_type=PREFIXED), allow(name="*")),
        (allow("User:alice"), allow("User:*")),
        (allow("Group:staff"), allow("User:*")),
        (allow(host="10.0.0.1"), allow()),
        (allow(host="no address"), allow()),
        (allow(operation=READ), allow(operation=ALL)),
        (allow(operation=DESCRIBE), allow(operation=READ)),
        (allow(operation=DESCRIBE_CONFIGS), allow(operation=ALTER_CONFIGS)),
        (deny(operation=READ), deny(operation=ALL)),
        (deny(name="orders"), deny(name="o", pattern_type=PREFIXED)),
        (
            allow("User:alice", DESCRIBE, "orders", host="10.0.0.1"),
            allow("User:*", WRITE, "o", pattern_type=PREFIXED),
        ),
    ],
)
def test_an_acl_within_another_is_covered(acl: AclBinding, by: AclBinding) -> None:
    rules = Ruleset(ordered([acl, by]))
    assert covered(rules) == [Covered(acl, by, same=False)]


@pytest.mark.parametrize(
    "acls",
    [
        [allow(name="*"), allow(name="*", pattern_type=PREFIXED)],  # the latter is within
        [allow(name="*", pattern_type=PREFIXED), allow(name="*")],
    ],
)
def test_only_a_literal_star_is_everything(acls: list[AclBinding]) -> None:
    (found,) = covered(Ruleset(ordered(acls)))
    assert found.by == allow(name="*")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (allow(), deny(operation=ALL, name="*")),
        (deny(operation=DESCRIBE), deny(operation=READ)),
        (allow(operation=CREATE), allow(operation=WRITE)),
        (allow(), allow(resource_type=GROUP, name="*")),
        (allow(name="orders"), allow(name="order")),
        (allow(name="orders"), allow(name="order*")),
        (allow(name="orders"), allow(name="*", pattern_type=PREFIXED)),
        (allow(host="10.0.0.1"), allow(host="10.0.0.0/24")),
        (allow(host="0.0.0.0/0"), allow(host="::/0")),
        (allow("Group:staff"), allow("Group:*")),
    ],
)
def test_acls_that_differ_in_what_they_hold_for_cover_nothing(
    one: AclBinding, other: AclBinding
) -> None:
    assert covered(Ruleset(ordered([one, other]))) == []


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("10.0.0.1", "10.0.0.0/24"),
        ("10.0.0.0/24", "10.0.0.0/8"),
        ("10.0.0.0/24", "0.0.0.0/0"),
        ("fe80::1", "fe80::/10"),
        ("::ffff:10.0.0.1", "10.0.0.0/24"),
        ("0.0.0.0/0", "*"),
    ],
)
def test_addresses_and_subnets_lie_in_subnets(inner: str, outer: str) -> None:
    rules = Ruleset(ordered([allow(host=inner), allow(host=outer)]), cidr=True)
    assert covered(rules) == [Covered(allow(host=inner), allow(host=outer), same=False)]


@pytest.mark.parametrize(
    ("kept", "duplicate", "cidr"),
    [
        ("::1", "0:0:0:0:0:0:0:1", True),
        ("10.0.0.1", "10.0.0.1/32", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.0/24", "10.0.0.77/24", True),
        ("::1", "0::1", False),
    ],
)
def test_of_two_that_mean_the_same_one_is_kept(kept: str, duplicate: str, cidr: bool) -> None:
    rules = Ruleset(ordered([allow(host=kept), allow(host=duplicate)]), cidr=cidr)
    assert covered(rules) == [Covered(allow(host=duplicate), allow(host=kept), same=True)]


def test_an_address_that_kafka_matches_is_not_covered_by_one_that_it_overlooks() -> None:
    matched, overlooked = "0:0:0:0:0:0:0:1", "::1"
    rules = Ruleset(ordered([allow(host=matched), allow(operation=ALL, host=overlooked)]))
    assert covered(rules) == []
    rules = Ruleset(ordered([allow(operation=ALL, host=matched), allow(host=overlooked)]))
    assert [each.acl.host for each in covered(rules)] == [overlooked]


@pytest.mark.parametrize(
    ("host", "overlooked"),
    [
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
    ],
)
def test_kafka_knows_addresses_as_java_prints_them(host: str, overlooked: bool) -> None:
    assert kafka_overlooks(host) == overlooked


@pytest.mark.parametrize("cidr", [False, True], ids=["addresses", "subnets"])
def test_contradictions_are_all_and_only_the_allows_that_meet_a_deny(cidr: bool) -> None:
    random = Random(str(cidr))
    # Without subnets, one in CIDR notation is a text that no peer's address is.
    hosts = [host for host in HOSTS if cidr or "/" not in host]
    entire = partial = 0
    for _ in range(20):
        rules = Ruleset(random_acls(random, random.choice((4, 12, 25)), hosts), cidr=cidr)
        found = {each.allow: each for each in contradictions(rules)}
        for acl in rules.acls:
            if acl.permission is AclPermission.ALLOW:
                partly, wholly = met(rules, acl)
                each = found.get(acl)
                assert (each is not None) == partly
                if each is not None and each.entire:
                    entire += 1
                    assert wholly
                    assert met(Ruleset((acl, *each.denies), cidr=cidr), acl) == (True, True)
                elif each is not None:
                    partial += 1
                    assert met(Ruleset((acl, *each.denies), cidr=cidr), acl)[0]
    assert entire > 3
    assert partial > 10


def met(rules: Ruleset, acl: AclBinding) -> tuple[bool, bool]:
    """Whether some, and whether all, of what an ALLOW allows a single principal is denied."""
    denies = [each for each in rules.acls if each.permission is AclPermission.DENY]
    alone = rules.with_acls([acl]).authorizer()
    together = rules.with_acls([acl, *denies]).authorizer()
    denied = [
        not together.decide(session, action)
        for session, action in QUESTIONS_OF_ONE
        if alone.decide(session, action)
    ]
    return any(denied), all(denied)


QUESTIONS_OF_ONE = [
    (Session((principal,), peer, ""), Action(operation, kind, name))
    for principal in (*PRINCIPALS, "User:carol")
    for peer in (*PEERS, "192.0.2.1", "1/2")
    for operation, kind in product(OPERATIONS, (TOPIC, GROUP))
    for name in ("a", "ax", "ab", "abx", "abc", "abcx", "abd", "abdx", "b", "bx", "*", "*x", "x")
]


@pytest.mark.parametrize(
    ("allowed", "denied"),
    [
        (allow(), [deny(operation=ALL)]),
        (allow(), [deny("User:*", ALL, "o", pattern_type=PREFIXED)]),
        (allow(), [deny(operation=DESCRIBE), deny(operation=READ)]),
        (allow(operation=CREATE), [deny(operation=CREATE)]),
        (allow(host="10.0.0.1"), [deny(operation=ALL)]),
    ],
)
def test_an_allow_that_never_decides_is_told_with_the_denies(
    allowed: AclBinding, denied: list[AclBinding]
) -> None:
    found = contradictions(Ruleset(ordered([allowed, *denied])))
    assert [(each.allow, set(each.denies), each.entire) for each in found] == [
        (allowed, set(denied), True)
    ]


@pytest.mark.parametrize(
    ("allowed", "denied"),
    [
        (allow(), deny()),  # DESCRIBE, which READ implies, is still allowed
        (allow("User:*"), deny("User:bob", ALL)),
        (allow(name="*"), deny(operation=ALL)),
        (allow("User:*", name="orders"), deny("User:bob", ALL, "o", pattern_type=PREFIXED)),
        (allow(), deny(operation=ALL, host="10.0.0.1")),
        (allow(operation=ALL), deny(operation=WRITE)),
    ],
)
def test_an_allow_of_which_a_part_is_denied_is_told_as_such(
    allowed: AclBinding, denied: AclBinding
) -> None:
    rules = Ruleset(ordered([allowed, denied]))
    assert contradictions(rules) == [Contradiction(allowed, (denied,), entire=False)]


def test_what_does_not_meet_contradicts_nothing() -> None:
    rules = Ruleset(
        ordered(
            [
                allow("User:alice", READ, "orders", host="10.0.0.1"),
                deny("User:bob", ALL, "orders"),
                deny("User:alice", WRITE, "orders"),
                deny("User:alice", ALL, "order"),
                deny("User:alice", ALL, "orders", resource_type=GROUP),
                deny("User:alice", ALL, "orders", host="10.0.0.2"),
                allow("User:x", ALL, CLUSTER_NAME, resource_type=CLUSTER),
            ]
        )
    )
    assert contradictions(rules) == []


def test_the_types_of_resources_are_apart() -> None:
    acls = [allow(resource_type=kind, name="*") for kind in (TOPIC, GROUP, ResourceType.USER)]
    assert covered(Ruleset(ordered(acls))) == []
