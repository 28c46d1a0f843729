"""Random ACLs of so few words that many meet."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from aclbroker.acl.bindings import AclBinding, AclPermission, PatternType
from aclbroker.pipeline.acls.ruleset import ordered
from tests.acl.examples import (
    ALL,
    ALTER_CONFIGS,
    CREATE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
)

NAMES = ["a", "ab", "abc", "abd", "b", "*"]
PRINCIPALS = ["User:alice", "User:bob", "Group:staff"]
PEERS = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "::1", "fe80::2", "socket"]
HOSTS = [
    "*", "*", "*", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1/32", "10.0.0.0/24", "10.0.0.9/24",
    "10.0.0.0/8", "0.0.0.0/0", "::1", "0:0:0:0:0:0:0:1", "0::1", "::1/128", "::/0", "socket", "1/2",
]  # fmt: skip
OPERATIONS = [ALL, READ, WRITE, CREATE, DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS]


def few_hosts(random: Random) -> list[str]:
    """Choose some of the hosts, so that there are few regions of them."""
    return ["*", "*", *random.sample(HOSTS, 4)]


def random_acls(random: Random, size: int, hosts: Sequence[str] = HOSTS) -> tuple[AclBinding, ...]:
    """Draw up to ``size`` ACLs. A session is never User:* itself, but ACLs are."""
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
