"""The built-in authorizer: Kafka's rules over an index in memory, and a store that keeps ACLs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import structlog

from aclbroker.broker.acl.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AclError,
    Decision,
    RequestContext,
)
from aclbroker.broker.acl.bindings import AclBinding, AclFilter, AclOperation, ResourceType
from aclbroker.broker.acl.decisions import AclAuthorizer, BrokerUsers
from aclbroker.broker.acl.hosts import subnet
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.authorizer.writer import AclWriter
from aclbroker.broker.config import inter_broker_listener
from aclbroker.broker.stores import AclStore, open_store

log = structlog.get_logger()


class StandardAuthorizer:
    """An `Authorizer` with the rules of Kafka's StandardAuthorizer.

    Without a ``store`` it takes the one that the property ``aclbroker.store`` names. It opens the
    store at start and closes it at its own close.
    """

    def __init__(self, store: AclStore | None = None) -> None:
        self.store = store
        self._super_users: frozenset[str] = frozenset()
        self._broker_users = BrokerUsers()
        self._allow_everyone = False
        self._cidr = False
        self._limit: int | None = None
        self._running: tuple[AclAuthorizer, AclWriter] | None = None

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take ``super.users``, ``broker.users`` with the name of the brokers' listener,
        ``allow.everyone.if.no.acl.found`` and ``aclbroker.*``.

        Raises ValueError for a bad value, `StoreError` for a bad ``aclbroker.store``.
        """
        self._super_users = _principals(properties, "super.users")
        self._broker_users = BrokerUsers(
            _principals(properties, "broker.users"), inter_broker_listener(properties)
        )
        self._allow_everyone = _boolean(properties, "allow.everyone.if.no.acl.found")
        self._cidr = _boolean(properties, "aclbroker.acl.host.cidr")
        self._limit = _limit(properties, "aclbroker.acl.limit")
        if self.store is None:
            self.store = open_store(properties.get("aclbroker.store", "sqlite:///aclbroker.db"))

    async def start(self) -> None:
        """Open the store and load all ACLs. Raises `StoreError`."""
        if self.store is None:
            raise RuntimeError("the authorizer must be configured before it is started")
        await self.store.open()
        index = AclIndex(cidr=self._cidr)
        try:
            async for bindings in self.store.load():
                for binding in bindings:
                    index.add(binding)
        except BaseException:
            await self.store.close()
            raise
        self._warn_of_subnets(index.hosts())
        core = AclAuthorizer(index, self._super_users, self._allow_everyone, self._broker_users)
        self._running = core, AclWriter(self.store, index, self._limit)

    async def close(self) -> None:
        """Finish the changes that wait, refuse later ones, and close the store."""
        if self._running is not None:
            await self._running[1].close()
        if self.store is not None:
            await self.store.close()

    def authorize(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Sequence[str | None],
    ) -> list[Decision]:
        """Decide the operation on the resource of each name, in order."""
        return self._core().authorize(context.session, operation, resource_type, names)

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the operation is allowed on at least one resource of a type (KIP-679)."""
        return self._core().authorize_by_resource_type(context.session, operation, resource_type)

    def authorized_operations(
        self, context: RequestContext, resource_type: ResourceType, resource_name: str
    ) -> int:
        """Return which of the type's operations are allowed, as a bit field (KIP-430)."""
        return self._core().authorized_operations(context.session, resource_type, resource_name)

    def acls(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return all ACLs that a filter matches; the caller uses them up before it awaits."""
        # An `AclListing`: its type tells DescribeAcls that it has them by resource pattern, too.
        return self._core().index.find(acl_filter)

    async def create_acls(
        self, context: RequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Create ACLs, each on its own; the results are in order. A refused one says why."""
        results = await self._writer().create(bindings)
        self._warn_of_subnets(
            {
                binding.host
                for binding, result in zip(bindings, results, strict=True)
                if result.error_code == AclError.NONE
            }
        )
        return results

    async def delete_acls(
        self, context: RequestContext, filters: Sequence[AclFilter]
    ) -> list[AclDeleteResult]:
        """Delete what any filter matches; each result lists all that its own filter matched."""
        return await self._writer().delete(filters)

    def _core(self) -> AclAuthorizer:
        # Not to decide over ACLs that are not all loaded: one that denies may be missing.
        if self._running is None:
            raise RuntimeError("the authorizer is not started")
        return self._running[0]

    def _writer(self) -> AclWriter:
        if self._running is None:
            raise RuntimeError("the authorizer is not started")
        return self._running[1]

    def _warn_of_subnets(self, hosts: Collection[str]) -> None:
        if self._cidr:
            return
        subnets = sorted(host for host in hosts if "/" in host and subnet(host))
        if subnets:
            log.warning(
                "ACLs of subnets match nobody: aclbroker.acl.host.cidr is false",
                count=len(subnets),
                hosts=subnets[:10],
            )


def _principals(properties: Mapping[str, str], name: str) -> frozenset[str]:
    principals = frozenset(text.strip() for text in properties.get(name, "").split(";")) - {""}
    for principal in principals:
        if ":" not in principal:
            raise ValueError(f"{name}: {principal!r} must be written Type:name, such as User:admin")
    return principals


def _boolean(properties: Mapping[str, str], name: str) -> bool:
    text = properties.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}={text!r} must be true or false")
    return text == "true"


def _limit(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name}={text!r} must be a number of ACLs, or empty for no limit")
    return int(text)
