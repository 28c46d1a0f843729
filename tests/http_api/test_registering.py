"""The registry of clusters by itself, in a store that others change as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import pytest

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.broker.credentials.changes import NOT_SEEN, NOT_STORED, NotStored
from aclbroker.broker.http_api.calls import Caller
from aclbroker.broker.http_api.errors import ApiError
from aclbroker.broker.http_api.registry import KIND, MOST_CLUSTERS, ClusterRegistry, clusters_of
from aclbroker.broker.observability.audit_changes import Change
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.stores import Origin
from aclbroker.broker.stores.memory import MemoryStore
from tests.http_api.test_registry import cluster

CALLER = Caller(Session(("User:admin",), "192.0.2.7", "http://:8090", "PLAINTEXT"), None)

Told = list[tuple[str, str, str | None]]


class Recording:
    """What the registry needs of an audit log."""

    def __init__(self) -> None:
        self.told: Told = []

    def changed(self, _context: RequestContext, changes: Iterable[Change]) -> None:
        """Keep what is told."""
        self.told += [(each.action, each.error, each.error_message) for each in changes]


class Follower:
    """Tells the registry what has changed when it waits for that, unless it is late."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._tell: Callable[[Mapping[str, str | None], bool], None] | None = None
        self.is_late = False
        self.asked: list[int] = []
        self.then: dict[str, dict[str, Any]] = {}
        """What others register right after a change of one's own."""

    def listen(self, _kind: str, tell: Callable[[Mapping[str, str | None], bool], None]) -> None:
        """Tell a function."""
        self._tell = tell

    async def has_reached(self, position: int) -> bool:
        """Tell all that there is."""
        if self.is_late:
            return False
        self.asked.append(position)
        if len(self.asked) > 1 and self.then:
            await put(self._store, *self.then.values())
        if self._tell is not None:
            self._tell(dict(await self._store.load_records(KIND)), True)
        return True


async def put(store: MemoryStore, *clusters: dict[str, Any]) -> None:
    """Register clusters as another server does."""
    values = {each["clusterName"]: json.dumps(each) for each in clusters}
    await store.apply_records(KIND, values, (), Origin.now())


async def followed(store: MemoryStore) -> tuple[ClusterRegistry, Follower]:
    """Return the registry of a server that shares a store."""
    registry, follower = ClusterRegistry(store, LimitedLog()), Follower(store)
    await registry.load()
    await registry.follow(follower.listen, follower.has_reached)
    return registry, follower


def names(registry: ClusterRegistry) -> list[str]:
    return [each["clusterName"] for each in registry.clusters(None)]


@pytest.fixture
def audit() -> Any:
    return Recording()


async def test_what_another_server_registers_under_a_name_right_after_it_is_free_stays(
    audit: Any,
) -> None:
    store = MemoryStore(is_shared=True)
    await put(store, cluster("prod", "old"))
    registry, follower = await followed(store)
    follower.then = {"prod": cluster("prod", "new")}
    await registry.unregister(CALLER, audit, "prod")
    assert registry.cluster("prod") == cluster("prod", "new")


async def test_a_change_is_checked_by_what_others_have_registered(audit: Any) -> None:
    store = MemoryStore(is_shared=True)
    registry, follower = await followed(store)
    await put(store, cluster("prod", "k1"))
    with pytest.raises(ApiError, match="another cluster") as refused:
        await registry.register(CALLER, audit, [cluster("prod", "k2")])
    assert refused.value.status == HTTPStatus.CONFLICT
    assert len(follower.asked) == 1
    await put(store, cluster("test", "k2"))
    await registry.unregister(CALLER, audit, "test")
    assert names(registry) == ["prod"]


async def test_what_others_have_registered_must_be_known(audit: Any) -> None:
    store = MemoryStore(is_shared=True)
    registry, follower = await followed(store)
    await put(store, cluster("prod", "k1"))
    follower.is_late = True
    with pytest.raises(NotStored) as refused:
        await registry.register(CALLER, audit, [cluster("prod", "k2")])
    assert str(refused.value) == NOT_STORED
    with pytest.raises(NotStored):
        await registry.unregister(CALLER, audit, "prod")
    assert json.loads((await store.load_records(KIND))["prod"]) == cluster("prod", "k1")


async def test_a_change_that_is_stored_and_not_seen_is_told_in_the_audit_log(
    audit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(is_shared=True)
    registry, follower = await followed(store)
    apply = store.apply_records

    async def then_late(*change: Any) -> int:
        follower.is_late = True
        return await apply(*change)

    monkeypatch.setattr(store, "apply_records", then_late)
    with pytest.raises(NotStored):
        await registry.register(CALLER, audit, [cluster("prod", "k1")])
    follower.is_late = False
    with pytest.raises(NotStored):
        await registry.unregister(CALLER, audit, "prod")
    assert await store.load_records(KIND) == {}
    failed = "UNKNOWN_SERVER_ERROR", NOT_SEEN
    assert audit.told == [("REGISTER_CLUSTER", *failed), ("UNREGISTER_CLUSTER", *failed)]


async def test_no_more_clusters_are_looked_at_than_can_be_registered(audit: Any) -> None:
    registry = ClusterRegistry(MemoryStore(), LimitedLog())
    with pytest.raises(ApiError, match="At most"):
        # These clusters are invalid, but their number is checked first.
        clusters_of([{}] * (MOST_CLUSTERS + 1))
    most = [cluster(f"n{number}", f"k{number}") for number in range(MOST_CLUSTERS)]
    await registry.register(CALLER, audit, most)
    assert len(names(registry)) == MOST_CLUSTERS
    with pytest.raises(ApiError, match="At most"):
        await registry.register(CALLER, audit, [cluster("more", "more")])


async def test_a_name_and_a_cluster_are_given_once_within_a_call(audit: Any) -> None:
    registry = ClusterRegistry(MemoryStore(), LimitedLog())
    same = cluster("prod", "k1")
    for other in (cluster("prod", "k2"), cluster("test", "k1")):
        with pytest.raises(ApiError) as refused:
            await registry.register(CALLER, audit, [same, other])
        assert refused.value.status == HTTPStatus.CONFLICT
    await registry.register(CALLER, audit, [same, same])
    await registry.unregister(CALLER, audit, "prod")
    assert names(registry) == []
