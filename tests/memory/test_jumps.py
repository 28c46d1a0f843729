"""Time that is moved far: what is due happens at its time, and nothing is done where nothing is."""

import math
from collections.abc import Callable
from random import Random

import pytest

from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
from aclbroker.broker.memory.groups import GroupSettings
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.upkeep import INTERVAL_MS
from tests.memory.records import NOW, batch
from tests.support.tables import check_each

DAY = 86_400_000
HOUR = 3_600_000


def new_cluster() -> MemoryCluster:
    settings = MemorySettings(groups=GroupSettings(offsets_retention_ms=2 * DAY))
    return MemoryCluster(Clock(source=lambda: NOW), [1], settings)


def test_a_jump_of_ten_years_looks_at_logs_only_when_something_is_due(
    monkeypatch: pytest.MonkeyPatch,
):
    cluster = new_cluster()
    topic = cluster.topics.create("t", 1, {"retention.ms": str(300 * DAY)})
    assert topic is not None
    log = topic.partitions[0].log
    log.append(batch(b"x", producer=(1, 0, 0)), now_ms=NOW)
    looked: list[int] = []
    delete_old = PartitionLog.delete_old

    def counted(self: PartitionLog, now_ms: int) -> None:
        looked.append(now_ms)
        delete_old(self, now_ms)

    monkeypatch.setattr(PartitionLog, "delete_old", counted)
    cluster.clock.advance(3_650 * DAY)
    assert (log.start_offset, list(log.producers)) == (1, [])
    # When the producer is forgotten, and when the record is too old.
    assert looked == [NOW + DAY, NOW + 300 * DAY + INTERVAL_MS]
    assert cluster.clock.now_ms() == NOW + 3_650 * DAY


def test_what_is_called_regularly_is_called_at_its_times_unless_it_has_nothing_to_do():
    clock = Clock(source=lambda: 0)
    called: list[tuple[str, int]] = []
    busy_from: list[float] = [45.0]

    def note(name: str) -> Callable[[], None]:
        return lambda: called.append((name, clock.now_ms()))

    clock.call_every(10, note("regular"), lambda: busy_from[0])
    clock.call_later(33, note("once"))
    clock.advance(44)
    assert called == [("once", 33)]
    clock.advance(26)
    assert called[1:] == [("regular", 50), ("regular", 60), ("regular", 70)]
    # What happens at a time may make work.
    busy_from[0] = float("inf")
    called.clear()

    def make_work() -> None:
        busy_from[0] = clock.now_ms()

    clock.call_later(1_005, make_work)
    clock.advance(1_030)
    assert called == [("regular", 1_080), ("regular", 1_090), ("regular", 1_100)]
    clock.close()
    clock.advance(100)
    assert len(called) == 3


def filled(seed: int) -> tuple[MemoryCluster, list[object]]:
    """Return a cluster with much that will be due, and what is seen at certain times."""
    chance, cluster = Random(seed), new_cluster()
    seen: list[object] = []
    policies = ("delete", "compact", "compact,delete")
    for number in range(4):
        name = f"t{number}"
        topic = cluster.topics.create(
            name,
            2,
            {
                "cleanup.policy": chance.choice(policies),
                "retention.ms": str(chance.choice((-1, HOUR, DAY))),
                "retention.bytes": str(chance.choice((-1, 1_000))),
                "delete.retention.ms": str(chance.choice((0, HOUR))),
                "min.compaction.lag.ms": str(chance.choice((0, 2 * HOUR))),
                "min.cleanable.dirty.ratio": chance.choice(("0", "0.5", "0.9")),
            },
        )
        assert topic is not None
        for partition in topic.partitions:
            log = partition.log
            log.settings = log.settings._replace(segment_bytes=chance.choice((1, 200)))
            for sequence in range(chance.randrange(30)):
                value = chance.choice((None, b"v"))
                data = batch(
                    (b"k%d" % chance.randrange(4), value),
                    time_ms=NOW - chance.randrange(2 * HOUR),
                    producer=chance.choice(((-1, -1, -1), (sequence, 0, 0))),
                )
                log.append(data, now_ms=NOW)
        id_ = f"x{number}"
        own = cluster.transactions.initialize(id_, 60_000 * chance.randrange(1, 15), None).producer
        cluster.transactions.add(id_, own, [(name, 0)])
        data = batch((b"k0", b"t"), producer=(*own, 0), transactional=True)
        topic.partitions[0].log.append(data, now_ms=NOW)
        assert cluster.groups.offsets.commit(f"g{number}", [NewOffset(name, 0, 1)]) == [0]
    for _ in range(6):
        after = chance.randrange(2 * DAY)
        cluster.clock.call_later(after, lambda: seen.append(state(cluster)))
    return cluster, seen


def state(cluster: MemoryCluster) -> object:
    logs = [
        (
            log.start_offset,
            log.end_offset,
            log.compacted_to,
            b"".join(log.read(log.start_offset, 1 << 20).parts),
            [producer.producer_id for producer in log.producers],
        )
        for topic in cluster.topics.by_name.values()
        for log in (partition.log for partition in topic.partitions)
    ]
    groups = cluster.groups
    offsets = [groups.offsets.get(name, f"t{name[1:]}", 0) for name in ("g0", "g1", "g2", "g3")]
    return cluster.clock.now_ms(), cluster.room.used, logs, offsets, sorted(groups.table.groups)


def test_nothing_that_is_left_out_in_a_jump_would_have_done_anything(every_case: bool):
    check_each(range(8 if every_case else 2), _check_jump)


def _check_jump(seed: int) -> None:
    (jumped, seen), (walked, seen_at_each) = filled(seed), filled(seed)
    for regular in walked.clock._regular:
        regular.idle_until = lambda: -math.inf
    for days in (0.1, 1, 1.5):
        for cluster in (jumped, walked):
            cluster.clock.advance(round(days * DAY))
        assert state(jumped) == state(walked)
    assert seen == seen_at_each
    assert len(seen) == 6
