"""Random ACLs, and changes of them that both sides get."""

from __future__ import annotations

from random import Random
from typing import Final

from aclbroker.acl.bindings import AclOperation as Op
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.gateway.twins.names import GROUPS, TOPICS, TXN_IDS
from tests.gateway.twins.sides import SUPER, USERS, Place, Twins

_TOPIC, _GROUP, _CLUSTER, _TXN = 2, 3, 4, 5
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3
_OPERATIONS: Final = {
    _TOPIC: (
        *(Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE),
        *(Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS, Op.ALL, Op.ALL),
    ),
    _GROUP: (
        *(Op.READ, Op.READ, Op.DESCRIBE, Op.DELETE, Op.DESCRIBE_CONFIGS),
        *(Op.ALTER_CONFIGS, Op.ALL),
    ),
    _TXN: (Op.WRITE, Op.WRITE, Op.DESCRIBE, Op.ALL, Op.TWO_PHASE_COMMIT),
    _CLUSTER: (
        *(Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.IDEMPOTENT_WRITE),
        *(Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS, Op.ALL),
    ),
}
_NAMES: Final = {
    _TOPIC: (*TOPICS, "t", "", "*"),
    _GROUP: (*GROUPS, "g", "h", "*"),
    _TXN: (*TXN_IDS, "x", "*"),
    _CLUSTER: ("kafka-cluster",),
}
_AT_FIRST: Final = 40


class Rights:
    """The ACLs of both sides."""

    def __init__(self, twins: Twins, random: Random) -> None:
        self._twins, self._random = twins, random
        self._acls: list[AclCreation] = []
        self._create(
            [_prefixed("alice", kind, name) for kind, name in ((2, "t"), (3, "g"), (5, "x"))]
        )
        self._create([self._drawn() for _ in range(_AT_FIRST)])

    def change(self) -> None:
        """Create an ACL, or delete one."""
        if self._acls and self._random.random() < 0.5:
            self._delete(self._acls.pop(self._random.randrange(len(self._acls))))
        else:
            self._create([self._drawn()])

    def allow(self, user: str, topic: str, operation: Op) -> None:
        """Allow a user an operation on a topic."""
        self._create([_of_topic(user, topic, operation, _ALLOW)])

    def deny(self, user: str, topic: str, operation: Op) -> None:
        """Deny a user an operation on a topic."""
        self._create([_of_topic(user, topic, operation, _DENY)])

    def _create(self, acls: list[AclCreation]) -> None:
        self._acls += acls
        self._twins.ask(Place(SUPER, 1), ApiKey.CREATE_ACLS, 3, CreateAclsRequest(acls))

    def _delete(self, acl: AclCreation) -> None:
        named = DeleteAclsFilter(
            acl.resource_type,
            acl.resource_name,
            acl.resource_pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        self._twins.ask(Place(SUPER, 1), ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([named]))

    def _drawn(self) -> AclCreation:
        random = self._random
        kind = random.choice((_TOPIC, _TOPIC, _TOPIC, _GROUP, _GROUP, _TXN, _CLUSTER))
        name = random.choice(_NAMES[kind])
        pattern = random.choice((_LITERAL, _LITERAL, _PREFIXED))
        if kind == _CLUSTER or name == "*":
            pattern = _LITERAL
        principal = f"User:{random.choice((*USERS, *USERS, '*'))}"
        permission = _ALLOW if random.random() < 0.8 else _DENY
        operation = random.choice(_OPERATIONS[kind])
        return AclCreation(kind, name or "t", pattern, principal, "*", operation, permission)


def _prefixed(user: str, kind: int, name: str) -> AclCreation:
    return AclCreation(kind, name, _PREFIXED, f"User:{user}", "*", Op.ALL, _ALLOW)


def _of_topic(user: str, topic: str, operation: Op, permission: int) -> AclCreation:
    return AclCreation(_TOPIC, topic, _LITERAL, f"User:{user}", "*", operation, permission)
