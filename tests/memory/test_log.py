"""The log of a partition: what it keeps, refuses, reads, looks up and deletes."""

import gzip
from collections import Counter
from random import Random
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords

from aclbroker.broker.memory.batch import LARGEST_BATCH, Batch, LogError
from aclbroker.broker.memory.checks import Rules
from aclbroker.broker.memory.log import Aborted, PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.times import Found, find_latest_time, find_time
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch, changed


def new_log(limit: int = 1 << 24, full: str = "delete", **settings: Any) -> PartitionLog:
    return PartitionLog("t-0", LogSettings()._replace(**settings), Room(limit, full))


def append_times(log: PartitionLog, times: int) -> None:
    for _ in range(times):
        log.append(batch(b"x" * 1000), now_ms=NOW)


def refused(log: PartitionLog, data: bytes, version: int = 13) -> LogError:
    with pytest.raises(LogError) as why:
        log.append(data, now_ms=NOW, version=version)
    return why.value


def read(log: PartitionLog, offset: int = 0, *, committed: bool = False) -> list[tuple[int, bytes]]:
    parts = log.read(offset, 1 << 30, committed=committed).parts
    batches = MemoryRecords(b"".join(parts))
    found = []
    while (each := batches.next_batch()) is not None:
        assert each.validate_crc()
        found += [(record.offset, record.value) for record in each if not each.is_control_batch]
    return found


def test_records_are_read_with_the_offsets_in_which_they_came():
    log = new_log()
    assert log.append(batch(b"a", b"b"), now_ms=NOW)[:2] == (0, 1)
    assert log.append(batch(b"c"), now_ms=NOW)[:3] == (2, 2, -1)
    assert read(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert read(log, 1) == [(0, b"a"), (1, b"b"), (2, b"c")]  # whole batches, as in Kafka
    assert read(log, 2) == [(2, b"c")]
    assert read(log, 3) == []


def test_offsets_that_the_log_does_not_have_are_refused():
    log = new_log()
    log.append(batch(b"a"), now_ms=NOW)
    for offset in (-1, 2):
        with pytest.raises(LogError) as why:
            log.read(offset, 100)
        assert why.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_has_whole_batches_within_its_limit_and_the_first_one_in_any_case():
    log = new_log()
    for number in range(5000):
        log.append(batch(str(number).encode() * 20), now_ms=NOW)
    assert len(log.segments) > 1
    one = len(batch(b"0" * 20))
    assert log.read(0, 1).size == one
    assert log.read(0, 1, whole=False).size == 0
    assert log.read(0, 3 * one).size == 3 * one
    assert log.read(0, 4 * one - 1).size == 3 * one
    assert log.read(0, 1 << 30).size == log.size
    assert [offset for offset, _ in read(log)] == list(range(5000))


def test_many_records_take_little_more_memory_than_their_bytes():
    log = new_log(1 << 28)
    for _ in range(3000):
        log.append(batch(*[b"x" * 1024] * 15), now_ms=NOW)
    assert log._room.used <= 1.05 * log.size


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"short", ErrorCode.INVALID_RECORD),
        (batch(b"a")[:-1], ErrorCode.INVALID_RECORD),
        (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 16, b"\x01"), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 16, b"\x00"), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 16, b"\x03"), ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a")[:-1] + b"\x01", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a")[:8] + (5).to_bytes(4) + batch(b"a")[12:], ErrorCode.CORRUPT_MESSAGE),
        (changed(batch(b"a"), 0, (1).to_bytes(8)), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 23, (-1).to_bytes(4, signed=True)), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 57, (0).to_bytes(4)), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 57, (2).to_bytes(4)), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 21, (0x20).to_bytes(2)), ErrorCode.INVALID_RECORD),
        (batch(b"a", producer=(1, 0, -1)), ErrorCode.INVALID_RECORD),
        (changed(batch(b"a"), 21, (0x05).to_bytes(2)), ErrorCode.UNKNOWN_SERVER_ERROR),
        (changed(batch(b"abc"), 61, b"\x7f\x7f"), ErrorCode.INVALID_RECORD),
        (changed(batch(b"abc"), 61, b"\x10"), ErrorCode.INVALID_RECORD),
        (batch(b"a", time_ms=NOW + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
        (batch(b"a" * 1_048_600), ErrorCode.MESSAGE_TOO_LARGE),
        (changed(batch(b"a"), 8, (20).to_bytes(4))[:32], ErrorCode.CORRUPT_MESSAGE),
        (changed(batch(b"a"), 8, (20).to_bytes(4)) + bytes(9), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_batches_that_a_broker_refuses_are_refused(data: bytes, code: ErrorCode):
    log = new_log()
    assert refused(log, data).code is code
    assert log.end_offset == 0


def test_zstd_is_refused_before_version_7():
    zstd = changed(batch(b"a"), 21, (4).to_bytes(2))
    assert refused(new_log(), zstd, 6).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert new_log().append(zstd, now_ms=NOW, version=7).first_offset == 0


def test_what_follows_a_batch_and_is_none_is_left_out():
    log = new_log()
    log.append(batch(b"a") + b"rest", now_ms=NOW)
    assert read(log) == [(0, b"a")]


def test_a_compacted_topic_takes_only_records_with_keys_compressed_or_not():
    log = new_log(rules=Rules(is_compacted=True))
    for codec in (0, 1):
        why = refused(log, batch((b"k", b"a"), (None, b"b"), codec=codec))
        assert why.code is ErrorCode.INVALID_RECORD
        assert [index for index, _ in why.record_errors] == [1]
    log.append(batch((b"k", b"a"), codec=1), now_ms=NOW)
    assert read(log) == [(0, b"a")]


def test_of_very_many_wrong_records_all_are_counted_and_the_first_are_named():
    log = new_log(rules=Rules(is_compacted=True))
    why = refused(log, batch(*[(None, b"")] * 3_000))
    assert "due to 3000 record errors in total" in str(why)
    assert [index for index, _ in why.record_errors] == list(range(1_000))
    late = new_log(rules=Rules(before_max_ms=1000))
    why = refused(late, batch(*[b""] * 3_000, time_ms=NOW - 9_000))
    assert [index for index, _ in why.record_errors] == list(range(1_000))


def test_records_that_are_too_old_are_refused_where_the_topic_says_so():
    log = new_log(rules=Rules(before_max_ms=1000))
    assert refused(log, batch(b"a", time_ms=NOW - 1001)).record_errors[0][0] == 0
    log.append(batch(b"a", time_ms=NOW - 1000), now_ms=NOW)


def test_log_append_time_replaces_the_times_of_records():
    log = new_log(rules=Rules(log_append_time=True))
    assert log.append(batch(b"a", b"b", time_ms=5), now_ms=NOW).time_ms == NOW
    assert read(log) == [(0, b"a"), (1, b"b")]
    assert find_time(log, NOW) == Found(NOW, 0)


def test_records_have_their_own_times_whatever_their_batch_says():
    log = new_log()
    log.append(changed(batch(b"a", b"b"), 21, (0x08).to_bytes(2)), now_ms=NOW)
    assert read(log) == [(0, b"a"), (1, b"b")]
    assert find_time(log, NOW) == Found(NOW, 0)


def test_the_first_record_of_a_time_is_found():
    log = new_log()
    for first in (0, 10, 20):
        log.append(batch(b"a", b"b", b"c", time_ms=NOW + first, codec=first // 20), now_ms=NOW)
    assert find_time(log, NOW + 11) == Found(NOW + 11, 4)
    assert find_time(log, NOW + 21) == Found(NOW + 21, 7)
    assert find_time(log, NOW + 5) == Found(NOW + 10, 3)
    assert find_time(log, NOW + 23) is None
    assert find_latest_time(log) == Found(NOW + 22, 8)
    assert find_latest_time(new_log()) is None


def test_a_bomb_is_not_inflated():
    records = gzip.compress(bytes(100 << 20))
    header = bytearray(batch(b"a")[:61])
    header[8:12] = (49 + len(records)).to_bytes(4)
    header[21:23] = (1).to_bytes(2)
    log = new_log()
    log.append(changed(bytes(header) + records, 57, (1).to_bytes(4)), now_ms=NOW)
    assert find_time(log, NOW) == Found(NOW, 0)


def packed(records: bytes, codec: int, time_ms: int = NOW) -> bytes:
    """Return a batch of one record that has these bytes in the place of its compressed records."""
    header = bytearray(batch(b"a", time_ms=time_ms)[:61])
    header[8:12] = (49 + len(records)).to_bytes(4)
    return changed(bytes(header) + records, 21, codec.to_bytes(2))


def test_what_is_said_to_be_gzip_is_looked_into():
    log = new_log()
    for broken in (b"nothing of that kind", gzip.compress(b"\2" * 99)[:-12]):
        assert refused(log, packed(broken, 1)).code is ErrorCode.UNKNOWN_SERVER_ERROR
    why = refused(log, packed(gzip.compress(b"\x7f\x7f"), 1))
    assert why.code is ErrorCode.INVALID_RECORD
    late = batch(b"abc", b"d", time_ms=NOW + 3_600_000, codec=1)
    why = refused(log, changed(late, 35, (NOW).to_bytes(8)))
    assert (why.code, [index for index, _ in why.record_errors]) == (
        ErrorCode.INVALID_TIMESTAMP,
        [1],
    )


def test_compressed_records_that_cannot_be_read_are_found_as_their_batch():
    log = new_log()
    for number, codec in enumerate((2, 3, 4)):
        log.append(packed(b"anything", codec, NOW + number), now_ms=NOW)
        assert find_time(log, NOW + number) == Found(NOW + number, number)
    late = packed(b"anything", 4, NOW + 3_600_001)
    assert refused(log, late).code is ErrorCode.INVALID_TIMESTAMP


def test_records_are_deleted_up_to_an_offset():
    log = new_log()
    for _ in range(4):
        log.append(batch(b"a", b"b"), now_ms=NOW)
    log.delete_before(3)
    assert log.start_offset == 3
    assert find_time(log, NOW) == Found(NOW + 1, 3)
    log.delete_before(2)
    assert log.start_offset == 3
    for offset in (9, -2):
        with pytest.raises(LogError):
            log.delete_before(offset)
    log.delete_before(-1)
    assert (log.start_offset, log.end_offset, log.size, log.segments) == (8, 8, 0, [])
    log.append(batch(b"c"), now_ms=NOW)
    assert read(log, 8) == [(8, b"c")]


def test_no_batch_is_larger_than_is_copied_at_once():
    log = new_log(rules=Rules(max_bytes=1 << 30))
    assert refused(log, batch(b"x" * LARGEST_BATCH)).code is ErrorCode.MESSAGE_TOO_LARGE
    assert log.append(batch(b"x" * (LARGEST_BATCH - 100)), now_ms=NOW).first_offset == 0


def test_old_segments_go_by_time_and_by_size():
    log = new_log(retention_ms=1000, segment_ms=10)
    log.append(batch(b"a"), now_ms=NOW)
    log.append(batch(b"b", time_ms=NOW + 500), now_ms=NOW + 500)
    log.delete_old(NOW + 1000)
    assert log.start_offset == 0
    log.delete_old(NOW + 1001)
    assert log.start_offset == 1
    one = len(batch(b"a"))
    log = new_log(retention_bytes=2 * one, segment_bytes=one)
    for _ in range(5):
        log.append(batch(b"a"), now_ms=NOW)
    log.delete_old(NOW)
    assert (log.start_offset, log.size) == (3, 2 * one)
    log = new_log(retention_ms=0, deletes=False)
    log.append(batch(b"a"), now_ms=NOW)
    log.delete_old(NOW + 10)
    assert log.start_offset == 0


def test_a_log_whose_segments_are_young_for_a_moment_only_has_a_bounded_number_of_them():
    log = new_log(4 << 20, segment_ms=1)
    for number in range(2_500):
        log.append(batch(b"x"), now_ms=NOW + number)
    assert len(log.segments) <= 1_100
    assert [offset for offset, _ in read(log)] == list(range(2_500))


def test_the_oldest_segments_of_all_topics_go_when_memory_is_full():
    room = Room(100_000, "delete")
    old, new = (PartitionLog(name, LogSettings(), room) for name in ("old-0", "new-0"))
    for _ in range(40):
        old.append(batch(b"x" * 1000), now_ms=NOW)
    for _ in range(80):
        new.append(batch(b"x" * 1000), now_ms=NOW)
    assert old.start_offset > 0
    assert new.end_offset == 80
    assert room.used <= room.limit


def test_a_full_memory_refuses_records_where_that_is_the_setting_or_nothing_may_go():
    log = new_log(10_000, "refuse")
    kept = new_log(10_000, deletes=False)
    for each in (log, kept):
        append_times(each, 8)
        with pytest.raises(LogError) as why:
            append_times(each, 3)
        assert why.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert each.start_offset == 0
        assert len(read(each)) == each.end_offset


def test_a_deleted_log_gives_all_of_its_memory_back_and_wakes_who_waits():
    log = new_log()
    woken: list[int] = []
    log.append(batch(b"a", producer=(7, 0, 0), transactional=True), now_ms=NOW)
    log.append_marker(7, 0, commits=False, now_ms=NOW)
    log.on_change.add(lambda: woken.append(1))
    log.clear()
    assert (log._room.used, woken) == (0, [1])


def test_committed_reads_stop_before_a_transaction_under_way_and_name_the_aborted_ones():
    log = new_log()
    log.append(batch(b"plain"), now_ms=NOW)
    log.append(batch(b"txn", producer=(7, 0, 0), transactional=True), now_ms=NOW)
    log.append(batch(b"later"), now_ms=NOW)
    assert log.last_stable_offset == 1
    assert read(log, committed=True) == [(0, b"plain")]
    assert len(read(log)) == 3
    log.append_marker(7, 0, commits=False, now_ms=NOW)
    assert log.last_stable_offset == log.end_offset == 4
    found = log.read(0, 1 << 20, committed=True)
    assert found.aborted == [Aborted(7, 1, 3, 4)]
    assert log.read(0, 1 << 20).aborted is None
    assert log.read(4, 1 << 20, committed=True).aborted == []
    log.append(batch(b"more", producer=(7, 0, 1), transactional=True), now_ms=NOW)
    log.append_marker(7, 0, commits=True, now_ms=NOW)
    assert log.read(4, 1 << 20, committed=True).aborted == []
    log.delete_before(4)
    assert log.aborted == []


def test_committed_reads_name_the_aborted_transactions_among_what_they_read_and_no_others():
    chance = Random(5)
    log = new_log()
    under_way: dict[int, int] = {}
    ended: list[tuple[int, int, int]] = []
    sequences: Counter[int] = Counter()
    for _ in range(3_000):
        producer = chance.randrange(12)
        if producer in under_way and chance.random() < 0.4:
            commits = chance.random() < 0.3
            if not commits:
                ended.append((producer, under_way[producer], log.end_offset))
            log.append_marker(producer, 0, commits=commits, now_ms=NOW)
            del under_way[producer]
        else:
            under_way.setdefault(producer, log.end_offset)
            data = batch(b"x", producer=(producer, 0, sequences[producer]), transactional=True)
            log.append(data, now_ms=NOW)
            sequences[producer] += 1
    for _ in range(200):
        offset = chance.randrange(log.last_stable_offset)
        found = log.read(offset, chance.randrange(5_000), committed=True)
        last = MemoryRecords(b"".join(found.parts))
        end = offset
        while (each := last.next_batch()) is not None:
            end = each.next_offset
        assert [each[:3] for each in found.aborted or ()] == [
            each for each in ended if each[2] >= offset and each[1] < end
        ]


def test_a_new_epoch_of_a_producer_does_not_belong_to_a_transaction_of_the_former_one():
    log = new_log()
    log.append(batch(b"a", producer=(7, 0, 0), transactional=True), now_ms=NOW)

    def refuse(_: Batch) -> None:
        raise LogError(ErrorCode.CONCURRENT_TRANSACTIONS)

    # Its coordinator has not written the marker here yet.
    with pytest.raises(LogError) as why:
        log.append(batch(b"b", producer=(7, 1, 0), transactional=True), now_ms=NOW, verify=refuse)
    assert why.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
    more = batch(b"b", producer=(7, 0, 1), transactional=True)
    assert log.append(more, now_ms=NOW, verify=refuse).first_offset == 1


def test_a_transaction_is_verified_once_before_it_begins_here():
    log = new_log()
    asked: list[int] = []

    def verify(first: object) -> None:
        asked.append(1)

    def refuse(first: object) -> None:
        raise LogError(ErrorCode.INVALID_TXN_STATE)

    first = batch(b"a", producer=(7, 0, 0), transactional=True)
    with pytest.raises(LogError):
        log.append(first, now_ms=NOW, verify=refuse)
    log.append(first, now_ms=NOW, verify=verify)
    log.append(batch(b"b", producer=(7, 0, 1), transactional=True), now_ms=NOW, verify=verify)
    assert asked == [1]


def test_a_marker_of_an_epoch_that_is_over_is_refused():
    log = new_log()
    log.append(batch(b"a", producer=(7, 3, 0), transactional=True), now_ms=NOW)
    with pytest.raises(LogError) as why:
        log.append_marker(7, 2, commits=True, now_ms=NOW)
    assert why.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable_offset == 0


def test_the_only_leader_epoch_ends_at_the_end():
    log = new_log()
    log.append(batch(b"a"), now_ms=NOW)
    assert [log.epoch_end(epoch) for epoch in (-1, 0, 1)] == [(-1, -1), (0, 1), (-1, -1)]


def test_a_transaction_can_end_when_memory_is_full():
    log = new_log(12_000, "refuse")
    log.append(batch(b"a", producer=(7, 0, 0), transactional=True), now_ms=NOW)
    while log._room.used + 1100 < log._room.limit:
        append_times(log, 1)
    assert refused(log, batch(b"x" * 9000)).code is ErrorCode.KAFKA_STORAGE_ERROR
    log.append_marker(7, 0, commits=True, now_ms=NOW)
    assert log.last_stable_offset == log.end_offset


def test_a_transaction_of_an_unknown_producer_begins_with_zero_from_version_12_on():
    data = batch(b"a", producer=(7, 0, 3), transactional=True)
    assert new_log().append(data, now_ms=NOW, version=11, verify=_allow).first_offset == 0
    with pytest.raises(LogError) as why:
        new_log().append(data, now_ms=NOW, version=12, verify=_allow)
    assert why.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _allow(_batch: Batch) -> None:
    """Let a producer begin a transaction."""
