"""The built-in authorizer: Kafka's rules over an index in memory, and a store that keeps ACLs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NoReturn

from aclbroker.broker.acl.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AclError,
    Decision,
    RequestContext,
    RuleKind,
)
from aclbroker.broker.acl.bindings import AclBinding, AclFilter, AclOperation, ResourceType
from aclbroker.broker.acl.decisions import StandardAuthorizerData
from aclbroker.broker.acl.hosts import matches_nobody, subnet
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.acl.settings import acl_limit, authorizer_settings
from aclbroker.broker.acl.why_denied import WhyDenied, why_denied
from aclbroker.broker.authorizer.seed import SETTING, seed
from aclbroker.broker.authorizer.writer import AclWriter
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, open_store
from aclbroker.protocol.errors import shown_name

log = get_logger()

_HOSTS_SHOWN: Final = 10
_HOSTS_LOOKED_AT: Final = 5_000
"""So many take ten milliseconds, in which the broker does nothing else."""

RECONFIGURABLE: Final = ("super.users", "broker.users", "allow.everyone.if.no.acl.found")
"""The properties that `StandardAuthorizer.reconfigure` takes."""


class StandardAuthorizer:
    """An `Authorizer` with the rules of Kafka's StandardAuthorizer.

    Without a ``store`` it uses the one that the property ``aclbroker.store`` names. `start` opens
    the store and `close` closes it. What requests cause in the log goes through ``lines``, and
    the server sets its own before the start.
    ``first_acls`` are those that a new store got from a file when it was started.
    """

    def __init__(self, store: AclStore | None = None) -> None:
        self.store = store
        self.lines = LimitedLog()
        self._settings = authorizer_settings({})
        self._limit: int | None = None
        self._acls_file = ""
        self.first_acls: Sequence[AclBinding] = ()
        self._data: StandardAuthorizerData | None = None
        self._writer: AclWriter | None = None

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take ``super.users``, ``broker.users`` with the name of the brokers' listener,
        ``allow.everyone.if.no.acl.found`` and ``aclbroker.*``.

        Raises ValueError for a bad value, `StoreError` for a bad ``aclbroker.store``.
        """
        self._settings = authorizer_settings(properties)
        self._limit = acl_limit(properties)
        self._acls_file = properties.get(SETTING, "").strip()
        if self.store is None:
            self.store = open_store(properties.get("aclbroker.store", "sqlite:///aclbroker.db"))

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        """Take the properties of `RECONFIGURABLE` anew, for decisions from now on.

        Raises ValueError for a bad value; then nothing has changed.
        """
        new = authorizer_settings(properties)
        listener = self._settings.broker_users.listener
        self._settings = new._replace(
            broker_users=new.broker_users._replace(listener=listener), cidr=self._settings.cidr
        )
        if self._data is not None:
            index = self._data.index
            index.forget_answers()
            self._data = self._decider(index)

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
            if self._acls_file:
                self.first_acls = await seed(self.store, index, self._acls_file, self._limit)
        except BaseException:
            await self.store.close()
            raise
        _warn_of_hosts(index.hosts(), self._settings.cidr, log.warning)
        self._data = self._decider(index)
        self._writer = AclWriter(self.store, index, self._limit, lines=self.lines)

    async def close(self) -> None:
        """Finish the changes that wait, refuse later ones, and close the store."""
        if self._writer is not None:
            await self._writer.close()
        if self.store is not None:
            await self.store.close()

    @property
    def acl_count(self) -> int:
        """How many ACLs there are, once it is started."""
        return len((self._data or _not_started()).index)

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
        host = context.session.host
        results = await (self._writer or _not_started()).create(bindings, host)
        some = islice(zip(bindings, results, strict=True), _HOSTS_LOOKED_AT)
        hosts = {each.host for each, result in some if result.error_code == AclError.NONE}

        def warn(event: str, **values: Any) -> None:
            self.lines.write(log.warning, event, host, peer=host, **values)

        _warn_of_hosts(hosts, self._settings.cidr, warn)
        return results

    async def delete_acls(
        self, context: RequestContext, filters: Sequence[AclFilter]
    ) -> list[AclDeleteResult]:
        """Delete what any filter matches; each result lists all that its own filter matched."""
        return await (self._writer or _not_started()).delete(filters, context.session.host)

    def _decider(self, index: AclIndex) -> StandardAuthorizerData:
        return StandardAuthorizerData(
            index,
            self._settings.super_users,
            self._settings.allow_everyone_if_no_acl_found,
            self._settings.broker_users,
        )


def explained(
    authorizer: StandardAuthorizer,
    context: RequestContext,
    kind: RuleKind,
    operation: AclOperation,
    resource: tuple[ResourceType, str | None],
) -> WhyDenied:
    """Return what nearly allowed what a rule has just denied, and what would allow it.

    A name of None stands for any resource of the type.
    """
    data = authorizer._data or _not_started()
    return why_denied(data, context.session, kind, operation, resource)


def _warn_of_hosts(hosts: Collection[str], cidr: bool, warn: Callable[..., None]) -> None:
    """Warn of hosts of ACLs by which nobody can come; of many, some are looked at."""
    hosts = list(islice(hosts, _HOSTS_LOOKED_AT))
    nobody = sorted(filter(matches_nobody, hosts))
    if nobody:
        warn(
            "ACLs match nobody: their hosts are no addresses",
            count=len(nobody),
            hosts=_shown(nobody),
        )
    subnets = sorted(host for host in hosts if "/" in host and subnet(host))
    if subnets and not cidr:
        warn(
            "ACLs of subnets match nobody: aclbroker.acl.host.cidr is false",
            count=len(subnets),
            hosts=_shown(subnets),
        )


def _shown(hosts: Sequence[str]) -> list[str]:
    return [shown_name(host) for host in hosts[:_HOSTS_SHOWN]]


def _not_started() -> NoReturn:
    # Before all ACLs are loaded, one that denies may be missing.
    raise RuntimeError("the authorizer is not started")
