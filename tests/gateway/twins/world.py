"""One run: random requests, stories and changes of ACLs, drawn by a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from aclbroker.broker.backends.upstream.keys import FORWARDED
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.schema import FieldSpec
from tests.gateway.twins.names import Names
from tests.gateway.twins.requests import drawn
from tests.gateway.twins.rights import Rights
from tests.gateway.twins.sides import CLOSED, NODES, SUPER, USERS, Place, Twins

_NOT_LISTED: Final = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
_OF_TOPICS: Final = (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.METADATA)
"""The keys that create or delete topics. They are sent alone: the gateway may ask whether a topic
exists before the cluster has answered the request before.
"""

_OF_FAULTS: Final = 2
"""The number of the connections on which requests fail."""

VERSIONS: Final = tuple(
    (key, version) for key in FORWARDED if key not in _NOT_LISTED for version in APIS[key].versions
)

_OWN: Final = (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER)
"""The keys of the gateway's own requests, which would meet the fault in place of the client's."""

_ADDED_TO: Final = (ApiKey.DESCRIBE_TOPIC_PARTITIONS,)
"""The keys of which the gateway adds the rights of the client to entries with errors, too."""

_PARTLY_REFUSED: Final = (
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
)
"""The keys of which the gate refuses resources of unknown types, also those of a super user."""


def _names_ids(cls: Any, version: int) -> bool:
    """Return whether a request names topics by ids. The gate refuses unknown ones."""
    for field in dataclasses.fields(cls):
        spec: FieldSpec | None = field.metadata.get("spec")
        if spec is not None and version in spec.versions:
            kind = spec.kind[0] if isinstance(spec.kind, list) else spec.kind
            if field.name == "topic_id" or (isinstance(kind, type) and _names_ids(kind, version)):
                return True
    return False


_FAULTY: Final = tuple(
    (key, version)
    for key, version in VERSIONS
    if key not in (*_OWN, *_ADDED_TO, *_PARTLY_REFUSED)
    and not _names_ids(APIS[key].request, version)
)
"""The keys and versions whose requests may fail: the gate passes or refuses them as a whole."""

_FAULTS: Final[Sequence[dict[str, str]]] = (
    {"error": "NOT_COORDINATOR"},
    {"error": "REQUEST_TIMED_OUT"},
    {"error": "UNKNOWN_SERVER_ERROR", "delay": "0.001"},
    {"delay": "0.001"},
    {"closes": "true"},
)


class World:
    """The two sides, and the names that the requests of this run are about."""

    def __init__(self, twins: Twins, random: Random) -> None:
        self.twins, self.random = twins, random
        self.names = Names(random)
        self.rights = Rights(twins, random)
        self._left: list[tuple[ApiKey, int]] = []
        self.look()

    def look(self) -> None:
        """Learn the ids of all topics, as a super user."""
        answer = self.ask(Place(SUPER, 1), ApiKey.METADATA, 12, MetadataRequest(None))
        ids = {topic.name: bytes(topic.topic_id) for topic in answer.topics}
        self.twins.renames.deleted.update(self.names.learn_topics(ids))

    def ask(self, place: Place, key: ApiKey, version: int, message: Any) -> Any:
        """Send a request to both sides; return the answer of the cluster that has ACLs."""
        answer = self.twins.ask(place, key, version, message)
        self.names.place = place
        self.names.learn(answer)
        return answer

    def user(self) -> str:
        """Return a random user; alice has the most rights."""
        return self.random.choice(("alice", *USERS, SUPER))

    def node(self) -> int:
        """Return a random node."""
        return self.random.choice(NODES)

    def place(self) -> Place:
        """Return a random user and node."""
        return Place(self.user(), self.node())

    def version(self, key: ApiKey, least: int = 0) -> int:
        """Return a random version of a key, at least some version."""
        versions = APIS[key].versions
        return self.random.choice(versions[max(0, least - versions[0]) :])

    def leader(self, topic: str, index: int, *, exact: bool = False) -> int:
        """Return the leader of a partition, or rarely another node."""
        request = MetadataRequest([MetadataRequestTopic(name=topic)], False)
        [answer] = self.ask(Place(SUPER, 1), ApiKey.METADATA, 12, request).topics
        leaders = [each.leader_id for each in answer.partitions if each.partition_index == index]
        return leaders[0] if exact and leaders else self._mostly(leaders)

    def coordinator(self, name: str, kind: int = 0, *, exact: bool = False) -> int:
        """Return the coordinator of a group or transactional id, or rarely another node."""
        request = FindCoordinatorRequest(name, kind)
        found = int(self.ask(Place(SUPER, 1), ApiKey.FIND_COORDINATOR, 3, request).node_id)
        return found if exact else self._mostly([found])

    def end(self, topic: str) -> int:
        """Return the end of a topic's first partition."""
        parts = [ListOffsetsPartition(0, timestamp=-1)]
        request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic, parts)])
        place = Place(SUPER, self.leader(topic, 0, exact=True))
        answer = self.ask(place, ApiKey.LIST_OFFSETS, 7, request)
        return max(0, int(answer.topics[0].partitions[0].offset))

    def _mostly(self, nodes: list[int]) -> int:
        known = [node for node in nodes if node in NODES]
        return known[0] if known and self.random.random() < 0.93 else self.node()

    def draw(self) -> None:
        """Send a random request; all keys and versions have their turns."""
        self._draw(self.place(), *self._next())

    def pipeline(self) -> None:
        """Send some requests on one connection before their answers come."""
        place = self.names.place = self.place()
        requests = []
        for _ in range(self.random.randint(2, 4)):
            key, version = self._next()
            if key in _OF_TOPICS:
                self._draw(place, key, version)
            else:
                requests.append((key, version, drawn(key, version, self.names)))
        for request in requests:
            self.twins.send(place, *request)
        for request in requests:
            answer = self.twins.answer(place, *request)
            self.names.learn(answer)
            if answer is CLOSED:
                break

    def _next(self) -> tuple[ApiKey, int]:
        if not self._left:
            self._left = list(VERSIONS)
            self.random.shuffle(self._left)
        return self._left.pop()

    def _draw(self, place: Place, key: ApiKey, version: int) -> None:
        self.names.place = place
        self.ask(place, key, version, drawn(key, version, self.names))
        if key in _OF_TOPICS:
            self.look()

    def fail(self) -> None:
        """Let a request of a super user fail in both clusters."""
        key, version = self.random.choice(_FAULTY)
        self.twins.fail(key, **self.random.choice(_FAULTS))
        before = len(self.twins.differing)
        # The gate merges and refuses names that a request has twice.
        self.names.has_doubles = False
        self._draw(Place(SUPER, self.node(), number=_OF_FAULTS), key, version)
        self.names.has_doubles = True
        alone, behind = self.twins.forget_faults()
        assert not alone
        if behind:
            # The gateway has answered the request itself, so that it did not meet the fault.
            del self.twins.differing[before:]
