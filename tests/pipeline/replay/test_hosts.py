"""Hosts of one class are one to every ACL."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Action, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.hosts import canonical
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.replay.hosts import Hosts

ACL_HOSTS = (
    *("*", "10.0.0.1", "10.0.0.2", "::ffff:10.0.0.3", "::1", "0:0:0:0:0:0:0:1", "FE80::1"),
    *("fe80::1%eth0", "fe80::2%eth1"),
    *("10.0.0.0/8", "10.0.0.9/30", "10.0.0.0/30", "10.0.0.1/32", "0.0.0.0/0", "::/0", "fe80::/10"),
    *("::ffff:10.0.0.0/120", "fe80::1/128", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "a host", ""),
)
EVENT_HOSTS = [
    canonical(host)
    for host in (
        *("10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.9", "10.0.1.1"),
        *("11.0.0.1", "::ffff:10.0.0.2", "::ffff:12.0.0.1", "::1", "::2", "fe80::1", "fe80::2"),
        *(
            "fe80::1%eth0",
            "fe80::1%eth1",
            "fe80::2%eth1",
            "2001:db8::1",
            "a host",
            "another host",
            "10.0.0.0/33",
        ),
    )
]

NOWHERE = "nowhere at all"


def ruleset(hosts: list[str], cidr: bool) -> Ruleset:
    """Rules of which each ACL is seen: it allows what no other does."""
    acls = (
        AclBinding(
            ResourceType.TOPIC,
            f"t{number}",
            PatternType.LITERAL,
            "User:a",
            host,
            AclOperation.READ,
            AclPermission.ALLOW,
        )
        for number, host in enumerate(hosts)
    )
    return Ruleset(ordered(acls), cidr=cidr)


def allowed(rules: Ruleset, host: str) -> list[str]:
    """The topics that the authorizer lets a host read."""
    authorizer, session = rules.authorizer(), Session(("User:a",), host, "")
    names = [acl.resource_name for acl in rules.acls]
    actions = [(name, Action(AclOperation.READ, ResourceType.TOPIC, name)) for name in names]
    return [name for name, action in actions if authorizer.decide(session, action)]


_rules = st.builds(ruleset, st.lists(st.sampled_from(ACL_HOSTS), max_size=6), st.booleans())


@given(st.lists(_rules, max_size=3))
def test_hosts_of_a_class_are_decided_the_same(rules: list[Ruleset]) -> None:
    hosts = Hosts(rules)
    decided = defaultdict(set)
    for host in EVENT_HOSTS:
        decisions = repr([allowed(each, host) for each in rules])
        decided[hosts.class_of(host)].add(decisions)
    assert {each: len(found) for each, found in decided.items()} == dict.fromkeys(decided, 1)
    nowhere = repr([allowed(each, NOWHERE) for each in rules])
    assert decided.get(None, {nowhere}) == {nowhere}


@given(st.lists(_rules, max_size=3))
def test_a_host_has_a_class_if_an_acl_matches_it_and_not_all(rules: list[Ruleset]) -> None:
    hosts = Hosts(rules)
    of_all = [allowed(each, NOWHERE) for each in rules]
    for host in EVENT_HOSTS:
        is_special = [allowed(each, host) for each in rules] != of_all
        assert (hosts.class_of(host) is not None) is is_special


@given(st.lists(_rules, max_size=3), st.sampled_from(EVENT_HOSTS))
def test_without_subnets_the_named_hosts_are_the_classes(rules: list[Ruleset], host: str) -> None:
    hosts = Hosts(rules)
    if not hosts.has_subnets:
        assert hosts.class_of(host) == (host if host in hosts.named else None)


def test_many_ephemeral_hosts_are_few_classes() -> None:
    hosts = Hosts([ruleset(["10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "*"], cidr=True)])
    found = {hosts.class_of(f"10.{a}.{b}.{c}") for a in (1, 2) for b in (1, 2) for c in range(9)}
    assert found == {None, "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3"}
