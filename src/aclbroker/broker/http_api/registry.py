"""The registry of clusters: names for their ids, with addresses, as records of the store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from aclbroker.acl.authorizer import RequestContext
from aclbroker.broker.credentials.changes import Changes, HasReached, NotStored
from aclbroker.broker.credentials.credentials import Listen
from aclbroker.broker.http_api.calls import Caller
from aclbroker.broker.http_api.errors import ApiError, bad_request, shown
from aclbroker.broker.http_api.reading import Fields, kafka_cluster_of
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.audit_changes import Change
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.stores import AclStore, Origin
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.turns import in_turns

KIND: Final = "mds.cluster"
MOST_CLUSTERS: Final = 1_000
_MOST_HOSTS: Final = 100

_KAFKA: Final = "kafka-cluster"
_COMPONENTS: Final = (
    "connect-cluster",
    "ksql-cluster",
    "schema-registry-cluster",
    "cmf",
    "flink-environment",
)
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "HTTP", "HTTPS")
_NAME: Final = re.compile(r"[\x21-\x7e]{1,255}")

Cluster = dict[str, Any]


class ClusterRegistry:
    """Clusters by name; `load` has to be awaited first. ``store`` None is none, and none can be
    registered.

    All methods that are awaited may raise `StoreError`.
    """

    def __init__(self, store: AclStore | None, lines: LimitedLog) -> None:
        self._store = store
        self._changes = None if store is None else Changes(store, KIND, lines)
        self._clusters: dict[str, Cluster] = {}

    async def load(self) -> None:
        """Read what the open store has. A record that is no cluster is left out, and stays."""
        if self._store is not None:
            self.take(await self._store.load_records(KIND), True)

    def take(self, values: Mapping[str, str | None], is_all: bool) -> None:
        """Take the new values of records; None is one that was removed."""
        if is_all:
            self._clusters = {}
        for name, text in values.items():
            try:
                self._clusters[name] = _cluster(name, json.loads(text or "null"))
            except (ValueError, ApiError):
                self._clusters.pop(name, None)

    async def follow(self, listen: Listen, has_reached: HasReached) -> None:
        """Take what others change in a shared store, too, from now on.

        ``listen`` has a function told of the records of a kind, and ``has_reached`` waits until all
        was told up to a position.
        """
        if self._changes is not None:
            self._changes.followed_by(has_reached)
            listen(KIND, self.take)
            # What was changed since it was loaded has been told already.
            await self.load()

    def clusters(self, cluster_type: str | None) -> list[Cluster]:
        """Return all clusters, or those of a type, such as ``connect-cluster``."""
        if cluster_type is not None and cluster_type not in (_KAFKA, *_COMPONENTS):
            allowed = ", ".join((_KAFKA, *_COMPONENTS))
            raise bad_request(f"clusterType is {shown(cluster_type)}; allowed are {allowed}.")
        return [
            cluster
            for cluster in self._clusters.values()
            if cluster_type in (None, _type_of(cluster))
        ]

    def cluster(self, name: str) -> Cluster:
        """Return a cluster by its name; raises `ApiError`."""
        if name not in self._clusters:
            text = f"No cluster of the name {shown(name)} is registered."
            raise ApiError(HTTPStatus.NOT_FOUND, text)
        return self._clusters[name]

    async def register(self, caller: Caller, audit: Audit, given: Sequence[Cluster]) -> None:
        """Register clusters, all or none; raises `ApiError`, `NotStored`.

        A registered name keeps its cluster and gets the new addresses. Another cluster under that
        name is a conflict, and so is a second name of a cluster.
        """
        put = {each["clusterName"]: json.dumps(each) for each in given}
        changes = self._writable()
        async with changes.one(Origin.of(caller.session)):
            after = _with(self._clusters, given)
            with _told(audit, caller.context(ApiKey.CREATE_ACLS), "REGISTER_CLUSTER", given):
                await changes.apply(put, ())
            if not changes.is_followed:
                self._clusters = after

    async def unregister(self, caller: Caller, audit: Audit, name: str) -> None:
        """Remove a cluster by its name; raises `ApiError`, `NotStored`."""
        changes = self._writable()
        async with changes.one(Origin.of(caller.session)):
            cluster = self.cluster(name)
            context = caller.context(ApiKey.DELETE_ACLS)
            with _told(audit, context, "UNREGISTER_CLUSTER", [cluster]):
                await changes.apply({}, (name,))
            if not changes.is_followed:
                del self._clusters[name]

    async def close(self) -> None:
        """Finish the changes that were asked for; refuse later ones."""
        if self._changes is not None:
            await self._changes.close()

    def _writable(self) -> Changes:
        if self._changes is None:
            raise ApiError(HTTPStatus.NOT_IMPLEMENTED, "This server has no store for a registry.")
        return self._changes


def clusters_of(body: Any) -> list[Cluster]:
    """Return the clusters of a body; may pause, raises `ApiError`."""
    if not isinstance(body, list) or not body:
        raise bad_request("The body must be a list of clusters.")
    if len(body) > MOST_CLUSTERS:
        raise _too_many()
    return [_cluster(f"[{at}]", value) for at, value in enumerate(in_turns(body, at_once=1))]


def _cluster(place: str, value: Any) -> Cluster:
    fields = Fields(place, value, ("clusterName", "scope", "hosts", "protocol"))
    name = fields.text("clusterName")
    if not _NAME.fullmatch(name):
        raise fields.wrong("clusterName", "must be 1 to 255 printable characters of ASCII")
    clusters = fields.part("scope", ("clusters",)).part("clusters", (_KAFKA, *_COMPONENTS))
    scope = {_KAFKA: kafka_cluster_of(clusters)}
    named = {each: text for each in _COMPONENTS if (text := clusters.optional_text(each))}
    if len(named) > 1:
        raise bad_request(f"{place}.scope.clusters names more than one component.")
    protocol = fields.optional_text("protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        raise fields.wrong("protocol", f"must be one of {', '.join(_PROTOCOLS)}")
    given = fields.items("hosts")
    if len(given) > _MOST_HOSTS:
        raise fields.wrong("hosts", f"has more than {_MOST_HOSTS} entries")
    hosts = [_host(f"{place}.hosts[{at}]", each) for at, each in enumerate(given)]
    found: Cluster = {"clusterName": name, "scope": {"clusters": scope | named}, "hosts": hosts}
    return found if protocol is None else found | {"protocol": protocol}


def _host(place: str, value: Any) -> dict[str, Any]:
    fields = Fields(place, value, ("host", "port"))
    return {"host": fields.text("host"), "port": fields.number("port", 0, 65535)}


def _type_of(cluster: Cluster) -> str:
    clusters = cluster["scope"]["clusters"]
    return next((each for each in _COMPONENTS if each in clusters), _KAFKA)


def _with(clusters: Mapping[str, Cluster], given: Sequence[Cluster]) -> dict[str, Cluster]:
    """Return the clusters with those that are given; raises `ApiError` for a conflict."""
    after = dict(clusters)
    names = {_scope(each): name for name, each in after.items()}
    for cluster in given:
        name = cluster["clusterName"]
        if name in after and _scope(after[name]) != _scope(cluster):
            raise _conflict(name, "another cluster", name)
        other = names.setdefault(_scope(cluster), name)
        if name not in after and other != name:
            raise _conflict(name, "this cluster under another name", other)
        after[name] = cluster
    if len(after) > MOST_CLUSTERS:
        raise _too_many()
    return after


def _scope(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(cluster["scope"]["clusters"].items()))


def _conflict(name: str, what: str, other: str) -> ApiError:
    text = f"{shown(name)}: the registry has {what}, {shown(other)}."
    return ApiError(HTTPStatus.CONFLICT, text)


def _too_many() -> ApiError:
    return bad_request(f"At most {MOST_CLUSTERS} clusters can be registered.")


@contextmanager
def _told(
    audit: Audit, context: RequestContext, action: str, clusters: Iterable[Cluster]
) -> Iterator[None]:
    """Tell the audit log how a change of clusters ends that is made in the block.

    One that is not seen in time is stored all the same.
    """
    try:
        yield
    except NotStored as failure:
        ended = ErrorCode.UNKNOWN_SERVER_ERROR.name, str(failure)
        audit.changed(context, [_change(action, each, *ended) for each in clusters])
        raise
    audit.changed(context, [_change(action, each) for each in clusters])


def _change(
    action: str, cluster: Cluster, error: str = "NONE", message: str | None = None
) -> Change:
    keys = {"name": cluster["clusterName"], **cluster["scope"]["clusters"]}
    return Change(action, {"cluster": keys}, error, message)
