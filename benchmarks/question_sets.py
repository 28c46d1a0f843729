"""Made-up sets of ACLs, and statements about them, for questions about all requests.

Of 2,000 principals, in 200 teams' names of topics and groups. One in five patterns is a prefix, one
ACL in twenty denies, one in a hundred is for ``User:*``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from random import Random
from typing import TextIO

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

PRINCIPALS = 2_000
TEAMS, AREAS, TOPICS = 200, 100, 100
PREFIXES, DENIALS, EVERYONES = 0.2, 0.05, 0.01
_OPERATIONS = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.ALL,
    ),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DESCRIBE),
}


def acls(count: int, seed: int) -> list[AclBinding]:
    """Return so many different ACLs."""
    found: dict[AclBinding, None] = {}
    drawn = _drawn(Random(seed))
    while len(found) < count:
        found.update(dict.fromkeys(islice(drawn, count - len(found))))
    return list(found)


def _drawn(random: Random) -> Iterator[AclBinding]:
    while True:
        kind = ResourceType.TOPIC if random.random() < 0.8 else ResourceType.GROUP
        name, pattern_type = _area(random), PatternType.PREFIXED
        if random.random() >= PREFIXES:
            name, pattern_type = _topic(random), PatternType.LITERAL
        is_everyone, is_denial = random.random() < EVERYONES, random.random() < DENIALS
        yield AclBinding(
            kind,
            name,
            pattern_type,
            WILDCARD_PRINCIPAL if is_everyone else _principal(random),
            WILDCARD,
            random.choice(_OPERATIONS[kind]),
            AclPermission.DENY if is_denial else AclPermission.ALLOW,
        )


def _principal(random: Random) -> str:
    return f"User:service-{random.randrange(PRINCIPALS)}"


def _area(random: Random) -> str:
    """Return the beginning of a team's names or, of four in five, of an area's of the team."""
    team = f"team-{random.randrange(TEAMS)}."
    return f"{team}{random.randrange(AREAS)}." if random.random() < 0.8 else team


def _topic(random: Random) -> str:
    team, area = random.randrange(TEAMS), random.randrange(AREAS)
    return f"team-{team}.{area}.topic-{random.randrange(TOPICS)}"


def sentences(count: int, seed: int) -> list[str]:
    """Return so many statements, of each kind the same number."""
    random = Random(seed)
    found = []
    for number in range(count):
        principal, other = _principal(random), _principal(random)
        found.append(
            (
                f"nobody but {principal}, {other} may WRITE topics {_area(random)}*",
                f"{principal} may READ every topic {_area(random)}*",
                f"no ALLOW for {principal} on the cluster",
                f"whoever may WRITE topic {_topic(random)} may DESCRIBE topic {_topic(random)}",
                f"nobody but {principal} may READ topic {_topic(random)}",
            )[number % 5]
        )
    return found


def write_listing(of: list[AclBinding], file: TextIO) -> None:
    """Write ACLs as ``kafka-acls.sh --list`` prints them."""
    for (kind, name, pattern_type), theirs in groupby(sorted(of), key=lambda acl: acl[:3]):
        file.write(
            f"Current ACLs for resource `ResourcePattern(resourceType={ResourceType(kind).name}, "
            f"name={name}, patternType={PatternType(pattern_type).name})`: \n"
        )
        for acl in theirs:
            file.write(
                f" \t(principal={acl.principal}, host={acl.host}, operation={acl.operation.name}, "
                f"permissionType={acl.permission.name})\n"
            )
        file.write("\n")
