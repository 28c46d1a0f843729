"""Idempotent producers: batches are written once, and in the order of their sequence numbers."""

import pytest

from aclbroker.broker.memory import producers
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.room import Room
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch, changed


@pytest.fixture
def log() -> PartitionLog:
    return PartitionLog("t-0", LogSettings(), Room(1 << 24, "delete"))


def write(
    log: PartitionLog, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7
) -> int | ErrorCode:
    data = batch(*[b"x"] * count, producer=(producer_id, epoch, sequence))
    try:
        return log.append(data, now_ms=NOW).first_offset
    except LogError as why:
        return why.code


def test_a_batch_that_comes_again_is_not_written_again(log: PartitionLog):
    offsets = [write(log, 2 * number, 2) for number in range(6)]
    assert offsets == [0, 2, 4, 6, 8, 10]
    assert [write(log, 2 * number, 2) for number in range(1, 6)] == offsets[1:]
    assert log.end_offset == 12


def test_only_the_last_five_batches_are_known(log: PartitionLog):
    for number in range(6):
        write(log, number)
    assert write(log, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused_but_not_in_the_first_batch(log: PartitionLog):
    assert write(log, 5) == 0
    assert write(log, 7) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, 6) == 1
    assert write(log, 0, producer_id=8) == 2


def test_a_new_epoch_begins_at_zero_and_ends_the_old_one(log: PartitionLog):
    assert write(log, 0) == 0
    assert write(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, 0, epoch=1) == 1
    assert write(log, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequence_numbers_begin_anew_after_the_largest(log: PartitionLog):
    largest = (1 << 31) - 1
    assert write(log, largest - 1, 3) == 0
    assert write(log, largest - 1, 3) == 0
    assert write(log, 1) == 3
    assert write(log, largest, producer_id=8) == 4
    assert write(log, 0, producer_id=8) == 5


def test_a_plain_batch_within_a_transaction_is_refused(log: PartitionLog):
    log.append(batch(b"a", producer=(7, 0, 0), transactional=True), now_ms=NOW)
    assert write(log, 1) is ErrorCode.INVALID_TXN_STATE


def test_after_a_marker_of_the_next_epoch_the_numbers_begin_anew(log: PartitionLog):
    log.append(batch(b"a", producer=(7, 0, 0), transactional=True), now_ms=NOW)
    log.append_marker(7, 1, commits=True, now_ms=NOW)
    assert write(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, 0, epoch=1) == 2
    assert write(log, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_are_forgotten_after_a_day_but_not_within_a_transaction(log: PartitionLog):
    log.append(batch(b"a", producer=(7, 0, 0), transactional=True), now_ms=NOW)
    write(log, 0, producer_id=8)
    log.producers.expire(NOW + producers.EXPIRATION_MS - 1)
    assert {each.producer_id for each in log.producers} == {7, 8}
    log.producers.expire(NOW + producers.EXPIRATION_MS)
    assert {each.producer_id for each in log.producers} == {7}
    assert log.last_stable_offset == 0


def test_the_producers_of_a_partition_are_bounded(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(producers, "MOST_PRODUCERS", 3)
    log.append(batch(b"a", producer=(1, 0, 0), transactional=True), now_ms=NOW)
    for producer_id in (2, 3, 4, 5):
        write(log, 0, producer_id=producer_id)
    assert [each.producer_id for each in log.producers] == [1, 4, 5]


def test_a_batch_without_a_producer_is_no_duplicate(log: PartitionLog):
    plain = changed(batch(b"a"), 0, bytes(8))
    assert log.append(plain, now_ms=NOW).first_offset == 0
    assert log.append(plain, now_ms=NOW).first_offset == 1
