"""The cluster upstream as the gateway knows it, and the connection for its own requests."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from aclbroker.broker.backends.backend import Answers, FeatureRange, KeyVersions
from aclbroker.broker.backends.upstream.access import Access, UpstreamUnavailable, shown
from aclbroker.broker.backends.upstream.connection import UpstreamConnection, connect
from aclbroker.broker.backends.upstream.keys import FORWARDED, NEEDED
from aclbroker.broker.backends.upstream.pipeline import Pipeline
from aclbroker.broker.client.errors import code_name
from aclbroker.broker.client.settings import Address
from aclbroker.broker.observability.logs import get_logger
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aclbroker.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

log = get_logger()

_FIRST_RETRY_S: Final = 0.5
_LONGEST_RETRY_S: Final = 10.0
_REFRESHED_S: Final = 1.0
_REFRESHED_BY_ITSELF_S: Final = 30.0
_SOFTWARE: Final = "aclbroker"

_SETTING: Final = "aclbroker.upstream.bootstrap.servers"
"""The setting with the addresses of the cluster, for the log."""


class ClusterState(NamedTuple):
    """The answers of a broker upstream about its cluster, API versions and features.

    ``versions`` are those that both sides know, of all keys; ``offered`` are those that clients may
    use, and ``listed`` has the same for ApiVersions.
    """

    cluster_id: str
    brokers: Mapping[int, Address]
    versions: Mapping[int, range]
    offered: Mapping[int, range]
    listed: Sequence[KeyVersions]
    features: Mapping[str, FeatureRange]
    features_epoch: int


_UNKNOWN: Final = ClusterState("", {}, {}, {}, (), {}, -1)


def _tell_nobody(_reason: str) -> None:
    """Ignore the reason."""


class UpstreamCluster:
    """A cluster upstream. Its state is there once `begin` has returned.

    It keeps the connection for the gateway's own requests open, and the state up to date.
    ``problem`` is the reason if the cluster is out of reach, else "".
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self.problem = ""
        self.relayed = self.decoded = 0
        """How many requests of clients were forwarded without being decoded, and decoded."""

        self.state = _UNKNOWN
        self._own: UpstreamConnection | None = None
        self._reached = asyncio.Event()
        self._watching: list[asyncio.Task[None]] = []
        self._refreshed_at = -math.inf
        self._changed = asyncio.Event()

    async def reach(self) -> None:
        """Connect to one of the addresses and learn its cluster; raises `UpstreamUnavailable`."""
        reasons = []
        for address in dict.fromkeys((*self.access.addresses, *self.state.brokers.values())):
            try:
                connection = await connect(address, self.access)
            except UpstreamUnavailable as error:
                reasons.append(str(error))
                continue
            try:
                self._take(await _learn(connection))
            except UpstreamUnavailable as error:
                connection.close()
                reasons.append(str(error))
            except BaseException:
                connection.close()
                raise
            else:
                self._own = connection
                self._reached.set()
                return
        raise UpstreamUnavailable("; ".join(reasons))

    async def begin(self, waits: Callable[[str], None]) -> None:
        """Reach the cluster, and keep the connection open until `close`.

        ``waits`` is called with the reason as long as the cluster is out of reach.
        """
        await self._reach_again(waits)
        tasks = (self._watch(), self._refresh_now_and_then())
        self._watching = [asyncio.create_task(task) for task in tasks]

    async def close(self) -> None:
        """Close the connection for the gateway's own requests."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        if self._own is not None:
            self._own.close()

    def pipeline(self, node_id: int | None, answers: Answers) -> Pipeline:
        """Return the pipeline of one client, whose first request connects to a broker.

        Without a node id that is any broker.
        """
        return Pipeline(partial(self._connect_client, node_id), answers)

    def version(self, key: ApiKey) -> int:
        """Return the highest version of a key that both sides know, for own requests."""
        versions = self.state.versions.get(key, range(0))
        if not versions:
            raise UpstreamUnavailable(f"the cluster upstream does not offer {key.name}")
        return versions[-1]

    async def ask(self, key: ApiKey, message: Any) -> Any:
        """Send one of the gateway's own requests and return its answer.

        Raises `UpstreamUnavailable`, also if no answer comes within ``request.timeout.ms``.
        """
        own = self._own
        try:
            async with asyncio.timeout(self.access.settings.request_timeout):
                await self._reached.wait()
                own = self._own
                if own is None:
                    raise UpstreamUnavailable(self.problem)
                return await own.ask(key, self.version(key), message)
        except TimeoutError:
            if own is not None:
                # A broker that is silent may be gone without a word; another one can answer.
                own.close()
            raise UpstreamUnavailable(f"no answer to {key.name} in time") from None

    async def refresh(self) -> None:
        """Ask which brokers there are, unless that was asked within the last second.

        Raises `UpstreamUnavailable`.
        """
        now = asyncio.get_running_loop().time()
        if now < self._refreshed_at + _REFRESHED_S:
            return
        self._refreshed_at = now
        answer = await self.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
        if not answer.error_code:
            self._take(self.state._replace(brokers=_brokers(answer)))

    async def changed(self) -> None:
        """Wait until there are other brokers."""
        await self._changed.wait()

    def _take(self, state: ClusterState) -> None:
        before, self.state = self.state, state
        if before.brokers != state.brokers:
            self._changed.set()
            self._changed = asyncio.Event()

    async def _connect_client(self, node_id: int | None) -> UpstreamConnection:
        brokers = self.state.brokers
        chosen = list(brokers) if node_id is None else [node_id]
        random.shuffle(chosen)
        error = UpstreamUnavailable(f"there is no broker {node_id} upstream")
        for each in chosen:
            if each in brokers:
                try:
                    return await connect(brokers[each], self.access)
                except UpstreamUnavailable as failure:
                    error = failure
        await asyncio.sleep(self.access.failure_delay)
        raise error

    async def _refresh_now_and_then(self) -> None:
        """Notice brokers that come and go, whether or not an answer names them."""
        while True:
            await asyncio.sleep(_REFRESHED_BY_ITSELF_S)
            with contextlib.suppress(UpstreamUnavailable):
                await self.refresh()

    async def _watch(self) -> None:
        while True:
            if self._own is not None:
                await self._own.closed
                self._own = None
                self._reached.clear()
            await self._reach_again(_tell_nobody)

    async def _reach_again(self, waits: Callable[[str], None]) -> None:
        """Reach the cluster; brokers close idle connections, so that the first loss is no news."""
        delay = _FIRST_RETRY_S
        while True:
            try:
                await self.reach()
            except UpstreamUnavailable as error:
                waits(str(error))
                if self.problem != str(error):
                    self.problem = str(error)
                    log.error(
                        "cluster upstream is out of reach", reason=self.problem, setting=_SETTING
                    )
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LONGEST_RETRY_S)
            else:
                if self.problem:
                    self.problem = ""
                    log.warning("cluster upstream is within reach again")
                return


async def _learn(connection: UpstreamConnection) -> ClusterState:
    """Ask a broker for its API versions, features and cluster; raises `UpstreamUnavailable`."""
    answer = await _api_versions(connection)
    theirs = {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}
    versions = {key: _common(APIS[key].versions, theirs.get(key, range(0))) for key in APIS}
    missing = [key.name for key in NEEDED if not versions[key]]
    if missing:
        names = ", ".join(missing)
        raise UpstreamUnavailable(f"{shown(connection.address)} does not offer {names}")
    key = ApiKey.DESCRIBE_CLUSTER
    cluster = await connection.ask(key, versions[key][-1], DescribeClusterRequest())
    if cluster.error_code:
        raise _refused(connection, key, cluster.error_code)
    offered: dict[int, range] = {key: versions[key] for key in FORWARDED}
    return ClusterState(
        cluster.cluster_id,
        _brokers(cluster),
        versions,
        offered,
        tuple(KeyVersions(key, each[0], each[-1]) for key, each in offered.items() if each),
        _features(answer),
        answer.finalized_features_epoch,
    )


def _brokers(cluster: DescribeClusterResponse) -> dict[int, Address]:
    return {each.broker_id: (each.host, each.port) for each in cluster.brokers}


async def _api_versions(connection: UpstreamConnection) -> ApiVersionsResponse:
    key = ApiKey.API_VERSIONS
    version = APIS[key].versions[-1]
    request = ApiVersionsRequest(_SOFTWARE, "1")
    # A broker that does not know the version answers at version 0, which any client can read.
    answer: ApiVersionsResponse = await connection.ask(key, version, request)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = await connection.ask(key, 0, request)
    if answer.error_code:
        raise _refused(connection, key, answer.error_code)
    return answer


def _refused(connection: UpstreamConnection, key: ApiKey, code: int) -> UpstreamUnavailable:
    address = shown(connection.address)
    return UpstreamUnavailable(f"{address} answers {key.name} with {code_name(code)}")


def _features(answer: ApiVersionsResponse) -> dict[str, FeatureRange]:
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return {
        feature.name: FeatureRange(
            feature.min_version, feature.max_version, levels.get(feature.name, 0)
        )
        for feature in answer.supported_features
    }


def _common(ours: range, theirs: range) -> range:
    return range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
