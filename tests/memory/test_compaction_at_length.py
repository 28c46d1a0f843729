"""Compaction of what is much: many aborted transactions, and large batches."""

from aclbroker.broker.memory.compaction import compact
from aclbroker.broker.memory.log import Aborted
from tests.memory.records import NOW, batch
from tests.memory.test_upkeep import new_log, records


def test_each_of_very_many_aborted_transactions_is_not_compared_with_each_batch():
    _, log = new_log(cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    log.settings = log.settings._replace(segment_bytes=1 << 20)
    for number in range(300):
        for producer_id in (1, 2):
            data = batch(
                (b"k%d" % producer_id, b"%d" % number),
                producer=(producer_id, number, 0),
                transactional=True,
            )
            log.append(data, now_ms=NOW)
        # The transactions of the two overlap.
        for producer_id, commits in ((1, number == 150), (2, number == 299)):
            log.append_marker(producer_id, number, commits=commits, now_ms=NOW)
    log.settings = log.settings._replace(segment_bytes=1)
    log.append(batch((b"z", b"1")), now_ms=NOW)
    looked_at: list[int] = []

    class Counted(Aborted):
        """One whose offsets are counted when they are looked at."""

        @property
        def first_offset(self) -> int:
            looked_at.append(1)
            return self[1]

        @property
        def producer_id(self) -> int:
            looked_at.append(1)
            return self[0]

    log.aborted = [Counted(*each) for each in log.aborted]
    for _ in compact(log, NOW + 10):
        pass
    assert len(looked_at) <= 3 * len(log.aborted)
    committed = {(key, value) for _, key, value in records(log)} & {
        (b"k1", b"150"),
        (b"k2", b"299"),
    }
    assert len(committed) == 2
    assert (b"k1", b"149") not in {(key, value) for _, key, value in records(log)}


def test_a_batch_of_large_records_is_compacted_in_steps():
    _, log = new_log(cleanup_policy="compact", max_message_bytes=str(12 << 20))
    large = b"x" * (2 << 20)
    log.append(batch((b"a", large), (b"b", large), (b"a", large), (b"c", large)), now_ms=NOW)
    log.append(batch((b"z", b"1")), now_ms=NOW)
    steps = sum(1 for _ in compact(log, NOW + 10))
    # Each record, and each megabyte of the checksum.
    assert steps >= 9
    assert [offset for offset, _, _ in records(log)] == [1, 2, 3, 4]
    assert [value for _, _, value in records(log)] == [large, large, large, b"1"]
