"""What is known of ZooKeeper in memory, over a connection that is made up."""

import asyncio
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError, WriterNotClosedException
from kazoo.protocol.states import ZnodeStat

from aclbroker.acl.bindings import ResourcePattern
from aclbroker.broker.stores import StoreError, StoreUnavailable
from aclbroker.broker.stores.zookeeper import change_nodes
from aclbroker.broker.stores.zookeeper import connection as connection_module
from aclbroker.broker.stores.zookeeper.change_nodes import ChangeNodes
from aclbroker.broker.stores.zookeeper.connection import Connection
from aclbroker.broker.stores.zookeeper.layout import NodeAcls, encode_acls
from aclbroker.broker.stores.zookeeper.mirror import Mirror
from aclbroker.broker.stores.zookeeper.settings import ZookeeperSettings
from aclbroker.broker.stores.zookeeper.tree import read_acls
from tests.acl.examples import LITERAL, READ, TOPIC, allow

WITHIN_S = 30.0
SETTINGS = ZookeeperSettings(("127.0.0.1:1",), session_timeout_ms=100)
STAT = ZnodeStat(*[1] * 11)


class Connected:
    """A connection that tells the same of every node."""

    settings = SETTINGS
    is_connected = True

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def path(self, path):
        return path

    async def one(self, request):
        return None

    async def all(self, requests):
        return [(self.data, STAT)] * len(requests)


def mirror_of(connection) -> Any:
    made: Any = Mirror(SETTINGS)
    made.connection = connection
    return made


def patterns(count):
    return [ResourcePattern(TOPIC, LITERAL, f"topic-{number}") for number in range(count)]


def acls(count):
    return NodeAcls(
        frozenset(allow(f"User:{number}", operation=READ)[3:] for number in range(count))
    )


async def turns_during(work) -> int:
    """How often others have had their turn meanwhile."""
    doing, turns = asyncio.ensure_future(work), 0
    while not doing.done():
        await asyncio.sleep(0)
        turns += 1
    await doing
    return turns


async def test_nobody_waits_for_ever_where_nodes_may_not_be_read():
    mirror = mirror_of(Connected())

    async def refused():
        raise StoreError("ZooKeeper does not allow this")

    mirror._look = refused
    mirror._task = asyncio.create_task(mirror._run())
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailable, match="not read in time"):
            await mirror.refresh()
        await mirror.reached(1)
    mirror._task.cancel()


async def test_others_have_their_turns_while_nodes_are_decoded():
    data = encode_acls(acls(100))

    async def read():
        return [each async for each in read_acls(Connected(data), patterns(100))]  # type: ignore[arg-type]

    assert await turns_during(read()) > len(data) * 100 / 40_000


async def test_others_have_their_turns_while_a_large_change_is_told_and_see_no_part_of_it():
    mirror = mirror_of(Connected())
    seen = set()

    async def look():
        while True:
            seen.add((len(mirror.contents.acls), mirror.position))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    told = dict.fromkeys(patterns(9_000), acls(1))
    assert await turns_during(mirror._tell_change(5, told, {}, None)) > 10
    looking.cancel()
    assert seen <= {(0, 0), (9_000, 5)}


async def test_who_may_not_remove_old_changes_leaves_it_to_others(monkeypatch):
    connection = Connection(SETTINGS, lambda: None)
    asked = []

    class Client:
        def __getattr__(self, method):
            return lambda *_, **__: asked.append(method)

    async def answered(requests):
        begin = len(asked)
        for request in requests:
            request(Client())
        return [NoAuthError() if "delete" in each else STAT for each in asked[begin:]]

    monkeypatch.setattr(connection, "_some", answered)
    nodes = ChangeNodes(connection, lambda: None)
    nodes._names = {each: ["acl_changes_0000000001"] for each in change_nodes.DIRECTORIES}
    for _ in range(2):
        await nodes.purge(10**12)
    assert asked.count("delete_async") == 2


def test_a_client_that_does_not_stop_in_time_is_closed():
    asked = []

    class Client:
        def stop(self):
            raise WriterNotClosedException

        def close(self):
            asked.append("close")

    stopped: Any = Client()
    connection_module._stop(stopped)
    assert asked == ["close"]
