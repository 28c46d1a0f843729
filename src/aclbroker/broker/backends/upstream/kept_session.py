"""Sessions of Fetch (KIP-227) and ShareFetch (KIP-932), and the rights to read their topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.turns import wait
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import fetch, share_fetch
from aclbroker.turns import in_turns

MOST_SESSIONS: Final = 64
"""The most sessions of a connection. A consumer has one, a share consumer one for each group."""

_MOST_PARTITIONS: Final = 100_000
"""The most partitions of a session. For a client of more its session is unknown."""

Topic = str | bytes
"""The name of a topic or its id."""


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
    lambda partition: partition,
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

        ``checked_with`` is what `checked_with` returned before the request was checked.
        """
        self._update(asked)
        self._refused = set(_topics_of(asked)) - set(_topics_of(allowed))
        self._checked_with = checked_with

    def continued(self, rights: RequestRights, allowed: Any) -> Any:
        """Return the request that continues the session upstream.

        ``allowed`` is the part of the client's request that the gate has allowed. If ACLs have
        changed, the rights on all topics of the session are asked for again. It may then wait for
        names of topic ids, and raise `UpstreamUnavailable`.
        """
        asked = rights.asked
        self._update(asked)
        named = set(_topics_of(allowed))
        refused_now = set(_topics_of(asked)) - named
        refused = self._refused - named
        now = checked_with(rights)
        if now is None or now != self._checked_with:
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

    def _update(self, asked: Any) -> None:
        number = self._form.number
        for topic in in_turns(asked.topics):
            partitions = self._partitions.setdefault(_topic_of(topic), {})
            before = len(partitions)
            partitions.update((getattr(each, number), each) for each in in_turns(topic.partitions))
            self._count += len(partitions) - before
        for forgotten in in_turns(asked.forgotten_topics_data):
            partitions = self._partitions.get(_topic_of(forgotten), {})
            for index in in_turns(forgotten.partitions):
                self._count -= partitions.pop(index, None) is not None
            if not partitions:
                self._partitions.pop(_topic_of(forgotten), None)

    def _name(self, topic: Topic) -> str | None:
        return topic if isinstance(topic, str) else self._directory.names.get(topic)


def checked_with(rights: RequestRights) -> object:
    """Return a value that changes with each change of ACLs and of the session's principals.

    It is None if the authorizer has no position of its ACLs.
    """
    position = rights.position()
    return None if position is None else (position, rights.context.session.peer)


def _entry(cls: Any, topic: Topic, partitions: Sequence[Any]) -> Any:
    if isinstance(topic, bytes):
        return cls(topic_id=topic, partitions=partitions)
    return cls(topic, partitions=partitions)


def _topic_of(entry: Any) -> Topic:
    topic: Topic = getattr(entry, "topic", "") or entry.topic_id
    return topic


def _topics_of(request: Any) -> Iterable[Topic]:
    return map(_topic_of, in_turns(request.topics))
