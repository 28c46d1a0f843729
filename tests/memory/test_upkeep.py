"""What happens to logs as time goes by: retention, compaction and the expiry of producers."""

from typing import Any

from aiokafka.record.memory_records import MemoryRecords

from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings, upkeep
from aclbroker.broker.memory.compaction import compact
from aclbroker.broker.memory.log import PartitionLog
from tests.memory.records import NOW, batch, changed


def new_log(**configs: str) -> tuple[Clock, PartitionLog]:
    """Return a clock that only a test moves, and the log of a topic; each record is a segment."""
    clock = Clock(source=lambda: NOW)
    cluster = MemoryCluster(clock, [1], MemorySettings())
    topic = cluster.topics.create(
        "t", 1, {name.replace("_", "."): each for name, each in configs.items()}
    )
    assert topic is not None
    log = topic.partitions[0].log
    log.settings = log.settings._replace(segment_bytes=1)
    return clock, log


def records(log: PartitionLog, offset: int | None = None) -> list[tuple[int, Any, Any]]:
    begin = log.start_offset if offset is None else offset
    batches = MemoryRecords(b"".join(log.read(begin, 1 << 30).parts))
    found = []
    while (each := batches.next_batch()) is not None:
        assert each.validate_crc()
        found += [(r.offset, r.key, r.value) for r in each if not each.is_control_batch]
    return found


def test_records_go_after_their_time_by_themselves():
    clock, log = new_log(retention_ms="20000")
    log.append(batch(b"a"), now_ms=NOW)
    clock.advance(15_000)
    assert log.start_offset == 0
    clock.advance(15_000)
    assert (log.start_offset, log.size) == (1, 0)


def test_of_each_key_the_last_record_is_kept_but_for_the_last_segment():
    clock, log = new_log(cleanup_policy="compact")
    log.append(batch((b"a", b"1"), (b"b", b"1")), now_ms=NOW)
    log.append(batch((b"a", b"2"), (b"c", b"1")), now_ms=NOW)
    log.append(batch((b"b", b"2"), codec=1), now_ms=NOW)
    log.append(batch((b"a", b"3")), now_ms=NOW)
    used = log._room.used
    clock.advance(upkeep.INTERVAL_MS)
    assert records(log) == [
        (2, b"a", b"2"),
        (3, b"c", b"1"),
        (4, b"b", b"2"),
        (5, b"a", b"3"),
    ]
    assert log._room.used < used
    assert (log.start_offset, log.end_offset, log.compacted_to) == (0, 6, 5)
    assert records(log, 1) == records(log, 2)


def test_a_compacted_batch_keeps_its_offsets_and_the_records_that_are_left():
    clock, log = new_log(cleanup_policy="compact")
    log.append(batch((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), codec=1), now_ms=NOW)
    log.append(batch((b"z", b"1")), now_ms=NOW)
    clock.advance(upkeep.INTERVAL_MS)
    assert records(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"z", b"1")]


def test_tombstones_go_after_their_time():
    clock, log = new_log(cleanup_policy="compact", delete_retention_ms="60000")
    log.append(batch((b"a", b"1")), now_ms=NOW)
    log.append(batch((b"a", None)), now_ms=NOW)
    log.append(batch((b"b", b"1")), now_ms=NOW)
    clock.advance(upkeep.INTERVAL_MS)
    assert records(log) == [(1, b"a", None), (2, b"b", b"1")]
    clock.advance(60_000)
    log.append(batch((b"c", b"1")), now_ms=NOW + 75_000)
    clock.advance(upkeep.INTERVAL_MS)
    assert records(log) == [(2, b"b", b"1"), (3, b"c", b"1")]


def test_young_records_and_those_of_open_transactions_are_not_compacted():
    clock, log = new_log(cleanup_policy="compact", min_compaction_lag_ms="40000")
    log.append(batch((b"a", b"1")), now_ms=NOW)
    log.append(batch((b"a", b"2")), now_ms=NOW)
    log.append(batch((b"a", b"3"), producer=(7, 0, 0), transactional=True), now_ms=NOW)
    log.append(batch((b"a", b"4"), time_ms=NOW + 1), now_ms=NOW)
    clock.advance(30_000)
    assert len(records(log)) == 4
    clock.advance(15_000)
    assert records(log)[0] == (1, b"a", b"2")
    assert len(records(log)) == 3


def test_an_aborted_record_replaces_nothing_and_markers_stay():
    clock, log = new_log(cleanup_policy="compact")
    log.append(batch((b"a", b"1")), now_ms=NOW)
    log.append(batch((b"a", b"no"), producer=(7, 0, 0), transactional=True), now_ms=NOW)
    log.append_marker(7, 0, commits=False, now_ms=NOW)
    log.append(batch((b"z", b"1")), now_ms=NOW)
    clock.advance(upkeep.INTERVAL_MS)
    assert (0, b"a", b"1") in records(log)
    assert log.read(2, 1 << 20).size > 0


def test_what_is_little_or_not_readable_stays():
    clock, log = new_log(cleanup_policy="compact", min_cleanable_dirty_ratio="0.9")
    log.append(batch((b"a", b"1")), now_ms=NOW)
    log.append(batch((b"a", b"2")), now_ms=NOW)
    log.append(batch((b"a", b"3")), now_ms=NOW)
    clock.advance(upkeep.INTERVAL_MS)
    log.append(batch((b"a", b"4")), now_ms=NOW)
    clock.advance(upkeep.INTERVAL_MS)
    assert [offset for offset, _, _ in records(log)] == [1, 2, 3]
    clock, log = new_log(cleanup_policy="compact")
    log.append(changed(batch((b"a", b"1")), 21, (2).to_bytes(2)), now_ms=NOW)
    log.append(batch((b"a", b"2")), now_ms=NOW)
    log.append(batch((b"a", b"3")), now_ms=NOW)
    size = log.size
    clock.advance(upkeep.INTERVAL_MS)
    assert log.size == size


def test_a_deletion_stays_while_a_batch_that_was_not_read_may_have_its_key():
    clock, log = new_log(cleanup_policy="compact", delete_retention_ms="0")
    log.append(batch((b"a", None)), now_ms=NOW)
    log.append(changed(batch((b"b", b"1")), 21, (2).to_bytes(2)), now_ms=NOW)
    log.append(batch((b"b", None)), now_ms=NOW)
    log.append(batch((b"c", None), (b"c", b"1")), now_ms=NOW)
    log.append(batch((b"d", b"1")), now_ms=NOW)
    clock.advance(upkeep.INTERVAL_MS)
    assert records(log, 2) == [(2, b"b", None), (4, b"c", b"1"), (5, b"d", b"1")]
    assert log.read(0, 1 << 20).size == log.size
    assert bytes(log.read(0, 1 << 20).parts[0][:8]) == (1).to_bytes(8)


def test_producers_are_forgotten_by_themselves():
    clock, log = new_log()
    log.append(batch(b"a", producer=(7, 0, 0)), now_ms=NOW)
    clock.advance(86_400_000)
    assert list(log.producers) == []


def test_a_batch_of_many_records_is_compacted_in_many_steps_so_that_others_have_their_turn():
    _, log = new_log(cleanup_policy="compact")
    keys = [(b"%d" % (number % 3_000), b"") for number in range(6_000)]
    log.append(batch(*keys, codec=1), now_ms=NOW)
    log.append(batch((b"z", b"1")), now_ms=NOW)
    steps = sum(1 for _ in compact(log, NOW + 10_000))
    assert steps > 40
    assert [offset for offset, _, _ in records(log)] == [*range(3_000, 6_001)]
