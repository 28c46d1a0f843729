"""Authorizers of a few lines, so that a test's rights can be read beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from aclbroker.acl.authorizer import (
    Decision,
    RequestContext,
    Rule,
    RuleKind,
    Session,
)
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.operations import bit_field, supported_operations
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.backends.backend import Node
from aclbroker.broker.backends.declared import DECLARED_HANDLERS, DECLARED_LISTED
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.stores.memory import MemoryStore

YES = Decision(True, Rule(RuleKind.SUPER_USER))
NO = Decision(False, Rule(RuleKind.DEFAULT_DENY))

Rights = Callable[[AclOperation, ResourceType, str | None], bool]


class ByRule(StandardAuthorizer):
    """Allows what a function allows."""

    def __init__(self, rights: Rights) -> None:
        super().__init__(MemoryStore())
        self.rights = rights

    def authorize(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Sequence[str | None],
    ) -> list[Decision]:
        return [YES if self.rights(operation, resource_type, name) else NO for name in names]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        return YES if self.rights(operation, resource_type, None) else NO

    def authorized_operations(
        self, context: RequestContext, resource_type: ResourceType, resource_name: str
    ) -> int:
        operations = supported_operations(resource_type)
        return bit_field(
            each for each in operations if self.rights(each, resource_type, resource_name)
        )


def nothing(_operation: AclOperation, _type: ResourceType, _name: str | None) -> bool:
    """Allow nothing."""
    return False


def everything(_operation: AclOperation, _type: ResourceType, _name: str | None) -> bool:
    """Allow everything."""
    return True


def names_that_begin_with(prefix: str) -> Rights:
    """Allow every operation on topics, groups and transactions of such names, and no other."""

    def rights(_operation: AclOperation, resource_type: ResourceType, name: str | None) -> bool:
        return (
            resource_type is not ResourceType.CLUSTER
            and name is not None
            and name.startswith(prefix)
        )

    return rights


async def handled(parts: Services, rights: RequestRights, request: Any) -> Any:
    """Return what the handler of a key makes of the part of a request that the gate allowed."""
    answer = parts.answer_to(rights.row.key)
    assert answer is not None
    response = parts.turns.run("", answer, rights, request)
    while isawaitable(response):
        response = await response
    return response


def declared(catalog: Catalog, listener: str = "SASL_PLAINTEXT") -> DeclaredBackend:
    """Return a cluster of declared topics with one node."""
    return DeclaredBackend(
        cluster_id="cluster",
        catalog=catalog,
        handlers=DECLARED_HANDLERS,
        listed=DECLARED_LISTED,
        advertised={listener: Node(1, "localhost", 9092)},
    )


def services(rights: Rights, catalog: Catalog, audit: Audit) -> Services:
    """Return a broker's parts in which everybody has these rights."""
    return Services(ByRule(rights), audit, declared(catalog), ANSWERED_HERE)


def context(key: int, version: int) -> RequestContext:
    """Return the context of a request of alice's."""
    session = Session(("User:alice",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")
    return RequestContext(session, key, version, "test", 1)
