"""Random rules, from so few words that their ACLs often meet, and requests at their edges."""

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from aclbroker.acl.authorizer import Action
from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules, operations_of
from tests import model

TYPES = [ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER]
NAMES = ["a", "ab", "abc", "abcd", "ac", "b", "ba", "*", "*", "é", "Z"]
PRINCIPALS = ["User:alice", "User:bob", "User:carol", "User:*", "User:*", "Group:staff"]
SUBJECTS = [*sorted(set(PRINCIPALS)), "User:nobody", "User:dave"]
HOSTS = [
    *["*"] * 6,
    "10.0.0.1", "10.0.0.7", "::ffff:10.0.0.1", "10.0.0.0/24", "10.0.0.1/32", "10.0.0.0/8",
    "0.0.0.0/0", "::/0", "fe80::1", "fe80:0::1%eth0", "fe80::/64",
    "2001:db8::1", "not-an-address", "10.0.0.1 ", "1/2", "",
]  # fmt: skip
PEERS = [
    "10.0.0.1", "10.0.0.2", "10.0.0.7", "10.1.0.0", "11.0.0.0", "255.255.255.255", "::1",
    "::ffff:10.0.0.7", "fe80::1", "fe80::1%eth0", "fe80::1%eth1", "fe80::2", "2001:db8::1",
]  # fmt: skip
OPERATIONS = [
    AclOperation.ALL, AclOperation.READ, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE,
    AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
]  # fmt: skip
ASKED_NAMES = ["", "a", "aa", "ab", "abc", "abcd", "abcde", "ac", "b", "ba", "bé", "*", "**", "Z"]
MORE = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
"""How many times as many random sets there are at night."""

SUPER_USERS = [(), (), ("User:bob",), ("User:dave", "Group:staff"), ("User:*",)]


def random_acl(random: Random) -> AclBinding:
    kind = random.choice(TYPES)
    return AclBinding(
        kind,
        CLUSTER_NAME if kind is ResourceType.CLUSTER else random.choice(NAMES),
        random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        random.choice(PRINCIPALS),
        random.choice(HOSTS),
        random.choice(OPERATIONS),
        random.choice((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
    )


def random_rules(random: Random, like: Rules | None = None) -> Rules:
    """Random rules, or those of ``like`` after some changes."""
    acls = [random_acl(random) for _ in range(random.choice((0, 1, 3, 6, 12, 25)))]
    if like is not None:
        kept = [acl for acl in like.acls if random.random() < 0.8]
        acls = [*kept, *acls[: random.choice((0, 1, 3))]]
    is_fresh = like is None or random.random() < 0.3
    if not is_fresh:
        assert like is not None
        return Rules(
            sorted(set(acls)), like.super_users, like.broker_users,
            like.allow_everyone_if_no_acl_found, like.cidr, like.groups,
        )  # fmt: skip
    return Rules(
        sorted(set(acls)),
        frozenset(random.choice(SUPER_USERS)),
        allow_everyone_if_no_acl_found=random.random() < 0.4,
        cidr=random.random() < 0.6,
        groups=random.choice(({}, {"User:carol": ("Group:staff",), "User:dave": ("Group:ops",)})),
    )


def written_otherwise(rules: Rules) -> Rules:
    """Rules that decide the same by other ACLs: each operation by itself in place of ALL."""

    def acls() -> Iterator[AclBinding]:
        for acl in rules.acls:
            if acl.operation is not AclOperation.ALL:
                yield acl
                if acl.permission is AclPermission.ALLOW and acl.operation is AclOperation.READ:
                    yield acl._replace(operation=AclOperation.DESCRIBE)
                continue
            for operation in operations_of(acl.resource_type):
                yield acl._replace(operation=operation)

    return replace(rules, acls=sorted(set(acls())))


def random_request(random: Random) -> Request:
    kind = random.choice(TYPES)
    return Request(
        random.choice(SUBJECTS),
        random.choice(PEERS),
        random.choice(operations_of(kind)),
        kind,
        CLUSTER_NAME if kind is ResourceType.CLUSTER else random.choice(ASKED_NAMES),
    )


def by_model(rules: Rules, request: Request) -> bool:
    return model.authorize(
        rules.acls,
        rules.principals_of(request.principal),
        request.host,
        request.operation,
        request.resource_type,
        request.name,
        super_users=rules.super_users,
        allow_if_no_acl=rules.allow_everyone_if_no_acl_found,
        cidr=rules.cidr,
    )


def decided(rules: Rules, authorizer, request: Request) -> bool:
    """What the authorizer says, which is what the model says."""
    session = rules.session(request.principal, request.host)
    allowed = authorizer.decide(session, Action(*request[2:])).allowed
    assert allowed is by_model(rules, request)
    return bool(allowed)
