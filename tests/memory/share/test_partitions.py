"""Where share partitions begin, what they take, and when they are forgotten."""

from __future__ import annotations

import pytest

from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
from aclbroker.broker.memory.groups import GroupError, GroupSettings
from aclbroker.broker.memory.groups.share import ShareHeartbeatRequest
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.share import ShareError
from aclbroker.broker.memory.share.acknowledging import Acknowledgement, acknowledge
from aclbroker.broker.memory.share.partition import Wanted
from aclbroker.broker.memory.share.sessions import Key
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch

HOUR_MS = 3_600_000


@pytest.fixture
def cluster() -> MemoryCluster:
    made = MemoryCluster(Clock(source=lambda: NOW), [1], MemorySettings())
    made.topics.create("t", 1)
    return made


def joined(cluster: MemoryCluster, group_id: str = "g", member_id: str = "m") -> tuple[bytes, int]:
    """Let a member join; returns the place that it shares."""
    request = ShareHeartbeatRequest(group_id, member_id, 0, names=("t",))
    assert cluster.groups.share_heartbeat(request).assignment
    return cluster.topics.id_of("t"), 0


def log_of(cluster: MemoryCluster) -> PartitionLog:
    found = cluster.topics.partition("t", 0)
    assert found is not None
    return found.log


@pytest.mark.parametrize(
    ("reset", "start"),
    [("earliest", 0), ("latest", 3), ("by_duration:PT90M", 1), ("by_duration:PT1S", 3)],
)
def test_a_group_begins_where_its_settings_say(cluster: MemoryCluster, reset: str, start: int):
    for hours in (3, 1, 1):
        log_of(cluster).append(batch(b"x", time_ms=NOW - hours * HOUR_MS), now_ms=NOW)
    cluster.groups.configs.set("g", {"share.auto.offset.reset": reset})
    place = joined(cluster)
    assert cluster.share_partitions.open("g", place, log_of(cluster)).start == start


def test_what_a_group_takes_is_free_when_it_is_deleted(cluster: MemoryCluster):
    before = cluster.groups.account.taken
    place = joined(cluster)
    log_of(cluster).append(batch(b"a", b"b", b"c"), now_ms=NOW)
    cluster.share_partitions.begin_at("g", place, 0)
    shared = cluster.share_partitions.open("g", place, log_of(cluster))
    assert shared.acquire(Wanted("m", 5, 5), 0, [(0, 2)])
    acknowledge(shared, "m", [Acknowledgement(1, 1, [1])])
    assert cluster.groups.account.taken > before
    cluster.clock.advance(60_000)
    assert cluster.groups.delete("g") == ErrorCode.NONE
    assert cluster.groups.account.taken == before
    # Who still holds on to it gets nothing of it any more.
    assert shared.acquire(Wanted("m", 5, 5), 0, [(0, 2)]) == []
    assert cluster.groups.account.taken == before


def test_a_time_that_nobody_has_records_for_any_more_changes_nothing(cluster: MemoryCluster):
    place, log = joined(cluster), log_of(cluster)
    cluster.share_partitions.begin_at("g", place, 0)
    shared = cluster.share_partitions.open("g", place, log)
    assert shared.acquire(Wanted("m", 4, 4), 0, [(0, 3)])
    acknowledge(shared, "m", [Acknowledgement(0, 3, [1])])
    assert cluster.share_partitions.progress("g", place, log).start == 0
    cluster.clock.advance(31_000)
    assert cluster.share_partitions.progress("g", place, log).start == 0


def test_what_was_only_renewed_is_no_progress_until_its_time_is_up(cluster: MemoryCluster):
    place = joined(cluster)
    shared = cluster.share_partitions.open("g", place, log_of(cluster))
    assert shared.acquire(Wanted("m", 1, 1), 0, [(0, 0)])
    cluster.clock.advance(20_000)
    acknowledge(shared, "m", [Acknowledgement(0, 0, [4])])
    cluster.clock.advance(20_000)
    assert cluster.share_partitions.progress("g", place, log_of(cluster)).start == -1
    assert shared.next_offset == 1
    cluster.clock.advance(10_001)
    assert cluster.share_partitions.progress("g", place, log_of(cluster)).start == 0
    assert shared.next_offset == 0


def test_nothing_new_is_acquired_where_there_is_no_room(cluster: MemoryCluster):
    place = joined(cluster)
    cluster.share_partitions.begin_at("g", place, 0)
    shared = cluster.share_partitions.open("g", place, log_of(cluster))
    assert shared.acquire(Wanted("m", 1, 1), 0, [(0, 0)])
    cluster.groups.account.limit = cluster.groups.account.taken
    assert shared.acquire(Wanted("m", 1, 1), 1, [(1, 1)]) == []
    shared.release("m")
    assert shared.acquire(Wanted("n", 1, 1), 0, [(0, 0)])
    with pytest.raises(GroupError):
        cluster.share_partitions.begin_at("other", place, 0)


def test_a_topic_that_is_deleted_is_forgotten(cluster: MemoryCluster):
    place = joined(cluster)
    cluster.share_partitions.begin_at("g", place, 0)
    taken = cluster.groups.account.taken
    cluster.topics.delete(cluster.topics.by_name["t"])
    assert cluster.share_partitions.find("g", place) is None
    assert cluster.groups.account.taken < taken


def test_progress_lasts_beyond_the_last_session_and_its_beginning_does_not(cluster: MemoryCluster):
    place = joined(cluster)
    key = Key(1, "g", "m")
    session = cluster.share_sessions.open(key, [place], object())
    first = cluster.share_partitions.open("g", place, log_of(cluster))
    cluster.end_share_session(session)
    assert cluster.share_partitions.find("g", place) is None
    session = cluster.share_sessions.open(key, [place], object())
    shared = cluster.share_partitions.open("g", place, log_of(cluster))
    assert shared is not first
    log_of(cluster).append(batch(b"a"), now_ms=NOW)
    assert shared.acquire(Wanted("m", 1, 1), 0, [(0, 0)])
    cluster.end_share_session(session)
    assert cluster.share_partitions.find("g", place) is shared
    assert shared.next_offset == 0


def test_there_are_only_so_many_sessions():
    settings = MemorySettings(groups=GroupSettings(share_max_sessions=2))
    cluster = MemoryCluster(Clock(source=lambda: NOW), [1], settings)
    for name in "ab":
        cluster.share_sessions.open(Key(1, "g", name), [], object())
    with pytest.raises(ShareError) as refused:
        cluster.share_sessions.open(Key(1, "g", "c"), [], object())
    assert refused.value.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    cluster.share_sessions.open(Key(1, "g", "a"), [], object())
    assert len(cluster.share_sessions) == 2


def test_what_a_group_shares_of_a_topic_that_is_deleted_is_forgotten(cluster: MemoryCluster):
    topic_id, _ = joined(cluster)
    group = cluster.groups.share_group("g")
    assert topic_id in group.initialized
    taken = cluster.groups.account.taken
    cluster.topics.delete(cluster.topics.by_name["t"])
    assert not group.initialized
    assert cluster.groups.account.taken < taken
