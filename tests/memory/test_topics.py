"""Topics of a cluster in memory: what may be created, where partitions are, what is configured."""

import pytest

from aclbroker.broker import topic_configs
from aclbroker.broker.memory import placing
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.log_settings import log_settings
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.broker.topic_configs import BrokerDefault, InvalidConfig, shown, validate
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch

NODES = (1, 2, 3)


@pytest.fixture
def topics() -> MemoryTopics:
    return MemoryTopics(NODES, Room(1 << 24, "delete"), auto_creates=True)


def test_partitions_are_spread_over_the_nodes(topics: MemoryTopics):
    first, second = topics.create("a", 3, replicas=2), topics.create("b", 2)
    assert first is not None
    assert second is not None
    assert [each.replicas for each in first.partitions] == [(1, 2), (2, 3), (3, 1)]
    assert [each.leader for each in second.partitions] == [2, 3]
    assert topics.grow(first, 4)
    assert first.partitions[3].replicas == (1, 2)
    assert topics.partitions == 6
    assigned = topics.create("c", 2, assignments=[[3], [1]])
    assert assigned is not None
    assert [each.leader for each in assigned.partitions] == [3, 1]


def test_each_node_tells_its_own_id_and_knows_all_topics(topics: MemoryTopics):
    assert topics.of_node(1) is topics
    of_second = topics.of_node(2)
    topic = topics.create("a", 1)
    assert topic is not None
    topics.sessions = {7}
    assert (of_second.node_id, of_second.auto_creates) == (2, True)
    assert (of_second.name_of(topic.topic_id), of_second.exists("a")) == ("a", True)
    assert (of_second.keeps_session(7), of_second.keeps_session(8)) == (True, False)
    topics.delete(topic)
    assert not of_second.has_partition("a", 0)


def test_a_topic_is_created_once_and_deleted_with_all_that_it_has(topics: MemoryTopics):
    topic = topics.create("a", 1)
    assert topic is not None
    assert topics.create("a", 5) is None
    topic.partitions[0].log.append(batch(b"x"), now_ms=NOW)
    assert topics.room.used > 0
    topics.delete(topic)
    assert (topics.room.used, topics.partitions, topics.exists("a")) == (0, 0, False)
    assert not topics.grow(topic, 4)
    assert topics.partition("a", 0) is None


def test_a_configuration_holds_for_all_partitions_at_once(topics: MemoryTopics):
    topic = topics.create("a", 2, {"max.message.bytes": "100"})
    assert topic is not None
    topics.configure(topic, {"cleanup.policy": "compact"})
    assert [each.log.settings.compacts for each in topic.partitions] == [True, True]
    assert topic.partitions[1].log.settings.rules.max_bytes == 1_048_588


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("taken.one", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("taken_one", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_names_that_a_topic_cannot_have_are_refused(name: str, code: ErrorCode):
    with pytest.raises(LogError) as why:
        placing.check_name(name, {"other": 1, "taken.one": 1})
    assert why.value.code is code


def test_names_that_a_topic_can_have_are_not_refused():
    for name in ("a", "a.b", "A_b", "x" * 249, "-"):
        placing.check_name(name, {"other_one": 1})


@pytest.mark.parametrize(
    ("partitions", "replicas", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_numbers_that_cannot_be_are_refused(partitions: int, replicas: int, code: ErrorCode):
    with pytest.raises(LogError) as why:
        placing.check_numbers(partitions, replicas, NODES)
    assert why.value.code is code


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([(0, [1]), (0, [2])], "multiple manual"),
        ([(1, [1])], "consecutive"),
        ([(0, [])], "empty replica list"),
        ([(0, [1]), (1, [1, 2])], "not consistent"),
        ([(0, [9])], "broker 9"),
        ([(0, [1, 1])], "more than once"),
    ],
)
def test_assignments_that_cannot_be_are_refused(given: list[tuple[int, list[int]]], words: str):
    with pytest.raises(LogError, match=words) as why:
        placing.assigned(given, NODES)
    assert why.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_assignments_are_taken_in_the_order_of_their_partitions():
    assert placing.assigned([(1, [3, 1]), (0, [2, 1])], NODES) == [[2, 1], [3, 1]]


def test_a_topic_creates_itself_only_if_it_could_be_created():
    assert placing.creates_itself("a", 1, 3, NODES, {}, 0)
    assert not placing.creates_itself("a_b", 1, 1, NODES, {"a.b": 1}, 0)
    assert not placing.creates_itself("a", 1, 1, NODES, {}, placing.MOST_PARTITIONS)
    assert not placing.creates_itself("a", 1, 4, NODES, {}, 0)


def test_numbers_beside_an_assignment_and_too_many_partitions_are_refused():
    placing.check_unset(-1, -1)
    placing.check_numbers(-1, -1, NODES)
    placing.check_count(10_000, 0)
    for refuse in (
        lambda: placing.check_unset(1, -1),
        lambda: placing.check_unset(-1, 1),
        lambda: placing.check_count(10_001, 0),
        lambda: placing.check_count(1, placing.MOST_PARTITIONS),
    ):
        with pytest.raises(LogError):
            refuse()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("unknown", "1", "Unknown topic config name: unknown"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.ms", "1.5", "Not a number of type LONG"),
        ("retention.ms", "9" * 19, "Not a number of type LONG"),
        ("retention.ms", "9" * 99, "Not a number of type LONG"),
        ("max.message.bytes", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "1048575", "Value must be at least 1048576"),
        ("compression.gzip.level", "0", "between 1 and 9"),
        ("compression.gzip.level", "10", "no more than 9"),
        ("cleanup.policy", "delete,shred", "String must be one of: compact, delete"),
        ("leader.replication.throttled.replicas", "x", "must be the literal"),
        ("message.timestamp.type", "Never", "String must be one of: CreateTime, LogAppendTime"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "1.1", "no more than 1"),
        ("min.cleanable.dirty.ratio", "nan", "at least 0"),
        ("max.compaction.lag.ms", "0", "at least 1"),
        ("remote.storage.enable", "true", "Tiered Storage"),
    ],
)
def test_configurations_that_a_topic_cannot_have_are_refused(name: str, value: str, words: str):
    with pytest.raises(InvalidConfig, match=words):
        validate({name: value})


def test_replicas_are_throttled_by_name_or_all():
    for value in ("*", "", "0:1,1:2"):
        validate({"leader.replication.throttled.replicas": value})


def test_the_lags_of_compaction_must_fit_together():
    validate({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"})
    with pytest.raises(InvalidConfig, match="conflict"):
        validate({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})
    with pytest.raises(InvalidConfig, match="conflict"):
        validate(
            {"max.compaction.lag.ms": "5"},
            {"min.compaction.lag.ms": BrokerDefault("6", "log.cleaner.min.compaction.lag.ms")},
        )


def test_the_defaults_are_valid_and_shown_as_they_are():
    defaults = {name: each.default for name, each in topic_configs.TOPIC_CONFIGS.items()}
    validate(defaults)
    assert {name: shown(name, value) for name, value in defaults.items()} == defaults
    assert log_settings({}) == log_settings(defaults)


def test_values_are_shown_parsed():
    assert shown("cleanup.policy", " compact , delete ") == "compact,delete"
    assert shown("retention.ms", "+05") == "5"
    assert shown("preallocate", "TRUE") == "true"
    assert shown("min.cleanable.dirty.ratio", "1") == "1.0"
