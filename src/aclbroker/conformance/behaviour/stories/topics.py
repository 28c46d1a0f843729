"""Stories of topics that are created, grown and deleted, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import (
    ApiKey,
    create_partitions,
    create_topics,
    delete_topics,
)
from aclbroker.protocol.primitives import ZERO_UUID

_LONGEST_NAME: Final = 249
_TIMEOUT_MS: Final = 10_000


def _topic(name: str, partitions: int = 1, replication: int = 1, **more: Any) -> Any:
    configs = [
        create_topics.CreatableTopicConfig(key.replace("_", "."), value)
        for key, value in more.pop("configs", {}).items()
    ]
    return create_topics.CreatableTopic(name, partitions, replication, configs=configs, **more)


def _assigned(*replicas: Sequence[int], first: int = 0) -> list[Any]:
    return [
        create_topics.CreatableReplicaAssignment(first + index, ids)
        for index, ids in enumerate(replicas)
    ]


def topics_are_created(teller: Teller) -> None:
    """Tell which topics cannot be created, and which can."""

    def create(about: str, *topics: Any, validate: bool = False) -> None:
        request = create_topics.CreateTopicsRequest(topics, _TIMEOUT_MS, validate)
        answer = teller.quietly(ApiKey.CREATE_TOPICS, request)
        for each in answer.topics:
            if getattr(each, "topic_id", ZERO_UUID) != ZERO_UUID:
                short = each.name.removeprefix(teller.name(""))
                teller.call(each.topic_id, f"id of {short}")
            each.configs = None
        teller.keep(ApiKey.CREATE_TOPICS, answer, about)
        teller.settle()

    name = teller.name
    wrong = {
        "that is there": _topic(name("orders")),
        "of a bad name": _topic(name("a b")),
        "of a long name": _topic(name("x" * _LONGEST_NAME)),
        "of no partitions": _topic(name("new"), 0),
        "of less": _topic(name("new"), -2),
        "of no replicas": _topic(name("new"), 1, 0),
        "of too many replicas": _topic(name("new"), 1, 2),
        "of an unknown setting": _topic(name("new"), configs={"colour": "red"}),
        "of a bad value": _topic(name("new"), configs={"retention_ms": "soon"}),
        "of a value too low": _topic(name("new"), configs={"segment_bytes": "1"}),
        "of no value": _topic(name("new"), configs={"retention_ms": None}),
        "with both": _topic(name("new"), 1, 1, assignments=_assigned([1])),
        "with a node that is not there": _topic(name("new"), -1, -1, assignments=_assigned([77])),
        "without replicas": _topic(name("new"), -1, -1, assignments=_assigned([])),
        "from 1 on": _topic(name("new"), -1, -1, assignments=_assigned([1], first=1)),
    }
    for about, topic in wrong.items():
        create(about, topic)
    for names in ("", ".", ".."):
        create(f"called {names!r}", _topic(names))
    create("twice", _topic(name("twice")), _topic(name("twice"), 2), _topic(name("once")))
    create("none")
    create("only looked at", _topic(name("new"), 3), _topic(name("orders")), validate=True)
    create("several", _topic(name("new"), 3), _topic(name("by-default"), -1, -1))
    create("again", _topic(name("new"), 3))
    create("that collides", _topic(name("a.b")), _topic(name("other")))
    create("that collides with it", _topic(name("a_b")))


def topics_grow(teller: Teller) -> None:
    """Tell which numbers of partitions a topic may get."""

    def grow(about: str, *topics: Any, validate: bool = False) -> None:
        request = create_partitions.CreatePartitionsRequest(topics, _TIMEOUT_MS, validate)
        teller.ask(ApiKey.CREATE_PARTITIONS, request, about)
        teller.settle()

    def topic(name: str, count: int, *replicas: Sequence[int]) -> Any:
        assignments = [create_partitions.CreatePartitionsAssignment(each) for each in replicas]
        wanted = assignments if replicas else None
        return create_partitions.CreatePartitionsTopic(teller.name(name), count, wanted)

    for count in (2, 1, 0, -1):
        grow(f"to {count}", topic("orders", count))
    grow("one that is not there", topic("nowhere", 2))
    grow("one twice", topic("orders", 3), topic("orders", 4))
    grow("with too few nodes", topic("orders", 4, [1]))
    grow("with a node that is not there", topic("orders", 3, [77]))
    grow("without replicas", topic("orders", 3, []))
    grow("with a replica twice", topic("orders", 3, [1, 1]))
    grow("only looked at", topic("orders", 3), validate=True)
    grow("to 3", topic("orders", 3))
    grow("to 3 again", topic("orders", 3))
    grow("none")


def topics_are_deleted(teller: Teller) -> None:
    """Tell which topics are deleted, by name and by id."""

    def delete(about: str, *topics: tuple[str | None, bytes]) -> None:
        states = [delete_topics.DeleteTopicState(*each) for each in topics]
        names = [name for name, _ in topics if name is not None]
        request = delete_topics.DeleteTopicsRequest(states, names, _TIMEOUT_MS)
        teller.ask(ApiKey.DELETE_TOPICS, request, about)
        teller.settle()

    name = teller.name
    delete("one that is not there", (name("nowhere"), ZERO_UUID))
    delete("none")
    delete("one twice", (name("orders"), ZERO_UUID), (name("orders"), ZERO_UUID))
    delete("one", (name("orders"), ZERO_UUID))
    delete("one again", (name("orders"), ZERO_UUID))
    if not teller.is_oldest:
        own = teller.ids["payments"]
        delete("by an id that is not there", (None, b"an id of no one.."[:16]))
        delete("by name and id", (name("payments"), own))
        delete("by the id of another", (name("invoices"), own))
        delete("by name and by id", (name("payments"), ZERO_UUID), (None, own))
        delete("by neither", (None, ZERO_UUID))
        delete("by id", (None, own))
        delete("by id again", (None, own))
    delete("the last", (name("invoices"), ZERO_UUID))


STORIES: Final = (
    Story(topics_are_created, {"orders": TopicWanted()}),
    Story(topics_grow, {"orders": TopicWanted(2)}),
    Story(
        topics_are_deleted,
        {"orders": TopicWanted(), "payments": TopicWanted(), "invoices": TopicWanted()},
    ),
)
