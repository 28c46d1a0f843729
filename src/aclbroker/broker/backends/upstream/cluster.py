"""What the gateway knows of the cluster upstream, and the connection for its own requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.broker.backends.backend import FeatureRange, KeyVersions
from aclbroker.broker.backends.upstream.access import Access, UpstreamUnavailable
from aclbroker.broker.backends.upstream.connection import UpstreamConnection, connect
from aclbroker.broker.backends.upstream.keys import FORWARDED, NEEDED
from aclbroker.broker.backends.upstream.pipeline import Pipeline
from aclbroker.broker.client.errors import code_name
from aclbroker.broker.client.settings import Address
from aclbroker.broker.observability.logs import get_logger
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aclbroker.protocol.messages.describe_cluster import DescribeClusterRequest

log = get_logger()

_FIRST_RETRY_S: Final = 0.5
_LONGEST_RETRY_S: Final = 10.0
_SOFTWARE: Final = "aclbroker"


class ClusterState(NamedTuple):
    """What a broker upstream has told: its cluster, the brokers, API versions and features.

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


def _tell_nobody(_reason: str) -> None:
    """Ignore the reason."""


class UpstreamCluster:
    """A cluster upstream. Its state is there once `begin` has returned.

    It keeps the connection for the gateway's own requests open, and the state up to date.
    ``problem`` says why the cluster is out of reach; "" if it is not.
    """

    state: ClusterState

    def __init__(self, access: Access) -> None:
        self.access = access
        self.problem = ""
        self._own: UpstreamConnection | None = None
        self._reached = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def reach(self) -> None:
        """Connect to one of the addresses and learn its cluster; raises `UpstreamUnavailable`."""
        reasons = []
        for address in self.access.addresses:
            try:
                connection = await connect(address, self.access)
            except UpstreamUnavailable as error:
                reasons.append(str(error))
                continue
            try:
                self.state = await _learn(connection)
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
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Close the connection for the gateway's own requests."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        if self._own is not None:
            self._own.close()

    def pipeline(self, lost: Callable[[], None]) -> Pipeline:
        """Return the pipeline of one client, whose first request connects to the broker."""
        return Pipeline(self._connect_client, lost)

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
        try:
            async with asyncio.timeout(self.access.settings.request_timeout):
                await self._reached.wait()
                if self._own is None:
                    raise UpstreamUnavailable(self.problem)
                return await self._own.ask(key, self.version(key), message)
        except TimeoutError:
            raise UpstreamUnavailable(f"no answer to {key.name} in time") from None

    async def _connect_client(self) -> UpstreamConnection:
        try:
            [address] = self.state.brokers.values()
            return await connect(address, self.access)
        except UpstreamUnavailable:
            await asyncio.sleep(self.access.failure_delay)
            raise

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
                    log.error("cluster upstream is out of reach", reason=self.problem)
                await asyncio.sleep(delay)
                delay = min(2 * delay, _LONGEST_RETRY_S)
            else:
                if self.problem:
                    self.problem = ""
                    log.warning("cluster upstream is within reach again")
                return


async def _learn(connection: UpstreamConnection) -> ClusterState:
    """Ask a broker for its API versions, features and cluster; raises `UpstreamUnavailable`."""
    told = await _api_versions(connection)
    theirs = {each.api_key: range(each.min_version, each.max_version + 1) for each in told.api_keys}
    versions = {key: _common(APIS[key].versions, theirs.get(key, range(0))) for key in APIS}
    missing = [key.name for key in NEEDED if not versions[key]]
    if missing:
        raise UpstreamUnavailable(f"the broker does not offer {', '.join(missing)}")
    key = ApiKey.DESCRIBE_CLUSTER
    cluster = await connection.ask(key, versions[key][-1], DescribeClusterRequest())
    if cluster.error_code:
        raise UpstreamUnavailable(f"DESCRIBE_CLUSTER: {code_name(cluster.error_code)}")
    brokers = {each.broker_id: (each.host, each.port) for each in cluster.brokers}
    if len(brokers) != 1:
        raise UpstreamUnavailable(
            f"the cluster upstream has {len(brokers)} brokers; the gateway supports one"
        )
    offered = {key: _common(versions[key], most) for key, most in FORWARDED.items()}
    return ClusterState(
        cluster.cluster_id,
        brokers,
        versions,
        offered,
        tuple(KeyVersions(key, each[0], each[-1]) for key, each in offered.items() if each),
        _features(told),
        told.finalized_features_epoch,
    )


async def _api_versions(connection: UpstreamConnection) -> ApiVersionsResponse:
    key = ApiKey.API_VERSIONS
    version = APIS[key].versions[-1]
    request = ApiVersionsRequest(_SOFTWARE, "1")
    # A broker that does not know the version answers at version 0, which any client can read.
    answer: ApiVersionsResponse = await connection.ask(key, version, request)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = await connection.ask(key, 0, request)
    if answer.error_code:
        raise UpstreamUnavailable(f"API_VERSIONS: {code_name(answer.error_code)}")
    return answer


def _features(told: ApiVersionsResponse) -> dict[str, FeatureRange]:
    levels = {each.name: each.max_version_level for each in told.finalized_features}
    return {
        each.name: FeatureRange(each.min_version, each.max_version, levels.get(each.name, 0))
        for each in told.supported_features
    }


def _common(ours: range, theirs: range) -> range:
    return range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
