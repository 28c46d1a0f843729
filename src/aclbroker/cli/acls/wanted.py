"""What the options of kafka-acls.sh ask for: resources, and the entries on each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.cli.acls.checks import is_direct
from aclbroker.cli.acls.options import Options, UsageError
from aclbroker.cli.acls.texts import operations_text

_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's String.trim takes away."""

_READ, _WRITE, _DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
_CREATE, _DELETE, _ALTER = AclOperation.CREATE, AclOperation.DELETE, AclOperation.ALTER
_CONFIGS: Final = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)

SUPPORTED: Final = {
    ResourceType.TOPIC: (_READ, _WRITE, _CREATE, _DESCRIBE, _DELETE, _ALTER, *_CONFIGS),
    ResourceType.GROUP: (_READ, _DESCRIBE, _DELETE, *_CONFIGS),
    ResourceType.CLUSTER: (
        *(_CREATE, AclOperation.CLUSTER_ACTION, *_CONFIGS),
        *(AclOperation.IDEMPOTENT_WRITE, _ALTER, _DESCRIBE),
    ),
    ResourceType.TRANSACTIONAL_ID: (_DESCRIBE, _WRITE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (_DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""Which operations the tool lets a resource have, besides ALL (Kafka's AclEntry)."""

_OF_3_9: Final = {
    ResourceType.GROUP: (_READ, _DESCRIBE, _DELETE),
    ResourceType.TRANSACTIONAL_ID: (_DESCRIBE, _WRITE),
}
"""The rows of `SUPPORTED` that differ in the tool of Kafka 3.9.1, for ACLs in ZooKeeper."""

_OPERATIONS: Final = {each.name.replace("_", ""): each for each in AclOperation}
_PATTERNS: Final = {each.name: each for each in PatternType if each is not PatternType.UNKNOWN}
NAMED: Final = (
    ("topic", ResourceType.TOPIC),
    ("cluster", ResourceType.CLUSTER),
    ("group", ResourceType.GROUP),
    ("transactional-id", ResourceType.TRANSACTIONAL_ID),
    ("delegation-token", ResourceType.DELEGATION_TOKEN),
    ("user-principal", ResourceType.USER),
)
"""The options that name resources, and of which type."""


class ResourceFilter(NamedTuple):
    """A resource pattern, or what selects several: then the type may be ANY or MATCH."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def filter(self, entry: Entry | None = None) -> AclFilter:
        """Return what selects the ACLs on it: all, or those of one entry."""
        every = AclFilter(self.resource_type, self.name, self.pattern_type)
        return every if entry is None else every._replace(**entry._asdict())

    def binding(self, entry: Entry) -> AclBinding:
        """Return the ACL of an entry on this pattern."""
        resource_type, name, pattern_type = self
        return AclBinding(
            resource_type,
            name,
            pattern_type,
            entry.principal,
            entry.host,
            entry.operation,
            entry.permission,
        )


class Entry(NamedTuple):
    """What one ACL says about a resource."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


Wanted = dict[ResourceFilter, dict[Entry, None]]
"""The entries of each resource, both in the order in which the options name them."""

_CLUSTER: Final = ResourceFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)


def to_add(options: Options) -> Wanted:
    """Return what to add. Raises `UsageError`, and ValueError for a value that is not allowed."""
    pattern = _pattern_type(options)
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(
            f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls."
        )
    wanted = to_remove(options)
    if not all(wanted.values()):
        raise UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return wanted


def to_remove(options: Options) -> Wanted:
    """Return what to remove: of a resource without entries it is all.

    Raises `UsageError`, and ValueError for a value that is not allowed.
    """
    wanted: Wanted = {}
    if "producer" not in options and "consumer" not in options:
        entries = _entries(options, _operations(options))
        wanted = dict.fromkeys(_named_resources(options), entries)
    if "producer" in options:
        wanted |= _of_producer(options)
    if "consumer" in options:
        for resource, entries in _of_consumer(options).items():
            wanted[resource] = wanted.get(resource, {}) | entries
    _check_operations(wanted, is_direct(options))
    return wanted


def to_list(options: Options) -> tuple[Sequence[ResourceFilter], Sequence[str]]:
    """Return the resources to list, none for all, and the principals, none for all."""
    return list(_resources(options)), list(_principals(options, "principal"))


def _of_producer(options: Options) -> Wanted:
    on_topic = _entries(options, [_WRITE, _DESCRIBE, _CREATE])
    on_id = _entries(options, [_WRITE, _DESCRIBE])
    of_type = {ResourceType.TOPIC: on_topic, ResourceType.TRANSACTIONAL_ID: on_id}
    wanted = {
        each: of_type[each.resource_type]
        for each in _named_resources(options)
        if each.resource_type in of_type
    }
    if "idempotent" in options:
        wanted[_CLUSTER] = _entries(options, [AclOperation.IDEMPOTENT_WRITE])
    return wanted


def _of_consumer(options: Options) -> Wanted:
    of_type = {
        ResourceType.TOPIC: _entries(options, [_READ, _DESCRIBE]),
        ResourceType.GROUP: _entries(options, [_READ]),
    }
    return {
        each: of_type[each.resource_type]
        for each in _named_resources(options)
        if each.resource_type in of_type
    }


def _entries(options: Options, operations: Iterable[AclOperation]) -> dict[Entry, None]:
    operations = list(operations)
    found = {
        Entry(principal, host, operation, permission): None
        for kind, permission in (("allow", AclPermission.ALLOW), ("deny", AclPermission.DENY))
        for principal in _principals(options, f"{kind}-principal")
        for operation in operations
        for host in _hosts(options, kind)
    }
    if found and AclOperation.ANY in operations:
        raise ValueError("operation must not be ANY")
    return found


def _hosts(options: Options, kind: str) -> Iterable[str]:
    if f"{kind}-host" in options:
        return dict.fromkeys(each.strip(_BLANKS) for each in options.all(f"{kind}-host"))
    return [WILDCARD]


def _principals(options: Options, name: str) -> Iterable[str]:
    found = dict.fromkeys(each.strip(_BLANKS) for each in options.all(name))
    for principal in found:
        if ":" not in principal:
            raise ValueError(
                f"expected a string in format principalType:principalName but got {principal}"
            )
    return found


def _operations(options: Options) -> Iterable[AclOperation]:
    names = options.all("operation") or ["All"]
    # As in Kafka a name is written without underscores, and in any case.
    return dict.fromkeys(
        _OPERATIONS.get(name.strip(_BLANKS).upper(), AclOperation.UNKNOWN) for name in names
    )


def _pattern_type(options: Options) -> PatternType:
    text = options.one("resource-pattern-type")
    if text is None:
        return PatternType.LITERAL
    found = _PATTERNS.get(text.upper())
    if found is None:
        raise ValueError(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return found


def _named_resources(options: Options) -> Iterable[ResourceFilter]:
    found = _resources(options)
    if not found:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or "
            "--group <group> or --delegation-token <Delegation Token ID>"
        )
    return found


def _resources(options: Options) -> dict[ResourceFilter, None]:
    pattern = _pattern_type(options)
    found: dict[ResourceFilter, None] = {}
    for option, resource_type in NAMED:
        if resource_type is ResourceType.CLUSTER:
            # Kafka's tool passes over --cluster beside another type of patterns.
            asked = "cluster" in options or "idempotent" in options
            if asked and pattern is PatternType.LITERAL:
                found[_CLUSTER] = None
            continue
        for name in options.all(option):
            if resource_type is not ResourceType.TRANSACTIONAL_ID:
                name = name.strip(_BLANKS)
            found[ResourceFilter(resource_type, name, pattern)] = None
    return found


def _check_operations(wanted: Wanted, is_in_zookeeper: bool) -> None:
    table = SUPPORTED | _OF_3_9 if is_in_zookeeper else SUPPORTED
    for resource, entries in wanted.items():
        supported = (*table[resource.resource_type], AclOperation.ALL)
        if any(entry.operation not in supported for entry in entries):
            listed = _words(supported) if is_in_zookeeper else operations_text(supported)
            raise UsageError(
                f"ResourceType {resource.resource_type.name} only supports operations {listed}"
            )


def _words(operations: Iterable[AclOperation]) -> str:
    """Return operations as the tool of Kafka 3.9.1 writes them."""
    return ", ".join(each.name.title().replace("_", "") for each in operations)
