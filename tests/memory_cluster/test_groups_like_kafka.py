"""Groups of a cluster in memory answer as those of a real Kafka 4.3.0 do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.memory_cluster.group_stories import STORIES, TOPICS
from tests.memory_cluster.stories import Story, told
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.kafka import running_kafka

_SETTINGS: Final = {
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}


@pytest.fixture(scope="module")
def kafka_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = _SETTINGS | {"group.consumer.assignment.interval.ms": "0"}
    with running_kafka(tmp_path_factory.mktemp("kafka"), settings) as kafka:
        address = kafka.listeners["PLAINTEXT"]
        topics = [CreatableTopic(name, count, 1) for name, count in TOPICS.items()]
        with Client(address) as client:
            answer = client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics))
        assert [topic.error_code for topic in answer.topics] == [0] * len(TOPICS)
        yield address


@pytest.fixture(scope="module")
def our_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    topics = ",".join(f"{name}:{count}" for name, count in TOPICS.items())
    settings = _SETTINGS | {"aclbroker.cluster": "memory", "aclbroker.catalog.topics": topics}
    broker = Broker(tmp_path_factory.mktemp("broker"), settings)
    broker.start()
    yield broker.listeners["PLAINTEXT"]
    broker.terminate()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_story_is_answered_as_by_kafka(story: Story, kafka_address: str, our_address: str):
    group_id = story.__name__
    ours, kafkas = told(our_address, story, group_id), told(kafka_address, story, group_id)
    for number, (our, other) in enumerate(zip(ours, kafkas, strict=True)):
        assert our == other, f"answer {number}"
