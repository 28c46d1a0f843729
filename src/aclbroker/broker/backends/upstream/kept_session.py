"""Sessions of Fetch (KIP-227) and ShareFetch (KIP-932), and the rights to read their topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple, Protocol

from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.turns import wait
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey, fetch, share_fetch
from aclbroker.protocol.schema import Struct
from aclbroker.turns import in_turns

MOST_SESSIONS: Final = 64
"""The most sessions of a connection. A consumer has one, a share consumer one for each group."""

_MOST_PARTITIONS: Final = 100_000
"""The most partitions of a session. For a client of more its session is unknown."""

Topic = str | bytes
"""The name of a topic or its id."""

ScannedTopic = tuple[Topic, list[tuple[int, bytes]]]
"""A topic with the numbers and the bytes of partitions, as a scan finds them in a request."""


class ScannedPartition(NamedTuple):
    """The bytes of a partition in a Fetch request of a version."""

    version: int
    data: bytes

    def decoded(self) -> Any:
        """Return the partition."""
        flexible = APIS[ApiKey.FETCH].flexible
        is_flexible = flexible is not None and self.version >= flexible
        struct = Struct(fetch.FetchPartition, self.version, flexible=is_flexible)
        return struct.decode(BytesIO(self.data))


class TopicIds(Protocol):
    """The topic ids of the cluster upstream: `broker.backends.upstream.topics.TopicDirectory`."""

    names: dict[bytes, str]

    async def learn(self, ids: Collection[bytes]) -> None:
        """Ask for the names of topic ids."""


class SessionForm(NamedTuple):
    """The fields and classes of one key's requests and answers.

    The field of a partition with its number is ``number``. The function ``again`` returns the
    partition to ask for when the client may read it again. The function ``refused`` returns the
    entry of an answer for a partition's number and an error code.
    """

    number: str
    again: Callable[[Any], Any]
    refused: Callable[[int, ErrorCode], Any]
    topic: Any
    forgotten_topic: Any
    answered_topic: Any


FETCH: Final = SessionForm(
    "partition",
    lambda partition: partition.decoded() if isinstance(partition, ScannedPartition) else partition,
    lambda number, code: fetch.PartitionData(number, code, high_watermark=-1, records=b""),
    fetch.FetchTopic,
    fetch.ForgottenTopic,
    fetch.FetchableTopicResponse,
)

SHARE_FETCH: Final = SessionForm(
    "partition_index",
    lambda partition: share_fetch.FetchPartition(partition.partition_index),
    share_fetch.PartitionData,
    share_fetch.FetchTopic,
    share_fetch.ForgottenTopic,
    share_fetch.ShareFetchableTopicResponse,
)


class KeptSession:
    """The partitions of one session, as its client has asked for them.

    Topics that the client may not read are left out of the session upstream. They are added to it
    when the right is there again.
    """

    __slots__ = ("_checked_with", "_count", "_directory", "_form", "_partitions", "_refused")

    def __init__(self, form: SessionForm, directory: TopicIds) -> None:
        self._form = form
        self._directory = directory
        self._partitions: dict[Topic, dict[int, Any]] = {}
        self._count = 0
        self._refused: set[Topic] = set()
        self._checked_with: object = None

    @property
    def is_too_large(self) -> bool:
        """Whether the session has so many partitions that it must be given up."""
        return self._count > _MOST_PARTITIONS

    def begin(self, asked: Any, allowed: Any, checked_with: object) -> None:
        """Take the partitions of the request that began the session, of which some are allowed.

        Such a request forgets nothing, as in Kafka.
        ``checked_with`` is what the check of the request was based on.
        """
        self._add(asked)
        self._refused = set(_topics_of(asked)) - set(_topics_of(allowed))
        self._checked_with = checked_with

    def begin_scanned(
        self, version: int, topics: Iterable[ScannedTopic], checked_with: object
    ) -> None:
        """Take the partitions of the request that began the session, which was wholly allowed."""
        self.update_scanned(version, topics, ())
        self._checked_with = checked_with

    def is_allowed_by(self, decisions: object) -> bool:
        """Return whether all topics were allowed by these decisions, which are the current ones."""
        return self._checked_with is decisions and not self._refused and not self.is_too_large

    @property
    def count(self) -> int:
        """The number of partitions."""
        return self._count

    def has(self, topic: Topic) -> bool:
        """Return whether a topic is in the session."""
        return topic in self._partitions

    def update_scanned(
        self,
        version: int,
        topics: Iterable[ScannedTopic],
        forgotten: Iterable[tuple[Topic, Sequence[int]]],
    ) -> None:
        """Take the partitions that a request adds or changes, and those to forget."""
        for topic, added in topics:
            partitions = self._partitions.setdefault(topic, {})
            before = len(partitions)
            for number, data in added:
                partitions[number] = ScannedPartition(version, data)
            self._count += len(partitions) - before
        for topic, numbers in forgotten:
            self._forget(topic, numbers)

    def continued(self, rights: RequestRights, allowed: Any) -> Any:
        """Return the request that continues the session upstream.

        ``allowed`` is the part of the client's request that the gate has allowed. If ACLs have
        changed, the rights on all topics of the session are asked for again. It may then wait for
        names of topic ids, and raise `UpstreamUnavailable`.
        """
        asked = rights.asked
        self._add(asked)
        self._forget_all(asked)
        named = set(_topics_of(allowed))
        refused_now = set(_topics_of(asked)) - named
        refused = self._refused - named
        now = rights.checked_with
        if not is_same(self._checked_with, now):
            topics = list(self._partitions)
            unknown = {each for each in in_turns(topics) if self._name(each) is None}
            if unknown:
                wait(self._directory.learn([each for each in unknown if isinstance(each, bytes)]))
            readable = rights.allowed("session", {self._name(each) for each in in_turns(topics)})
            refused = {each for each in in_turns(topics) if self._name(each) not in readable}
            self._checked_with = now
        refused = (refused | refused_now) & self._partitions.keys()
        back, gone = self._refused - refused, refused - self._refused
        self._refused = refused
        form = self._form
        again = [_entry(form.topic, each, self._unnamed(each, allowed)) for each in back]
        forgotten = [
            _entry(form.forgotten_topic, each, list(self._partitions[each])) for each in gone
        ]
        kept = [topic for topic in in_turns(allowed.topics) if _topic_of(topic) not in refused]
        again = [entry for entry in again if entry.partitions]
        if not again and not forgotten and len(kept) == len(allowed.topics):
            return allowed
        return dataclasses.replace(
            allowed,
            topics=[*kept, *again],
            forgotten_topics_data=[*in_turns(allowed.forgotten_topics_data), *forgotten],
        )

    def refusals(self, named: Iterable[Any]) -> list[Any]:
        """Return the entries of an answer for topics that may not be read.

        Topics that the client's request has ``named`` are left out, because the gate adds them.
        """
        refused = []
        for topic in self._refused.difference(map(_topic_of, named)):
            is_known = self._name(topic) is not None
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_known else ErrorCode.UNKNOWN_TOPIC_ID
            partitions = [self._form.refused(number, code) for number in self._partitions[topic]]
            refused.append(_entry(self._form.answered_topic, topic, partitions))
        return refused

    def _unnamed(self, topic: Topic, request: Any) -> list[Any]:
        """Return the partitions of a topic that a request does not name itself."""
        form = self._form
        named = {
            getattr(partition, form.number)
            for entry in in_turns(request.topics)
            if _topic_of(entry) == topic
            for partition in entry.partitions
        }
        partitions = self._partitions[topic].items()
        return [form.again(partition) for number, partition in partitions if number not in named]

    def _add(self, asked: Any) -> None:
        number = self._form.number
        for topic in in_turns(asked.topics):
            partitions = self._partitions.setdefault(_topic_of(topic), {})
            before = len(partitions)
            partitions.update((getattr(each, number), each) for each in in_turns(topic.partitions))
            self._count += len(partitions) - before

    def _forget_all(self, asked: Any) -> None:
        for forgotten in in_turns(asked.forgotten_topics_data):
            self._forget(_topic_of(forgotten), forgotten.partitions)

    def _forget(self, topic: Topic, numbers: Sequence[int]) -> None:
        partitions = self._partitions.get(topic, {})
        for number in in_turns(numbers):
            self._count -= partitions.pop(number, None) is not None
        if not partitions:
            self._partitions.pop(topic, None)

    def _name(self, topic: Topic) -> str | None:
        return topic if isinstance(topic, str) else self._directory.names.get(topic)


def is_same(before: object, now: object) -> bool:
    """Return whether nothing has changed between two values of `RequestRights.basis`."""
    if now is None:
        return False
    # A mapping of decisions is compared by its identity, because its entries are many.
    return now is before or (isinstance(now, tuple) and now == before)


def keep_session(sessions: dict[Any, KeptSession], session_id: Any, session: KeptSession) -> None:
    """Add a session to those of a connection; the oldest one goes if there are too many."""
    sessions[session_id] = session
    if len(sessions) > MOST_SESSIONS:
        del sessions[next(iter(sessions))]


def _entry(cls: Any, topic: Topic, partitions: Sequence[Any]) -> Any:
    if isinstance(topic, bytes):
        return cls(topic_id=topic, partitions=partitions)
    return cls(topic, partitions=partitions)


def _topic_of(entry: Any) -> Topic:
    topic: Topic = getattr(entry, "topic", "") or entry.topic_id
    return topic


def _topics_of(request: Any) -> Iterable[Topic]:
    return map(_topic_of, in_turns(request.topics))
