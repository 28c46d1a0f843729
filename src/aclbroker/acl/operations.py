"""Operations as bits: which ones an ACL grants or denies, and which ones a resource type has.

A set of (operation, permission) pairs is one integer: bit *n* is set if operation number *n* is
allowed, bit 16 + *n* if it is denied. The numbers are those of `AclOperation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from aclbroker.acl.bindings import ALLOW, AclPermission, ResourceType
from aclbroker.acl.bindings import AclOperation as Op

DENIED_SHIFT: Final = 16
ALLOWED_BITS: Final = 0xFFFF

_SUPPORTED: Final[Mapping[ResourceType, tuple[Op, ...]]] = MappingProxyType(
    {
        ResourceType.TOPIC: (
            Op.READ,
            Op.WRITE,
            Op.CREATE,
            Op.DELETE,
            Op.ALTER,
            Op.DESCRIBE,
            Op.DESCRIBE_CONFIGS,
            Op.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (
            Op.READ,
            Op.DELETE,
            Op.DESCRIBE,
            Op.DESCRIBE_CONFIGS,
            Op.ALTER_CONFIGS,
        ),
        ResourceType.CLUSTER: (
            Op.CREATE,
            Op.ALTER,
            Op.DESCRIBE,
            Op.CLUSTER_ACTION,
            Op.DESCRIBE_CONFIGS,
            Op.ALTER_CONFIGS,
            Op.IDEMPOTENT_WRITE,
        ),
        ResourceType.TRANSACTIONAL_ID: (Op.WRITE, Op.DESCRIBE, Op.TWO_PHASE_COMMIT),
        ResourceType.DELEGATION_TOKEN: (Op.DESCRIBE,),
        ResourceType.USER: (Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS),
    }
)
_IMPLIED_BY: Final[Mapping[Op, tuple[Op, ...]]] = MappingProxyType(
    {
        Op.DESCRIBE: (Op.READ, Op.WRITE, Op.DELETE, Op.ALTER),
        Op.DESCRIBE_CONFIGS: (Op.ALTER_CONFIGS,),
    }
)


def supported_operations(resource_type: ResourceType) -> tuple[Op, ...]:
    """Return the operations that a resource type has: those an authorized-operations field reports.

    Raises ValueError for UNKNOWN and ANY, which are no resource types.
    """
    if resource_type not in _SUPPORTED:
        raise ValueError(f"{resource_type.name} is not the type of a resource")
    return _SUPPORTED[resource_type]


def bit_field(operations: Iterable[Op]) -> int:
    """Return a set of operations as KIP-430's 32-bit field: bit *n* is operation number *n*."""
    return sum(1 << operation for operation in set(operations))


def _sources(operation: Op, *others: Op) -> int:
    # UNKNOWN and ANY are in no ACL and nobody may do them, not even who may do ALL.
    if operation <= Op.ANY:
        return 0
    return bit_field((operation, Op.ALL, *others))


GRANTED_BY: Final = tuple(_sources(op, *_IMPLIED_BY.get(op, ())) for op in Op)
"""By operation number: the allowed bits of which any one grants it, implications included."""

NAMED_BY: Final = tuple(_sources(op) for op in Op)
"""By operation number: the bits that name it, itself and ALL. A denial implies nothing else."""


def bit(operation: Op, permission: AclPermission) -> int:
    """Return the bit of an operation that is allowed or denied."""
    return 1 << (operation if permission == ALLOW else operation + DENIED_SHIFT)


BITS: Final = tuple(tuple(bit(op, permission) for op in Op) for permission in AclPermission)
"""By the numbers of a permission and an operation: `bit`, for what is done for every ACL."""


def bits(operation: Op, permission: AclPermission) -> int:
    """Return the bits that a filter's operation and permission select; ANY selects all."""
    one = ALLOWED_BITS if operation == Op.ANY else 1 << operation
    allowed = one if permission in (AclPermission.ANY, AclPermission.ALLOW) else 0
    denied = one if permission in (AclPermission.ANY, AclPermission.DENY) else 0
    return allowed | denied << DENIED_SHIFT


@lru_cache(maxsize=4096)
def pairs(value: int) -> tuple[tuple[Op, AclPermission], ...]:
    """Return the (operation, permission) pairs of a set of bits."""
    return tuple(
        (op, permission)
        for permission in (AclPermission.DENY, AclPermission.ALLOW)
        for op in Op
        if value & bit(op, permission)
    )


@lru_cache(maxsize=4096)
def effective(resource_type: ResourceType, value: int) -> int:
    """Return the operations of a type that a set of bits allows and does not deny, as KIP-430 has.

    Raises ValueError for UNKNOWN and ANY.
    """
    denied = value >> DENIED_SHIFT
    return bit_field(
        operation
        for operation in supported_operations(resource_type)
        if value & GRANTED_BY[operation] and not denied & NAMED_BY[operation]
    )


@lru_cache(maxsize=4096)
def shared(value: int) -> int:
    """Return an equal integer, the same object for all: ACLs have few different combinations."""
    return value
