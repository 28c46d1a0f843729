"""Times of records: a log goes by what the records say, and not by what their batch says."""

import gzip
from typing import Any

import pytest

from aclbroker import turns
from aclbroker.broker.memory.batch import Batch, LogError, read_batch
from aclbroker.broker.memory.checks import Rules
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.times import Found, find_latest_time, find_time
from aclbroker.broker.memory.upkeep import INTERVAL_MS
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch, changed
from tests.memory.test_upkeep import new_log as new_topic
from tests.memory.test_upkeep import records

MAX_TIMESTAMP_AT = 35
ATTRIBUTES_AT = 21
GZIP = 1


def new_log(**settings: Any) -> PartitionLog:
    return PartitionLog("t-0", LogSettings()._replace(**settings), Room(1 << 26, "delete"))


def saying(data: bytes, max_timestamp: int) -> bytes:
    """Return a batch whose header says that this is the latest time of its records."""
    return changed(data, MAX_TIMESTAMP_AT, max_timestamp.to_bytes(8, signed=True))


def by_append_time(data: bytes, codec: int = 0) -> bytes:
    """Return a batch that says that its records have the time of writing."""
    return changed(data, ATTRIBUTES_AT, (0x08 | codec).to_bytes(2))


def unread(max_timestamp: int, time_ms: int = NOW) -> bytes:
    """Return a batch whose records nobody here can read, and what its header says of them."""
    return saying(
        changed(batch(b"x", time_ms=time_ms), ATTRIBUTES_AT, (4).to_bytes(2)), max_timestamp
    )


def refused(log: PartitionLog, data: bytes) -> LogError:
    with pytest.raises(LogError) as why:
        log.append(data, now_ms=NOW)
    assert log.end_offset == 0
    return why.value


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("said", [0, -1, NOW - 1_000_000, NOW + 5, 1 << 62])
def test_the_latest_time_of_a_batch_is_that_of_its_records(said: int, codec: int):
    log = new_log(retention_ms=10_000)
    log.append(saying(batch(b"a", b"b", codec=codec), said), now_ms=NOW)
    kept = read_batch(log.read(0, 1 << 20).parts[0])
    assert kept.max_timestamp == NOW + 1
    assert changed(bytes(kept.data), 0, b"") == bytes(kept.data)  # with its checksum
    assert find_latest_time(log) == Found(NOW + 1, 1)
    assert find_time(log, NOW - 5_000) == Found(NOW, 0)
    assert find_time(log, NOW + 2) is None
    log.delete_old(NOW + 10_001)
    assert log.start_offset == 0
    log.delete_old(NOW + 10_002)
    assert log.start_offset == 2


def test_records_without_times_have_none():
    log = new_log()
    log.append(saying(batch(b"a", time_ms=-1), NOW), now_ms=NOW)
    log.append(saying(batch(b"a", time_ms=-5), NOW), now_ms=NOW)
    assert find_latest_time(log) is None


@pytest.mark.parametrize("codec", [0, GZIP])
def test_records_that_are_said_to_have_the_time_of_writing_have_that_of_their_batch(
    codec: int,
):
    # As in Kafka: the time that its batch has is that of all of its records.
    log = new_log()
    log.append(by_append_time(saying(batch(b"a", codec=codec), NOW + 7), codec), now_ms=NOW)
    kept = read_batch(log.read(0, 1 << 20).parts[0])
    assert (kept.attributes, kept.max_timestamp) == (codec, NOW + 7)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (Rules(log_append_time=True), NOW),
        (Rules(log_append_time=True), -1),
        (Rules(), -1),
        (Rules(), 1 << 62),
    ],
)
@pytest.mark.parametrize("codec", [0, GZIP, 4])
def test_a_producer_that_says_that_records_have_the_time_of_writing_is_refused(
    rules: Rules, said: int, codec: int
):
    data = batch(b"a", codec=codec % 4)
    why = refused(new_log(rules=rules), by_append_time(saying(data, said), codec))
    assert (why.code, len(why.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 1)
    if rules.log_append_time:
        assert "Producer should not set timestamp type to LogAppendTime." in why.record_errors[0][1]


def test_records_that_cannot_be_read_are_no_older_than_their_first_one():
    log = new_log(retention_ms=10_000)
    for said in (0, -1):
        log.append(unread(said), now_ms=NOW)
    log.append(unread(NOW + 3), now_ms=NOW)
    assert find_time(log, NOW) == Found(NOW, 0)
    assert find_latest_time(log) == Found(NOW + 3, 2)
    log.delete_old(NOW + 10_000)
    assert log.start_offset == 0


def test_records_that_cannot_be_read_and_would_never_or_always_be_old_are_refused():
    assert refused(new_log(), unread(1 << 62)).code is ErrorCode.INVALID_TIMESTAMP
    assert refused(new_log(), unread(0, time_ms=1 << 62)).code is ErrorCode.INVALID_TIMESTAMP
    strict = new_log(rules=Rules(before_max_ms=1_000))
    assert refused(strict, unread(NOW - 1_001, NOW - 1_001)).code is ErrorCode.INVALID_TIMESTAMP


def test_a_batch_that_is_compacted_has_the_latest_time_of_what_is_left():
    clock, log = new_topic(cleanup_policy="compact")
    log.append(batch((b"a", b"1"), (b"b", b"1"), (b"c", b"1")), now_ms=NOW)
    log.append(batch((b"c", b"2"), time_ms=NOW - 9), now_ms=NOW)
    log.append(batch((b"z", b"1"), time_ms=NOW - 9), now_ms=NOW)
    clock.advance(INTERVAL_MS)
    assert [offset for offset, _, _ in records(log)] == [0, 1, 3, 4]
    assert find_latest_time(log) == Found(NOW + 1, 1)


def test_a_lookup_by_time_finds_the_first_record_whatever_is_deleted_before_it():
    log = new_log()
    for number in range(2_000):
        log.append(batch(b"x", time_ms=NOW - number % 100), now_ms=NOW)
    assert find_time(log, NOW) == Found(NOW, 0)
    log.delete_before(1)
    assert find_time(log, NOW) == Found(NOW, 100)
    log.delete_before(1_901)
    assert find_time(log, NOW) is None
    assert find_time(log, NOW - 50) == Found(NOW - 1, 1_901)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that has an entry of each time at which work paused."""
    made: list[int] = []
    monkeypatch.setattr(turns, "_pause", lambda: made.append(1))
    return made


def test_a_lookup_in_very_many_batches_looks_at_one(monkeypatch: pytest.MonkeyPatch):
    log = new_log()
    for number in range(20_000):
        log.append(batch(b"x", time_ms=NOW + number % 1_000), now_ms=NOW)
    read: list[int] = []

    def counted(data: memoryview, at: int = 0) -> Batch:
        read.append(at)
        return read_batch(data, at)

    monkeypatch.setattr("aclbroker.broker.memory.segment.read_batch", counted)
    assert find_time(log, NOW + 999) == Found(NOW + 999, 999)
    assert find_time(log, NOW + 1_000) is None
    assert len(read) == 1


def test_a_lookup_pauses_where_it_has_to_look_at_all_since_what_it_would_find_is_deleted(
    pauses: list[int],
):
    log = new_log()
    for number in range(20_000):
        log.append(batch(b"x", time_ms=NOW - number), now_ms=NOW)
    segment = log.segments[-2]
    log.delete_before(segment.base_offset + 1)
    pauses.clear()
    assert segment.count > 2_560
    assert find_time(log, NOW - segment.base_offset) is None
    assert len(pauses) >= 10


@pytest.mark.parametrize("rules", [Rules(), Rules(log_append_time=True)])
def test_a_large_batch_is_written_in_many_turns(rules: Rules, pauses: list[int]):
    log = new_log(rules=rules._replace(max_bytes=1 << 30))
    data = batch(b"x" * (8 << 20))
    log.append(data, now_ms=NOW)
    checked = 8  # for the checksum, a megabyte at a time
    copied = 8
    again = 8 if rules.log_append_time else 0
    assert len(pauses) >= checked + copied + again
    assert log.read(0, 1 << 30).size == len(data)
    assert log._room.used <= len(data) + 100


def test_what_is_too_much_without_compression_has_the_time_of_its_header():
    packed = gzip.compress(bytes(40 << 20))
    header = bytearray(batch(b"a")[:61])
    header[8:12] = (49 + len(packed)).to_bytes(4)
    header[ATTRIBUTES_AT : ATTRIBUTES_AT + 2] = GZIP.to_bytes(2)
    log = new_log()
    log.append(saying(bytes(header) + packed, 0), now_ms=NOW)
    assert find_time(log, NOW) == Found(NOW, 0)
