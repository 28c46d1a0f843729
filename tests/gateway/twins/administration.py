"""Topics that come and go, and configurations of brokers."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.acl.bindings import AclOperation as Op
from aclbroker.protocol.messages import ApiKey as Key
from aclbroker.protocol.messages import create_topics as ct
from aclbroker.protocol.messages import delete_topics as dt
from aclbroker.protocol.messages import describe_configs as dc
from aclbroker.protocol.messages import describe_topic_partitions as dtp
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import metadata as m
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gateway.twins.records import Story
from tests.gateway.twins.sides import CLOSED, SUPER, USERS, Place
from tests.gateway.twins.world import World

_TOPIC: Final = "ta"
_BROKER: Final = 4
_BY_IDS: Final = 13
_MOST_PAGES: Final = 10


def deletion(world: World) -> Story:
    """Read a topic by its id, delete it by its id, and use the id again."""
    user = world.random.choice(USERS)
    place = Place(SUPER, world.node())
    created = ct.CreateTopicsRequest([ct.CreatableTopic(_TOPIC, 1, 1)], 1000)
    world.ask(place, Key.CREATE_TOPICS, 7, created)
    world.look()
    topic_id = world.names.ids.get(_TOPIC, ZERO_UUID)
    _read(world, user, topic_id)
    yield
    if world.random.random() < 0.5:
        world.rights.allow(user, _TOPIC, Op.DELETE)
        world.rights.deny(user, _TOPIC, Op.DESCRIBE)
    request = dt.DeleteTopicsRequest([dt.DeleteTopicState(None, topic_id)], timeout_ms=1000)
    for deleter in (user, SUPER):
        world.ask(Place(deleter, place.node), Key.DELETE_TOPICS, 6, request)
    world.look()
    yield
    _read(world, user, topic_id)
    yield


def _read(world: World, user: str, topic_id: bytes) -> None:
    entry = f.FetchTopic("", topic_id, [f.FetchPartition(0, partition_max_bytes=9999)])
    version = world.version(Key.FETCH, _BY_IDS)
    world.ask(Place(user, world.node()), Key.FETCH, version, f.FetchRequest(topics=[entry]))


def created_by_metadata(world: World) -> Story:
    """Ask for a missing topic beside one that may not be described."""
    user = world.random.choice(USERS)
    shown, hidden = world.random.sample(("t3", "ta", "u1"), 2)
    world.rights.allow(user, shown, Op.CREATE)
    world.rights.deny(user, hidden, Op.DESCRIBE)
    entries = [m.MetadataRequestTopic(name=topic) for topic in (hidden, shown)]
    version = world.version(Key.METADATA)
    world.ask(Place(user, world.node()), Key.METADATA, version, m.MetadataRequest(entries))
    world.look()
    yield


def broker_configs(world: World) -> Story:
    """Describe the configuration of a broker."""
    node = world.node()
    resource: Any = dc.DescribeConfigsResource(_BROKER, str(node), None)
    request = dc.DescribeConfigsRequest([resource], True, True)
    place = Place(world.user(), node)
    world.ask(place, Key.DESCRIBE_CONFIGS, world.version(Key.DESCRIBE_CONFIGS), request)
    yield


def pages(world: World) -> Story:
    """Describe all topics a page at a time."""
    place, limit = world.place(), world.random.choice((1, 2, 3))
    cursor: Any = None
    for _ in range(_MOST_PAGES):
        request = dtp.DescribeTopicPartitionsRequest([], limit, cursor)
        answer = world.ask(place, Key.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        cursor = None if answer is CLOSED else answer.next_cursor
        yield
        if cursor is None:
            return
