"""What a client of a cluster in memory has begun to change when it goes away is changed wholly."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aclbroker.broker.handlers.services import Services
from aclbroker.broker.memory import MemoryCluster
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.name_regex import NameRegex
from aclbroker.broker.server.dispatch import dispatch
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from aclbroker.protocol.messages.list_transactions import ListTransactionsRequest
from aclbroker.protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from aclbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.gate.rights import context
from tests.handlers.memory_parts import TOPICS, ask, cluster_of
from tests.support.client import request_frame

DAY_MS = 24 * 3600 * 1000


async def asked_and_gone(
    parts: Services,
    key: ApiKey,
    version: int,
    request: Any,
    has_begun: Callable[[MemoryCluster], bool],
) -> None:
    """Send a request; the client goes away when the change has begun and is not done."""
    frame = request_frame(key, version, request)[4:]
    awaited = dispatch(parts, context(key, version).session, frame)
    assert isinstance(awaited, Awaitable)
    answer = asyncio.ensure_future(awaited)
    # The change can have begun already, and a task that never ran ends by nothing but a cancel.
    await asyncio.sleep(0)
    while not has_begun(cluster_of(parts)):
        assert not answer.done()
        await asyncio.sleep(0)
    assert not answer.done()
    answer.cancel()
    await asyncio.wait([answer])


@pytest.mark.parametrize(
    ("key", "version", "request_"),
    [
        (ApiKey.LIST_TRANSACTIONS, 2, ListTransactionsRequest([], [], -1, "t.*")),
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 60_000, None, "t.*", None, []),
        ),
    ],
    ids=["transactions", "topics"],
)
async def test_nothing_more_is_matched_for_a_client_that_is_gone(
    parts: Services,
    monkeypatch: pytest.MonkeyPatch,
    key: ApiKey,
    version: int,
    request_: Any,
):
    for name in TOPICS:
        cluster_of(parts).transactions.initialize(name, 60_000, None)
    matched: list[str] = []
    matches = NameRegex.matches

    def noted(self: NameRegex, name: str) -> bool:
        matched.append(name)
        return matches(self, name)

    monkeypatch.setattr(NameRegex, "matches", noted)
    await asked_and_gone(parts, key, version, request_, lambda _: len(matched) > 5)
    assert len(matched) < len(TOPICS)
    assert parts.turns.unfinished == 0
    assert "g" not in cluster_of(parts).groups.table.groups


async def test_a_topic_is_deleted_with_all_that_is_known_of_it(parts: Services):
    memory = cluster_of(parts)
    big = memory.topics.create("big", 200)
    assert big is not None
    memory.groups.offsets.commit("g", [NewOffset("big", 0, 7)])
    request = DeleteTopicsRequest([DeleteTopicState("big")], timeout_ms=1)
    await asked_and_gone(
        parts, ApiKey.DELETE_TOPICS, 6, request, lambda memory: not memory.topics.exists("big")
    )
    assert not memory.topics.exists("big")
    assert memory.groups.offsets.get("g", "big", 0) is None


@pytest.mark.parametrize(
    ("key", "request_"),
    [
        (ApiKey.SHARE_GROUP_HEARTBEAT, ShareGroupHeartbeatRequest("g", "m", 0, None, TOPICS)),
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 60_000, TOPICS, None, None, []),
        ),
    ],
    ids=["share", "consumer"],
)
async def test_a_member_that_has_joined_is_removed_when_its_session_is_over(
    parts: Services, key: ApiKey, request_: Any
):
    memory = cluster_of(parts)
    await asked_and_gone(parts, key, 1, request_, lambda memory: "g" in memory.groups.table.groups)
    group: Any = memory.groups.table.groups["g"]
    assert list(group.members) == ["m"]
    memory.clock.advance(DAY_MS)
    assert not group.members


async def test_share_sessions_end_with_their_connection_whatever_its_session_has_become(
    parts: Services,
):
    memory = cluster_of(parts)
    first = context(ApiKey.SHARE_FETCH, 2).session
    request = ShareFetchRequest("g", "m", 0, 0, 1, 1 << 20, 500, 500)
    request.topics = [FetchTopic(memory.topics.id_of("t0"), [FetchPartition(0, [])])]
    assert (await ask(parts, first, ApiKey.SHARE_FETCH, 2, request)).error_code == 0
    assert len(memory.share_sessions) == 1
    parts.disconnected(context(ApiKey.SHARE_FETCH, 2).session)
    assert len(memory.share_sessions) == 1
    parts.disconnected(dataclasses.replace(first, principals=("User:alice", "Group:new")))
    assert len(memory.share_sessions) == 0
