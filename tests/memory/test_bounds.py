"""What clients can have kept is bounded: producers of partitions and transactional ids."""

import tracemalloc
from collections.abc import Callable

import pytest

from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.groups import GroupSettings
from aclbroker.broker.memory.groups.group import Account, Full
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.transaction import Producer, Transaction
from aclbroker.broker.memory.transactions import Transactions
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch

MINUTE = 60_000
MIB = 1 << 20


def new_cluster(groups_bytes: int = MIB, full: str = "delete") -> MemoryCluster:
    settings = MemorySettings(
        max_bytes=MIB, full=full, groups=GroupSettings(max_bytes=groups_bytes)
    )
    cluster = MemoryCluster(Clock(source=lambda: NOW), [1], settings)
    cluster.topics.create("orders", 8)
    return cluster


def memory_of(work: Callable[[], object]) -> int:
    """Return how many bytes more are in use after some work."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def write_of(log: PartitionLog, producer_id: int, *, transactional: bool = False) -> None:
    data = batch(b"x", producer=(producer_id, 0, 0), transactional=transactional)
    log.append(data, now_ms=NOW)


def known(transactions: Transactions) -> list[Transaction]:
    """Return the state of every transactional id."""
    found = [transactions.find(each) for each in transactions.ids()]
    return [each for each in found if each is not None]


def test_the_producers_of_all_partitions_take_no_more_than_there_is_room():
    cluster = new_cluster()

    def write() -> None:
        for number in range(8_000):
            found = cluster.topics.partition("orders", number % 8)
            assert found is not None
            write_of(found.log, number)

    assert memory_of(write) < 1.5 * MIB
    assert cluster.room.used <= MIB
    logs = [each.log for each in cluster.topics.by_name["orders"].partitions]
    known = [producer.producer_id for log in logs for producer in log.producers]
    # The last ones are there.
    assert 300 < len(known) < 700
    assert min(known) > 7_000


def test_a_producer_that_writes_and_one_in_a_transaction_stay_when_memory_is_full():
    room = Room(100_000, "delete")
    log, other = (PartitionLog(name, LogSettings(), room) for name in ("t-0", "t-1"))
    write_of(other, 1, transactional=True)
    write_of(log, 2)
    for number in range(3, 500):
        write_of(log, number)
        log.append(batch(b"x", producer=(2, 0, number - 2)), now_ms=NOW)
    known = [each.producer_id for each in log.producers]
    assert {2, 499} <= set(known)
    assert len(known) < 70
    assert [each.producer_id for each in other.producers] == [1]
    assert other.last_stable_offset == 0


def test_new_producers_are_refused_where_that_is_the_setting_and_nothing_is_written_then():
    log = PartitionLog("t-0", LogSettings(), Room(20_000, "refuse"))

    def write() -> None:
        for number in range(100):
            write_of(log, number)

    with pytest.raises(LogError) as why:
        write()
    assert why.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.end_offset == len(list(log.producers)) < 20
    # Time makes room again.
    log.producers.expire(NOW + 86_400_000)
    write_of(log, 500)


def test_a_deleted_partition_gives_the_memory_of_its_producers_back():
    cluster = new_cluster()
    topic = cluster.topics.by_name["orders"]
    for number in range(100):
        write_of(topic.partitions[0].log, number, transactional=bool(number % 2))
    cluster.topics.delete(topic)
    assert cluster.room.used == 0


def test_a_batch_whose_topic_is_deleted_while_it_is_checked_is_not_acknowledged():
    log = PartitionLog("t-0", LogSettings(), Room(MIB, "delete"))
    log.clear()
    with pytest.raises(LogError) as why:
        log.append(batch(b"x"), now_ms=NOW)
    assert why.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert log._room.used == 0


def test_long_transactional_ids_take_no_more_than_there_is_room_and_the_last_ones_stay():
    cluster = new_cluster()
    last = ""

    def begin() -> None:
        nonlocal last
        for number in range(1_000):
            last = f"{number:05}" + "x" * 32_000
            assert cluster.transactions.initialize(last, MINUTE, None).code == ErrorCode.NONE

    assert memory_of(begin) < 1.2 * MIB
    assert cluster.groups.account.taken <= MIB
    assert cluster.transactions.find(last) is not None
    assert 20 < len(cluster.transactions.ids()) < 33


def test_groups_take_the_room_of_transactional_ids_that_nobody_uses():
    cluster = new_cluster(20_000)
    for number in range(100):
        cluster.transactions.initialize(f"t{number}", MINUTE, None)
    cluster.groups.account.take(19_000)
    assert len(cluster.transactions.ids()) == 0
    with pytest.raises(Full):
        cluster.groups.account.take(2_000)


def test_ids_at_work_stay_and_further_ones_are_told_to_come_again():
    cluster = new_cluster(20_000)
    transactions = cluster.transactions
    for number in range(10):
        producer = transactions.initialize(f"t{number}", MINUTE, None).producer
        assert transactions.add(f"t{number}", producer, [("orders", 0)]) == ErrorCode.NONE
    codes = {transactions.initialize(f"t{n}", MINUTE, None).code for n in range(10, 40)}
    assert codes == {ErrorCode.NONE}
    at_work = [each.transactional_id for each in known(transactions) if not each.is_idle]
    assert sorted(at_work) == [f"t{number}" for number in range(10)]
    for number in range(40, 60):
        outcome = transactions.initialize(f"t{number}", MINUTE, None)
        code = transactions.add(f"t{number}", outcome.producer, [("orders", 0)])
    assert (outcome.code, code) == (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    account = cluster.groups.account
    while any(each.is_idle for each in known(transactions)):
        account.take(account.limit - account.taken + 1)
    account.take(account.limit - account.taken)
    refused = transactions.initialize("new", MINUTE, None)
    assert refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_partitions_of_a_transaction_are_counted_until_it_ends_and_added_all_or_none():
    cluster = new_cluster(100_000)
    transactions, account = cluster.transactions, cluster.groups.account
    cluster.topics.create("big", 2_000)
    producer = transactions.initialize("t", MINUTE, None).producer
    before = account.taken
    some = [("big", index) for index in range(100)]
    assert transactions.add("t", producer, some * 3) == ErrorCode.NONE
    taken = account.taken
    assert taken - before == 100 * 200
    assert transactions.add("t", producer, some) == ErrorCode.NONE
    assert account.taken == taken
    many = [("big", index) for index in range(2_000)]
    assert transactions.add("t", producer, many) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (account.taken, len(known(transactions)[0].partitions)) == (taken, 100)
    groups = ["g" * 30_000 + str(number) for number in range(4)]
    assert transactions.add("t", producer, groups=groups) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert transactions.add("t", producer, groups=groups[:1]) == ErrorCode.NONE
    assert account.taken > taken + 30_000
    transactions.end("t", producer, commits=True, by_second_version=False)
    assert account.taken == before


def test_a_transaction_that_is_not_begun_for_lack_of_room_stays_as_it_was():
    cluster = new_cluster(3_000)
    transactions = cluster.transactions
    producer = transactions.initialize("t", MINUTE, None).producer
    many = [("orders", index) for index in range(20)]
    assert transactions.add("t", producer, many) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = transactions.find("t")
    assert found is not None
    assert (found.state.value, found.timer) == ("Empty", None)


def test_a_write_that_its_transaction_has_no_room_for_is_to_be_tried_again():
    cluster = new_cluster(3_000)
    outcome = cluster.transactions.initialize("t", MINUTE, None)
    cluster.groups.account.take(1_900)
    found = cluster.topics.partition("orders", 0)
    assert found is not None
    assert found.transactions is not None
    code = found.transactions("t", *outcome.producer, "orders", 0, True)
    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    cluster.groups.account.give(1_900)
    assert found.transactions("t", *outcome.producer, "orders", 0, True) == ErrorCode.NONE
    assert cluster.transactions.verify("t", Producer(*outcome.producer), ("orders", 0)) == 0


def test_an_account_asks_for_room_before_it_refuses():
    account = Account(100)
    asked: list[int] = []
    account.make_room = asked.append
    account.take(90)
    with pytest.raises(Full):
        account.take(30)
    account.give(-30)
    assert (asked, account.taken) == ([20], 120)
