"""Random ACLs, and random questions of which most are near to what some ACL is about.

Questions are columns of numbers, so that a million of them are drawn in a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import numpy as np

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.ingest.record import ASKED, RESOURCES

Column = np.ndarray[Any, np.dtype[np.int32]]

PRINCIPALS = (
    *(f"User:{name}" for name in ("alice", "bob", "a", "ab", "b")),
    "User:",
    "User: ",
    "User:CN=app one,OU=Dev, O=Acme",
    "User:a:b::c",
    "User:x is Denied operation = READ",
    "User:tab\tand\nline",
    "User:\u00fcn\u00ef\u2028\\\u00df",
    "User:\U0001f600",
    "user:alice",
    "Group:alice",
    "User:**",
)
"""Some plain principals, and some with characters over which a careless reader would stumble."""

HOSTS = (*(f"10.0.0.{number}" for number in range(1, 9)), "0:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:9")
"""IPv6 addresses as Java prints them: Kafka compares texts, so other forms would match nobody."""

_UNNAMED_HOSTS = (*(f"192.168.0.{number}" for number in range(1, 21)), "fe80:0:0:0:0:0:0:a")

# Of both sides of the surrogates too, where the orders of UTF-16 and of code points differ.
_SYLLABLES = ("a", "b", "ab", ".", "-", "_", "*", " ", "\u00e9", "e\u0301", "\uffee", "\U0001f600")
_AFTER_WILDCARD = tuple(each for each in _SYLLABLES if each > WILDCARD)

_NEAR = 60_000
_OF_ANOTHER = 0.15
_SUPER_USERS = 0.03
_IMPLIED = 0.3


def random_acls(
    count: int, seed: int, *, everything: float = 0.0, prefixes: float = 0.5
) -> list[AclBinding]:
    """Make up ACLs of short names that are prefixes of each other, many of them denying.

    ``everything`` and ``prefixes`` are the shares of those on ``*`` and of those that are PREFIXED.
    """
    random = Random(seed)
    return [_acl(random, everything, prefixes) for _ in range(count)]


def _acl(random: Random, everything: float, prefixes: float) -> AclBinding:
    resource_type = random.choice(RESOURCES)
    pattern_type, name = PatternType.LITERAL, WILDCARD
    if random.random() >= everything:
        name = random_name(random)
        if random.random() < prefixes:
            pattern_type = PatternType.PREFIXED
    if resource_type is ResourceType.CLUSTER:
        pattern_type, name = PatternType.LITERAL, CLUSTER_NAME
    return AclBinding(
        resource_type,
        name,
        pattern_type,
        WILDCARD_PRINCIPAL if random.random() < 0.15 else random.choice(PRINCIPALS),
        random.choice(HOSTS) if random.random() < 0.3 else WILDCARD,
        AclOperation.ALL if random.random() < 0.2 else random.choice(ASKED),
        AclPermission.DENY if random.random() < 0.3 else AclPermission.ALLOW,
    )


def random_name(random: Random) -> str:
    """Make up a short name that begins with no character below ``*``.

    Kafka 4.3.0's class fails on those: its findAclRule throws StringIndexOutOfBoundsException.
    """
    rest = random.choices(_SYLLABLES, k=random.randrange(7))
    return random.choice(_SYLLABLES) + "".join(rest)


class Questions(NamedTuple):
    """Columns of one length. Texts are positions in ``texts``, all else codes."""

    texts: list[str]
    principal: Column
    host: Column
    operation: Column
    resource_type: Column
    resource_name: Column


def random_questions(rules: Ruleset, count: int, seed: int) -> Questions:
    """Draw different questions: whom an ACL names asks for what it is about, or for what is near.

    Each value is now and then that of another question. No name begins with a character below ``*``
    (see `random_name`). Raises ValueError if there are not so many for so few ACLs.
    """
    draw = np.random.default_rng(seed)
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    near = np.array(
        [
            (number(principal), number(host), operation, resource_type, number(name))
            for principal, host, operation, resource_type, name in _near(rules, Random(seed))
        ]
    ).T
    drawn = near[:, draw.integers(0, near.shape[1], 5 * count)]
    for column, values in zip(drawn, near, strict=True):
        others = draw.random(len(column)) < _OF_ANOTHER
        column[others] = draw.choice(values, others.sum())
    # As one number each, different ones are found in a moment.
    sizes = drawn.max(axis=1) + 1
    # Sorted, as numpy's unique takes five times as long.
    numbers = np.sort(np.ravel_multi_index(tuple(drawn), sizes))
    different = numbers[np.diff(numbers, prepend=-1) > 0]
    if len(different) < count:
        raise ValueError(f"only {len(different)} different questions were drawn, not {count}")
    chosen = np.unravel_index(draw.choice(different, count, replace=False), sizes)
    return Questions(list(texts), *(column.astype(np.int32) for column in chosen))


def _near(rules: Ruleset, random: Random) -> Iterator[tuple[str, str, int, int, str]]:
    """Yield questions that have to do with an ACL, several for each of them."""
    acls = [
        acl
        for acl in rules.acls
        if acl.resource_name[0] > WILDCARD or acl.resource_name == WILDCARD
    ]
    principals = [acl.principal for acl in acls if acl.principal != WILDCARD_PRINCIPAL]
    hosts = (*HOSTS, *_UNNAMED_HOSTS)
    names = [acl.resource_name for acl in acls if acl.resource_name != WILDCARD]
    supers = sorted(rules.super_users)
    for acl in random.choices(acls, k=_NEAR):
        principal, host, operation, name = acl.principal, acl.host, acl.operation, acl.resource_name
        if principal == WILDCARD_PRINCIPAL:
            principal = random.choice(principals)
        if random.random() < _SUPER_USERS:
            principal = random.choice(supers)
        if host == WILDCARD:
            host = random.choice(hosts)
        if operation is AclOperation.ALL or random.random() < _IMPLIED:
            operation = random.choice(ASKED)
        if name == WILDCARD:
            name = random.choice(names)
        if acl.resource_type is not ResourceType.CLUSTER:
            name = random.choice((name, f"{name}-x", name[:-1] or name))
        yield principal, host, operation, acl.resource_type, name
