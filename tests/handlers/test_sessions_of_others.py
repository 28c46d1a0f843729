"""A session of fetches that ends while others have their turn is not counted on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from aclbroker.broker.handlers.services import Services
from aclbroker.broker.memory import sessions as fetch_sessions
from aclbroker.broker.memory.groups.share import ShareHeartbeatRequest
from aclbroker.broker.memory.share import sessions as share_sessions
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import share_fetch as sf
from tests.gate.rights import context
from tests.handlers.memory_parts import TOPICS, ask, cluster_of
from tests.memory.records import NOW, batch

MOST = 50
STEPS = 40
"""More than the turns that a request below has."""


def share_fetch(parts: Services, epoch: int, count: int) -> sf.ShareFetchRequest:
    """A request of many partitions, which forgets as many others."""
    request = sf.ShareFetchRequest("g", "m", epoch, 0, 1, 1 << 20, 500, 500)
    ids = [cluster_of(parts).topics.id_of(name) for name in TOPICS]
    request.topics = [sf.FetchTopic(each, [sf.FetchPartition(0, [])]) for each in ids[:count]]
    request.forgotten_topics_data = [sf.ForgottenTopic(each, [1]) for each in ids]
    return request


def fetch(session_id: int, epoch: int, count: int) -> f.FetchRequest:
    """A request of many partitions, which forgets as many others."""
    request = f.FetchRequest(max_wait_ms=0, session_id=session_id, session_epoch=epoch)
    request.topics = [
        f.FetchTopic(each, partitions=[f.FetchPartition(0)]) for each in TOPICS[:count]
    ]
    request.forgotten_topics_data = [f.ForgottenTopic(each, partitions=[1]) for each in TOPICS]
    return request


async def after(steps: int, asking: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Begin a request; returns when it has had some turns."""
    task = asyncio.ensure_future(asking)
    for _ in range(steps):
        await asyncio.sleep(0)
    return task


async def test_share_sessions(parts: Services, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(share_sessions, "MOST_PARTITIONS", MOST)
    session = context(ApiKey.SHARE_FETCH, 2).session
    key, sessions = share_sessions.Key(1, "g", "m"), cluster_of(parts).share_sessions
    for steps in range(STEPS):
        await ask(parts, session, ApiKey.SHARE_FETCH, 2, share_fetch(parts, 0, 1))
        asking = ask(parts, session, ApiKey.SHARE_FETCH, 2, share_fetch(parts, 1, len(TOPICS)))
        task = await after(steps, asking)
        sessions.open(key, [], object())
        await task
        sessions.close(sessions.find(key))
    # There is still room for as many.
    assert sessions.open(key, [(bytes(16), each) for each in range(MOST)], object())


async def test_what_is_written_while_a_share_fetch_looks_for_records_ends_its_wait(
    parts: Services,
):
    memory = cluster_of(parts)
    memory.groups.configs.set("g", {"share.auto.offset.reset": "earliest"})
    memory.groups.share_heartbeat(ShareHeartbeatRequest("g", "m", 0, names=TOPICS))
    session = context(ApiKey.SHARE_FETCH, 2).session
    request = share_fetch(parts, 0, len(TOPICS))
    request.max_wait_ms = 10_000
    for steps in range(2 * STEPS):
        task = await after(steps, ask(parts, session, ApiKey.SHARE_FETCH, 2, request))
        memory.topics.by_name[TOPICS[1]].partitions[0].log.append(batch(b"x"), now_ms=NOW)
        for _ in range(10 * STEPS):
            await asyncio.sleep(0)
        assert task.done()
        assert any(
            each.acquired_records for topic in task.result().responses for each in topic.partitions
        )


async def test_who_gets_no_share_session_is_told_so_late(
    parts: Services, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(share_sessions, "MOST_PARTITIONS", 0)
    session = context(ApiKey.SHARE_FETCH, 2).session
    request = share_fetch(parts, 0, 1)
    request.max_wait_ms = 500
    task = await after(STEPS, ask(parts, session, ApiKey.SHARE_FETCH, 2, request))
    cluster_of(parts).clock.advance(499)
    await asyncio.sleep(0)
    assert not task.done()
    cluster_of(parts).clock.advance(1)
    assert (await task).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


async def test_sessions_of_consumers(parts: Services, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", MOST)
    session = context(ApiKey.FETCH, 12).session
    sessions = cluster_of(parts).fetch_sessions
    for steps in range(STEPS):
        began = await ask(parts, session, ApiKey.FETCH, 12, fetch(0, 0, 1))
        assert began.session_id
        asking = ask(parts, session, ApiKey.FETCH, 12, fetch(began.session_id, 1, len(TOPICS)))
        task = await after(steps, asking)
        found = sessions.get(began.session_id, session.principals[0])
        assert found is not None
        sessions.close(found)
        await task
    partitions = [fetch_sessions.FetchedPartition("t", b"", each) for each in range(MOST)]
    named = {each.key: each for each in partitions}
    assert sessions.open("User:alice", named, 0, by_ids=False) is not None
