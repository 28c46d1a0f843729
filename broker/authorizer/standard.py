"""The built-in authorizer: Kafka's rules over an index in memory, and a store that keeps ACLs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NoReturn

import structlog

from aclbroker.broker.acl.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AclError,
    Decision,
    RequestContext,
)
from aclbroker.broker.acl.bindings import AclBinding, AclFilter, AclOperation, ResourceType
from aclbroker.broker.acl.decisions import StandardAuthorizerData
from aclbroker.broker.acl.hosts import subnet
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.acl.settings import acl_limit, authorizer_settings
from aclbroker.broker.authorizer.writer import AclWriter
from aclbroker.broker.stores import AclStore, open_store

log = structlog.get_logger()


class StandardAuthorizer:
    """An `Authorizer` with the rules of Kafka's StandardAuthorizer.

    Without a ``store`` it uses the one that the property ``aclbroker.store`` names. `start` opens
    the store and `close` closes it.
    """

    def __init__(self, store: AclStore | None = None) -> None:
        self.store = store
        self._settings = authorizer_settings({})
        self._limit: int | None = None
        self._data: StandardAuthorizerData | None = None
        self._writer: AclWriter | None = None

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take ``super.users``, ``broker.users`` with the name of the brokers' listener,
        ``allow.everyone.if.no.acl.found`` and ``aclbroker.*``.

        Raises ValueError for a bad value, `StoreError` for a bad ``aclbroker.store``.
        """
        self._settings = authorizer_settings(properties)
        self._limit = acl_limit(properties)
        if self.store is None:
            self.store = open_store(properties.get("aclbroker.store", "sqlite:///aclbroker.db"))

    async def start(self) -> None:
        """Open the store and load all ACLs. Raises `StoreError`."""
        if self.store is None:
            raise RuntimeError("the authorizer must be configured before it is started")
        await self.store.open()
        index = AclIndex(cidr=self._settings.cidr)
        try:
            async for bindings in self.store.load():
                for binding in bindings:
                    index.add(binding)
        except BaseException:
            await self.store.close()
            raise
        self._warn_of_subnets(index.hosts())
        self._data = StandardAuthorizerData(
            index,
            self._settings.super_users,
            self._settings.allow_everyone_if_no_acl_found,
            self._settings.broker_users,
        )
        self._writer = AclWriter(self.store, index, self._limit)

    async def close(self) -> None:
        """Finish the changes that wait, refuse later ones, and close the store."""
        if self._writer is not None:
            await self._writer.close()
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
        data = self._data or _not_started()
        decisions = data.decisions(context.session, operation, resource_type)
        return list(map(decisions.__getitem__, names))

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the operation is allowed on at least one resource of a type (KIP-679)."""
        data = self._data or _not_started()
        return data.authorize_by_resource_type(context.session, operation, resource_type)

    def authorized_operations(
        self, context: RequestContext, resource_type: ResourceType, resource_name: str
    ) -> int:
        """Return which of the type's operations are allowed, as a bit field (KIP-430)."""
        data = self._data or _not_started()
        return data.authorized_operations(context.session, resource_type, resource_name)

    def acls(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return all ACLs that a filter matches; the caller uses them up before it awaits."""
        # Being an `AclListing`, it also has them by resource pattern, which DescribeAcls uses.
        return (self._data or _not_started()).index.find(acl_filter)

    async def create_acls(
        self, context: RequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Create ACLs, each on its own; the results are in order. A refused one says why."""
        results = await (self._writer or _not_started()).create(bindings)
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
        return await (self._writer or _not_started()).delete(filters)

    def _warn_of_subnets(self, hosts: Collection[str]) -> None:
        if self._settings.cidr:
            return
        subnets = sorted(host for host in hosts if "/" in host and subnet(host))
        if subnets:
            log.warning(
                "ACLs of subnets match nobody: aclbroker.acl.host.cidr is false",
                count=len(subnets),
                hosts=subnets[:10],
            )


def _not_started() -> NoReturn:
    # Before all ACLs are loaded, one that denies may be missing.
    raise RuntimeError("the authorizer is not started")
