"""The roles in which every request is sent: one user with different ACLs, and the super user.

Three roles are enough to tell all operations on the cluster apart. Each operation has a number from
1 to 7 in `CLUSTER_CODES`; the roles cluster-1, cluster-2 and cluster-4 each allow the operations
whose number has that bit. So no two operations are allowed in the same roles. The numbers are such
that an operation is allowed nowhere without the operation that it implies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.bindings import AclOperation as Op
from aclbroker.conformance.resources import (
    DELETED_TOPIC,
    GROUP_RIGHTS,
    SOMEBODY,
    TOPIC_RIGHTS,
    TRANSACTION_RIGHTS,
    Rights,
    absent_group,
    absent_topic,
    created_topic,
    group,
    share_group,
    topic,
    transaction,
)

CLUSTER_CODES: Final[Mapping[Op, int]] = {
    Op.ALTER_CONFIGS: 1,
    Op.CREATE: 2,
    Op.DESCRIBE_CONFIGS: 3,
    Op.CLUSTER_ACTION: 4,
    Op.IDEMPOTENT_WRITE: 5,
    Op.ALTER: 6,
    Op.DESCRIBE: 7,
}


class Role(NamedTuple):
    """A role and the ACLs in force while its requests are sent; None for the super user."""

    name: str
    acls: Callable[[str], tuple[AclBinding, ...]] | None
    """Returns the ACLs of the role for a principal."""


SUPER: Final = "super"


def _acl(
    resource_type: ResourceType,
    name: str,
    principal: str,
    operation: Op,
    permission: AclPermission = AclPermission.ALLOW,
    pattern_type: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return AclBinding(resource_type, name, pattern_type, principal, "*", operation, permission)


def _rights_acls(
    resource_type: ResourceType, name: str, rights: Rights, principal: str
) -> Iterator[AclBinding]:
    pattern = PatternType.PREFIXED if rights.prefixed else PatternType.LITERAL
    allowed_name = name.removesuffix("-denied") if rights.prefixed else name
    for operation in rights.allowed:
        yield _acl(resource_type, allowed_name, principal, operation, AclPermission.ALLOW, pattern)
    for operation in rights.denied:
        yield _acl(resource_type, name, principal, operation, AclPermission.DENY)


def _nothing(principal: str) -> tuple[AclBinding, ...]:
    return ()


def _resources(principal: str) -> tuple[AclBinding, ...]:
    acls: list[AclBinding] = []
    for name_of in (topic, absent_topic, created_topic):
        for right, rights in TOPIC_RIGHTS.items():
            acls += _rights_acls(ResourceType.TOPIC, name_of(right), rights, principal)
    for name_of in (group, absent_group, share_group):
        for right, rights in GROUP_RIGHTS.items():
            acls += _rights_acls(ResourceType.GROUP, name_of(right), rights, principal)
    for right, rights in TRANSACTION_RIGHTS.items():
        acls += _rights_acls(ResourceType.TRANSACTIONAL_ID, transaction(right), rights, principal)
    acls += [
        _acl(ResourceType.TOPIC, DELETED_TOPIC, principal, Op.DELETE),
        _acl(ResourceType.TOPIC, DELETED_TOPIC, principal, Op.DESCRIBE, AclPermission.DENY),
    ]
    somebody = f"User:{SOMEBODY}"
    acls += [
        _acl(ResourceType.USER, somebody, principal, operation)
        for operation in (Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS)
    ]
    return tuple(dict.fromkeys(acls))


def _cluster(principal: str) -> tuple[AclBinding, ...]:
    return (
        _acl(ResourceType.CLUSTER, CLUSTER_NAME, principal, Op.ALL),
        _acl(ResourceType.CLUSTER, CLUSTER_NAME, principal, Op.ALTER, AclPermission.DENY),
    )


def _cluster_operations(bit: int) -> Callable[[str], tuple[AclBinding, ...]]:
    operations = [operation for operation, code in CLUSTER_CODES.items() if code & bit]

    def acls(principal: str) -> tuple[AclBinding, ...]:
        return tuple(
            _acl(ResourceType.CLUSTER, CLUSTER_NAME, principal, operation)
            for operation in operations
        )

    return acls


def _wildcards(principal: str) -> tuple[AclBinding, ...]:
    types = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    allowed = [_acl(kind, WILDCARD, principal, Op.ALL) for kind in types]
    denied = (
        (ResourceType.TOPIC, topic("all")),
        (ResourceType.TOPIC, absent_topic("all")),
        (ResourceType.GROUP, group("all")),
        (ResourceType.GROUP, absent_group("all")),
        (ResourceType.GROUP, share_group("all")),
        (ResourceType.TRANSACTIONAL_ID, transaction("write")),
    )
    return (
        *allowed,
        *(_acl(kind, name, principal, Op.ALL, AclPermission.DENY) for kind, name in denied),
        _acl(ResourceType.TOPIC, topic("closed"), principal, Op.DESCRIBE, AclPermission.DENY),
    )


ROLES: Final = (
    Role("none", _nothing),
    Role("resources", _resources),
    Role("wildcards", _wildcards),
    Role("cluster", _cluster),
    Role("cluster-1", _cluster_operations(1)),
    Role("cluster-2", _cluster_operations(2)),
    Role("cluster-4", _cluster_operations(4)),
    Role(SUPER, None),
)
"""All roles, in the order in which their requests are sent."""
