"""The built-in authorizer: Kafka's rules over an index in memory, and a store that keeps ACLs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NoReturn

from aclbroker.acl.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AclError,
    Decision,
    Position,
    RequestContext,
    RuleKind,
    Session,
)
from aclbroker.acl.bindings import AclBinding, AclFilter, AclOperation, ResourceType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.hosts import host_fault
from aclbroker.acl.index import AclIndex
from aclbroker.acl.settings import (
    acl_limit,
    authorizer_settings,
    history_changes,
    reads_latest,
    stale_settings,
)
from aclbroker.acl.why_denied import WhyDenied, why_denied
from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.authorizer.host_warnings import HOSTS_LOOKED_AT, warn_of_hosts
from aclbroker.broker.authorizer.latest import Latest
from aclbroker.broker.authorizer.migration import Tell
from aclbroker.broker.authorizer.opening import Waits, nobody
from aclbroker.broker.authorizer.seed import SETTING
from aclbroker.broker.authorizer.sources import Sources
from aclbroker.broker.authorizer.staleness import Staleness
from aclbroker.broker.authorizer.writer import LIMIT_NAME, AclWriter
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin

log = get_logger()

RECONFIGURABLE: Final = ("super.users", "broker.users", "allow.everyone.if.no.acl.found")
"""The properties that `StandardAuthorizer.reconfigure` takes."""


class StandardAuthorizer:
    """An `Authorizer` with the rules of Kafka's StandardAuthorizer.

    Without a ``store`` it uses the one that the properties name (`store_url`), or several
    (`access_rules`), and ``store`` is that of what requests list and change. `start` opens
    what is used and `close` closes it. What requests cause in the log goes through ``lines``, and
    the server sets its own before the start, and ``waits``, which is told while a shared store is
    not within reach.
    ``limit_name`` is the setting that refusals of too many ACLs name.
    ``first_acls`` are those that a new store got from a file when it was started.
    """

    def __init__(self, store: AclStore | None = None) -> None:
        self.store = store
        self.lines = LimitedLog()
        self.waits: Waits = nobody
        self._settings = authorizer_settings({})
        self._limit: int | None = None
        self.limit_name = LIMIT_NAME
        self._acls_file = ""
        self.first_acls: Sequence[AclBinding] = ()
        self._data: StandardAuthorizerData | None = None
        self._writer: AclWriter | None = None
        self._stale = stale_settings({})
        self._sources = None if store is None else Sources({"": store})
        self._latest: Latest | None = None
        self._reads_latest = False

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take ``super.users``, ``broker.users`` with the name of the brokers' listener,
        ``allow.everyone.if.no.acl.found`` and ``aclbroker.*``.

        Raises ValueError for a bad value, `StoreError` for a bad ``aclbroker.store``.
        """
        self._settings = authorizer_settings(properties)
        self._limit = acl_limit(properties)
        # A bad value is refused also where a store is given that keeps no history.
        history_changes(properties)
        self._stale = stale_settings(properties)
        self._reads_latest = reads_latest(properties)
        self._acls_file = properties.get(SETTING, "").strip()
        if self._sources is None:
            self._sources = Sources.named_by(properties)
            self.store = self._sources.store

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
        """Open the store, or several, and load all ACLs. Raises `StoreError`."""
        sources = self._sources
        if sources is None:
            raise RuntimeError("the authorizer must be configured before it is started")
        cidr = self._settings.cidr
        index = AclIndex(cidr=cidr)
        limit = self._limit
        sources.waits = self.waits
        self.first_acls = await sources.load(index, cidr, self._stale, self._acls_file, limit)
        try:
            await self._begin(sources, index)
        except BaseException:
            # Who starts it again makes another one.
            await sources.close()
            raise

    async def _begin(self, sources: Sources, index: AclIndex) -> None:
        warn_of_hosts(index.hosts(), self._settings.cidr, log.warning)
        self._data = self._decider(index)
        managed = sources.managed
        self._writer = AclWriter(
            managed.store,
            managed.index,
            self._limit,
            lines=self.lines,
            follower=managed.follower,
            position=await managed.store.position(),
            limit_name=self.limit_name,
            remove_copies=sources.remove_copies if len(sources.stores) > 1 else None,
            cidr=self._settings.cidr,
        )
        if self._reads_latest and managed.follower is not None:
            self._latest = Latest(managed.store, managed.follower, self.lines)

    def migrate(self, tell: Tell) -> None:
        """Begin to copy the cluster's own ACLs to the centralised ones, if that is configured.

        ``tell`` is told what was created and what was deleted there.
        """
        if self._sources is not None and self._sources.migration is not None:
            self._sources.migration.tell = tell
            self._sources.migration.start()

    def migration_problem(self) -> str:
        """Return why the cluster's own ACLs are not copied any more; "" if they are."""
        migration = None if self._sources is None else self._sources.migration
        return "" if migration is None else migration.problem

    async def close(self) -> None:
        """Finish the changes that wait, refuse later ones, and close the store."""
        if self._writer is not None:
            await self._writer.close()
        if self._sources is not None:
            await self._sources.close()

    def position(self) -> Callable[[], Position]:
        """Return what tells, as fast as can be, the position of the store whose ACLs decide.

        While a change of many ACLs takes effect it is still the one before, and what is decided is
        what it or the next one would decide.
        """
        return self._loaded.position(self._writer)

    @property
    def stores(self) -> Sequence[AclStore]:
        """All stores whose ACLs decide."""
        return () if self._sources is None else tuple(self._sources.stores.values())

    @property
    def store_for_records(self) -> AclStore | None:
        """The store that keeps records as well; None if that is none of those with ACLs."""
        return None if self._sources is None else self._sources.for_records

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

    def decisions(
        self, session: Session, operation: AclOperation, resource_type: ResourceType
    ) -> Mapping[str | None, Decision] | None:
        """Return the decisions on an operation by resource name, another object after each change.

        It is None if a resource without ACLs is open to everyone: then ACLs of others count, too.
        """
        data = self._data or _not_started()
        if data.allow_everyone_if_no_acl_found:
            return None
        return data.decisions(session, operation, resource_type)

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

    def catch_up(self) -> Awaitable[bool] | None:
        """Wait for what others have changed, if ``aclbroker.store.read`` is ``latest``.

        The result is False if that cannot be known within 10 seconds.
        """
        return None if self._latest is None else self._latest.reached()

    def acls(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return all ACLs that a filter matches; the caller uses them up before it awaits."""
        # Being an `AclListing`, it also has them by resource pattern, which DescribeAcls uses.
        return self._loaded.managed.index.find(acl_filter)

    def host_fault(self, host: str) -> str | None:
        """Return why an ACL's host can match no client; None if it can."""
        return host_fault(host, cidr=self._settings.cidr)

    async def create_acls(
        self, context: RequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Create ACLs, each on its own; the results are in order. A refused one says why."""
        host = context.session.host
        results = await (self._writer or _not_started()).create(
            bindings, Origin.of(context.session)
        )
        some = islice(zip(bindings, results, strict=True), HOSTS_LOOKED_AT)
        hosts = {each.host for each, result in some if result.error_code == AclError.NONE}

        def warn(event: str, **values: Any) -> None:
            self.lines.write(log.warning, event, host, peer=host, **values)

        warn_of_hosts(hosts, self._settings.cidr, warn)
        return results

    async def delete_acls(
        self, context: RequestContext, filters: Sequence[AclFilter]
    ) -> list[AclDeleteResult]:
        """Delete what any filter matches; each result lists all that its own filter matched."""
        return await (self._writer or _not_started()).delete(filters, Origin.of(context.session))

    @property
    def _loaded(self) -> Sources:
        if self._sources is None or self._data is None:
            _not_started()
        return self._sources

    def _decider(self, index: AclIndex) -> StandardAuthorizerData:
        return StandardAuthorizerData(
            index,
            self._settings.super_users,
            self._settings.allow_everyone_if_no_acl_found,
            self._settings.broker_users,
        )


def follower_of(authorizer: StandardAuthorizer, store: AclStore) -> Follower | None:
    """Return what follows a store for the authorizer; None if nothing does."""
    source = authorizer._loaded.source_of(store)
    return None if source is None else source.follower


def staleness_of(authorizer: StandardAuthorizer) -> Sequence[tuple[AclStore, Staleness]]:
    """Return the stores that are elsewhere, with what looks after each, once it is started."""
    return authorizer._loaded.looked_after()


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


def _not_started() -> NoReturn:
    # Before all ACLs are loaded, one that denies may be missing.
    raise RuntimeError("the authorizer is not started")
