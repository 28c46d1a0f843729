"""A made-up Kafka cluster: its principals, topics and groups, and the ACLs that they have.

All of it follows from a seed. How often something is used falls with its number as Zipf's law says,
so the first topics are the busy ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

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
from aclbroker.acl.operations import supported_operations

SUPER_USER = "User:admin"

PREFIX_LENGTHS = range(3, 21)
"""The lengths in characters of the names of PREFIXED ACLs."""

_PREFIXED_SHARE = 0.2
_WILDCARD_SHARE = 0.005
_ANYONE_SHARE = 0.01
_TEAM_SHARE = 0.02
_DENY_SHARE = 0.02
_HOST_SHARE = 0.1
_OWN_HOST_SHARE = 0.8
_DISTINGUISHED_SHARE = 50
"""One principal of so many has the distinguished name of a certificate."""

_ACL_EXPONENT = 0.7
_USE_EXPONENT = 1.0

_DOMAINS = (
    "orders",
    "payments",
    "billing",
    "catalog",
    "search",
    "pricing",
    "stock",
    "shipping",
    "returns",
    "fraud",
    "loyalty",
    "mail",
    "clicks",
    "sessions",
    "reviews",
    "ads",
    "risk",
    "ledger",
    "audit",
    "metrics",
    "hr",
    "travel",
    "media",
    "iot",
    "fleet",
    "maps",
    "chat",
)
_ENTITIES = (
    "created",
    "updated",
    "deleted",
    "snapshot",
    "events",
    "commands",
    "changes",
    "eu",
    "us",
    "apac",
    "retries",
    "dead-letter",
    "enriched",
    "raw",
    "daily",
    "hourly",
    "joined",
    "masked",
    "internal",
    "public",
    "test",
)

_TYPE_SHARES = (70, 25, 5)  # topics, groups, others
_OTHER_TYPES = (
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
    ResourceType.DELEGATION_TOKEN,
    ResourceType.USER,
)
_TOPIC_OPERATIONS = (
    *(AclOperation.READ,) * 8,
    *(AclOperation.WRITE,) * 6,
    *(AclOperation.DESCRIBE,) * 3,
    AclOperation.ALL,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
_GROUP_OPERATIONS = (
    *(AclOperation.READ,) * 8,
    *(AclOperation.DESCRIBE,) * 2,
    AclOperation.DELETE,
    AclOperation.ALL,
)


_Pattern = tuple[ResourceType, str, PatternType]


@dataclass(frozen=True)
class Sizes:
    """How many there are of what. Raises ValueError for a number below 1."""

    principals: int = 20_000
    topics: int = 50_000
    groups: int = 10_000
    acls: int = 100_000

    def __post_init__(self) -> None:
        for field, value in vars(self).items():
            if value < 1:
                raise ValueError(f"the number of {field} must be at least 1, not {value}")


class Zipf:
    """Draws numbers below a size; how often a number comes is as 1 / (number + 1) ** exponent."""

    def __init__(self, size: int, exponent: float = _USE_EXPONENT) -> None:
        self._numbers = range(size)
        self._cumulative = list(accumulate((n + 1) ** -exponent for n in self._numbers))

    def draw(self, random: Random, count: int) -> list[int]:
        """Draw so many numbers, independently."""
        return random.choices(self._numbers, cum_weights=self._cumulative, k=count)


class World:
    """The principals, topics and groups of a cluster; those of low numbers are the busy ones."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.topics = [_topic(number) for number in range(sizes.topics)]
        self.groups = [_group(number) for number in range(sizes.groups)]
        self.principals = [_principal(number) for number in range(sizes.principals)]
        self.topic_use = Zipf(sizes.topics)
        self.group_use = Zipf(sizes.groups)
        self.principal_use = Zipf(sizes.principals)
        self._sorted = {
            ResourceType.TOPIC: sorted(self.topics),
            ResourceType.GROUP: sorted(self.groups),
        }

    def names_with(self, resource_type: ResourceType, prefix: str, most: int) -> Sequence[str]:
        """Return at most so many names of topics or groups that begin with a prefix, in order."""
        names = self._sorted[resource_type]
        first = bisect_left(names, prefix)
        found = names[first : first + most]
        return [name for name in found if name.startswith(prefix)]


def hosts_of(principal: int) -> tuple[str, ...]:
    """Return the one to three addresses that a principal usually comes from."""
    return tuple(
        f"10.{principal >> 12 & 255}.{principal >> 4 & 255}.{(principal & 15) * 16 + each}"
        for each in range(1, 2 + principal % 3)
    )


def team_of(principal: int) -> str:
    """Return the second principal of a session of a principal that is a member of a team."""
    return f"Group:team-{principal % 100}"


def transactional_id(principal: int) -> str:
    """Return the transactional id that a principal uses."""
    domain, entity = _words(principal)
    return f"{domain}-{entity}-tx-{principal}"


def make_acls(world: World, seed: int) -> list[AclBinding]:
    """Make up the ACLs of a cluster: 70 % of topics, 25 % of groups, 5 % of others.

    One of 50 denies, one of 10 holds for one host alone, one of 5 has a prefix, one of 50 is a
    team's; of the ACLs of literal names, one of 100 holds for everyone. Raises ValueError if so
    many different ACLs cannot be found for so few names.
    """
    return _distinct(_random_acls(world, Random(f"acls {seed}")), world.sizes.acls)


def propose(acls: Sequence[AclBinding], world: World, seed: int) -> list[AclBinding]:
    """Return a changed ACL set, to ask what it would break: 3 % removed, 1 % prefix rules added."""
    random = Random(f"proposed {seed}")
    known = set(acls)
    kept = [acl for acl in acls if random.random() >= 0.03]
    prefixes = (
        acl
        for acl in _random_acls(world, random)
        if acl.pattern_type is PatternType.PREFIXED and acl not in known
    )
    return kept + _distinct(prefixes, len(acls) // 100)


def _distinct(acls: Iterator[AclBinding], count: int) -> list[AclBinding]:
    found: dict[AclBinding, None] = {}
    for _ in range(count * 100):
        if len(found) == count:
            return list(found)
        found[next(acls)] = None
    raise ValueError(f"{count} different ACLs are too many for so few principals and names")


def _random_acls(world: World, random: Random) -> Iterator[AclBinding]:
    grantee = Zipf(world.sizes.principals, _ACL_EXPONENT)
    topic = Zipf(world.sizes.topics, _ACL_EXPONENT)
    group = Zipf(world.sizes.groups, _ACL_EXPONENT)
    while True:
        kind = random.choices((0, 1, 2), _TYPE_SHARES)[0]
        number = grantee.draw(random, 1)[0]
        if kind == 0:
            name = world.topics[topic.draw(random, 1)[0]]
            resource = _pattern(random, ResourceType.TOPIC, name)
            operation = random.choice(_TOPIC_OPERATIONS)
        elif kind == 1:
            name = world.groups[group.draw(random, 1)[0]]
            resource = _pattern(random, ResourceType.GROUP, name)
            operation = random.choice(_GROUP_OPERATIONS)
        else:
            resource, operation = _other(random, world, number)
        host = _host(random, world, number)
        permission = AclPermission.DENY if random.random() < _DENY_SHARE else AclPermission.ALLOW
        principal = world.principals[number]
        # Broad ACLs for everyone would decide nearly all events, and the other ACLs none.
        is_narrow = resource[1] != WILDCARD and resource[2] is PatternType.LITERAL
        if is_narrow and permission is AclPermission.ALLOW and random.random() < _ANYONE_SHARE:
            principal = WILDCARD_PRINCIPAL
        elif random.random() < _TEAM_SHARE:
            principal = team_of(number)
        yield AclBinding(*resource, principal, host, operation, permission)


def _pattern(random: Random, resource_type: ResourceType, name: str) -> _Pattern:
    draw = random.random()
    if draw < _WILDCARD_SHARE:
        return resource_type, WILDCARD, PatternType.LITERAL
    if draw < _WILDCARD_SHARE + _PREFIXED_SHARE:
        return resource_type, name[: random.choice(PREFIX_LENGTHS)], PatternType.PREFIXED
    return resource_type, name, PatternType.LITERAL


def _other(random: Random, world: World, number: int) -> tuple[_Pattern, AclOperation]:
    resource_type = random.choice(_OTHER_TYPES)
    operation = random.choice(supported_operations(resource_type))
    if resource_type is ResourceType.TRANSACTIONAL_ID:
        return _pattern(random, resource_type, transactional_id(number)), operation
    name = {
        ResourceType.CLUSTER: CLUSTER_NAME,
        ResourceType.DELEGATION_TOKEN: f"token-{number}",
        ResourceType.USER: random.choice(world.principals),
    }[resource_type]
    return (resource_type, name, PatternType.LITERAL), operation


def _host(random: Random, world: World, number: int) -> str:
    """Choose the host of an ACL: any, one that its principal comes from, or another's."""
    if random.random() >= _HOST_SHARE:
        return WILDCARD
    is_own = random.random() < _OWN_HOST_SHARE
    return random.choice(hosts_of(number if is_own else random.randrange(world.sizes.principals)))


def _topic(number: int) -> str:
    domain, entity = _words(number)
    return f"{domain}.{entity}.v{number}"


def _group(number: int) -> str:
    domain, entity = _words(number)
    return f"{domain}-{entity}-readers-{number}"


def _principal(number: int) -> str:
    domain, entity = _words(number)
    if number % _DISTINGUISHED_SHARE == _DISTINGUISHED_SHARE - 1:
        return f"User:CN={domain}-{number},OU={entity.title()} Team,O=Example"
    return f"User:{domain}-{entity}-{number}"


def _words(number: int) -> tuple[str, str]:
    return _DOMAINS[number % len(_DOMAINS)], _ENTITIES[number // len(_DOMAINS) % len(_ENTITIES)]
