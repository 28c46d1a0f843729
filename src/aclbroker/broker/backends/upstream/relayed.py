"""The decision whether a Produce or a Fetch may pass as it came, and the place of its answer."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.backends.backend import Relayed
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.fetch import begun, continued, read_fetch
from aclbroker.broker.backends.upstream.forwarding import read_answer
from aclbroker.broker.backends.upstream.kept_session import (
    FETCH,
    KeptSession,
    ScannedPartition,
    ScannedTopic,
    Topic,
    keep_session,
)
from aclbroker.broker.backends.upstream.pipeline import Pipeline
from aclbroker.broker.backends.upstream.scans import (
    FETCH_REQUEST,
    FETCH_RESPONSE,
    PRODUCE_REQUEST,
    PRODUCE_RESPONSE,
)
from aclbroker.broker.gate.conditions import FULL_FETCH
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.whole import Decisions, Right, WholeRights
from aclbroker.protocol.compile.scanner import Scan, scanner
from aclbroker.protocol.header import (
    RequestHeader,
    request_header_version,
    response_header_version,
)
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.fetch import FetchRequest, FetchTopic
from aclbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from aclbroker.protocol.primitives import ZERO_UUID, Frame
from aclbroker.protocol.wire import Request

WRITE_TOPIC: Final = Right(AclOperation.WRITE, ResourceType.TOPIC)
READ_TOPIC: Final = Right(AclOperation.READ, ResourceType.TOPIC)
WRITE_TRANSACTIONAL_ID: Final = Right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)

REQUEST_HEAD: Final = struct.Struct(">iIih")
"""The length, the key with the version, the correlation id and the length of the client id."""

LENGTH_SIZE: Final = 4
CORRELATION_ID_SIZE: Final = 4

_FIRST_BY_ID: Final = 13
"""The first version of Produce and of Fetch that names topics by their ids."""

PLANS: Final = {
    ApiKey.PRODUCE: (PRODUCE_REQUEST, PRODUCE_RESPONSE),
    ApiKey.FETCH: (FETCH_REQUEST, FETCH_RESPONSE),
}
"""The scans of the requests that are relayed, and of their answers."""

ProducedTopic = tuple[bytes, list[int]]
"""A topic of a Produce, by its name or id, with the numbers of its partitions."""


class Form(NamedTuple):
    """How a request and its answer are read at one version of their key.

    The message of an answer begins ``answer_head`` bytes behind the length of its frame. The
    headers of requests have tagged fields if ``is_flexible``.
    """

    key: ApiKey
    version: int
    request: Scan
    answer: Scan
    answer_head: int
    is_flexible: bool
    by_id: bool


class Forms(dict[int, Form | None]):
    """The forms of the versions that a cluster offers, by the key and version in one number."""

    def __init__(self, offered: Mapping[int, range]) -> None:
        super().__init__()
        self.offered = offered

    def __missing__(self, head: int) -> Form | None:
        key, version = head >> 16, head & 0xFFFF
        if key not in PLANS or version not in self.offered.get(key, ()):
            return None  # It is not kept, because clients may send any.
        api, (request, answer) = APIS[ApiKey(key)], PLANS[ApiKey(key)]
        form = self[head] = Form(
            ApiKey(key),
            version,
            scanner(request, version),
            scanner(answer, version),
            CORRELATION_ID_SIZE + response_header_version(api, version),
            request_header_version(api, version) > 1,
            version >= _FIRST_BY_ID,
        )
        return form


class Route(NamedTuple):
    """The cluster upstream as one client reaches it."""

    backend: UpstreamBackend
    pipeline: Pipeline


class Asked(NamedTuple):
    """A request as far as its header goes; ``head`` has its bytes up to the client id."""

    route: Route
    rights: WholeRights
    session: Session
    form: Form
    head: bytes

    def names(self, topics: Sequence[tuple[bytes, Any]]) -> list[str] | None:
        """Return the names of topics, None if one is unknown, reserved or there twice.

        Raises UnicodeDecodeError.
        """
        known, by_id = self.route.backend.directory.names, self.form.by_id
        names = []
        for topic, _ in topics:
            name = known.get(topic) if by_id else topic.decode()
            if name is None or name in self.rights.reserved:
                return None
            names.append(name)
        return names if len(names) < 2 or len(set(names)) == len(names) else None

    def header(self, correlation_id: int) -> RequestHeader:
        """Return the header of the request."""
        _, _, _, size = REQUEST_HEAD.unpack_from(self.head)
        end = REQUEST_HEAD.size + size
        client_id = None if size < 0 else self.head[REQUEST_HEAD.size : end].decode()
        return RequestHeader(self.form.key, self.form.version, correlation_id, client_id, (), 0)

    def record(
        self, right: Right, names: Sequence[str], counts: Sequence[int], decisions: Decisions
    ) -> None:
        """Record allowed decisions, if the audit log wants them."""
        if self.rights.records:
            _, _, correlation_id, _ = REQUEST_HEAD.unpack_from(self.head)
            key, version, _, client_id, _, _ = self.header(correlation_id)
            context = RequestContext(self.session, key, version, client_id, correlation_id)
            self.rights.record(context, right, names, counts, decisions)


class Forwarded(Relayed):
    """The place of an answer; the connection upstream uses it as the future of that answer."""

    def __init__(self, asked: Asked, correlation_id: int) -> None:
        self.asked = asked
        self.correlation_id = correlation_id

    @property
    def session(self) -> Session:
        """The session that sent the request."""
        return self.asked.session

    def leave(self) -> None:
        """Note that the answer leaves for the client."""
        self.asked.route.pipeline.answer_left()

    def done(self) -> bool:
        """Return whether the request has an answer or an error."""
        return self.answer is not None or self.unread is not None or self.error is not None

    def set_result(self, frame: Frame) -> None:
        """Take the answer, a frame without its length."""
        if self.may_pass(frame, 0, len(frame)):
            self.answer = len(frame).to_bytes(LENGTH_SIZE) + frame
        else:
            self.unread = frame
        self.asked.route.pipeline.has_arrived = True

    def set_exception(self, error: BaseException) -> None:
        """Take the reason why there will be no answer."""
        self.error = error
        self.asked.route.pipeline.has_arrived = True

    def may_pass(self, data: Frame, pos: int, end: int) -> bool:
        """Return whether the answer between two positions may leave as it came."""
        form = self.asked.form
        body = pos + form.answer_head
        if form.answer_head > CORRELATION_ID_SIZE and data[body - 1 : body] != b"\0":
            return False
        found = form.answer(data, body, end)
        return found is not None and self._is_expected(*found)

    def _is_expected(self, *_found: Any) -> bool:
        """Return whether an answer has only what the session may see."""
        raise NotImplementedError

    def _named(self, topic: Topic) -> dict[str, Any]:
        if isinstance(topic, bytes) and self.asked.form.by_id:
            return {"topic_id": topic}
        name = "name" if self.asked.form.key is ApiKey.PRODUCE else "topic"
        return {"topic_id": ZERO_UUID, name: topic.decode() if isinstance(topic, bytes) else topic}


class AnswerForm(Protocol):
    """The form of the answers to requests that are alike."""

    def is_answer(self, data: Frame, pos: int, end: int) -> bool:
        """Return whether an answer has nothing but the partition's code and offsets."""


class ForwardedProduce(Forwarded):
    """The place of the answer to a Produce."""

    decisions: Decisions | None = None
    """The decisions by which its topics may be written."""

    likeness: AnswerForm | None = None
    """The form of requests and answers like this one, if there are such."""

    def __init__(self, asked: Asked, correlation_id: int, topics: Sequence[ProducedTopic]) -> None:
        self.asked = asked
        self.correlation_id = correlation_id
        self.topics = topics

    def may_pass(self, data: Frame, pos: int, end: int) -> bool:
        """Return whether the answer between two positions may leave as it came."""
        likeness = self.likeness
        if likeness is not None and likeness.is_answer(data, pos, end):
            return True
        return super().may_pass(data, pos, end)

    def _is_expected(self, *found: Any) -> bool:
        topics: list[bytes] = found[0]
        if len(topics) == 1:
            return topics[0] == self.topics[0][0]
        return _are_among(topics, [topic for topic, _ in self.topics])

    def request(self) -> Request:
        """Return the request, without records."""
        topics = [
            TopicProduceData(
                **self._named(topic),
                partition_data=[PartitionProduceData(number) for number in numbers],
            )
            for topic, numbers in self.topics
        ]
        message = ProduceRequest(None, 1, 0, topics)
        return Request(APIS[ApiKey.PRODUCE], self.asked.header(self.correlation_id), message)

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer."""
        backend, version = self.asked.route.backend, self.asked.form.version
        return read_answer(backend, rights, request, version, self.unread or b"")


class ForwardedFetch(Forwarded):
    """The place of the answer to a Fetch, which was allowed by the decisions ``before``.

    ``kept`` is the session that the request continues.
    """

    def __init__(
        self,
        asked: Asked,
        correlation_id: int,
        before: Decisions,
        topics: Sequence[ScannedTopic],
        session: tuple[int, int],
        kept: KeptSession | None,
    ) -> None:
        self.asked = asked
        self.correlation_id = correlation_id
        self._before = before
        self._topics = topics
        self._session_id, self._epoch = session
        self._kept = kept
        self._names: frozenset[Topic] = frozenset()

    def is_allowed(self) -> bool:
        """Return whether the rights are the same as when the request came."""
        return self.asked.rights.decisions(self.asked.session, READ_TOPIC) is self._before

    @property
    def partitions(self) -> int:
        """The number of partitions that the answer may have."""
        if self._kept is not None:
            return self._kept.count
        return sum(len(partitions) for _, partitions in self._topics)

    def is_asked(self, topic: bytes) -> bool:
        """Return whether a topic of the answer was asked for. Raises UnicodeDecodeError."""
        key = topic if self.asked.form.by_id else topic.decode()
        if self._kept is not None:
            return self._kept.has(key)
        if not self._names:
            self._names = frozenset(name for name, _ in self._topics)
        return key in self._names

    def keep(self, session_id: int) -> None:
        """Keep the session that the answer begins, if it begins one."""
        if session_id and self._kept is None:
            kept = KeptSession(FETCH, self.asked.route.backend.directory)
            kept.begin_scanned(self.asked.form.version, self._topics, self._before)
            keep_session(self.asked.route.pipeline.fetch_sessions, session_id, kept)

    def _is_expected(self, *found: Any) -> bool:
        error_code, session_id, topics = found
        if error_code or not self.is_allowed() or len(set(topics)) < len(topics):
            return False
        if not all(map(self.is_asked, topics)):
            return False
        self.keep(session_id)
        return True

    def request(self) -> Request:
        """Return the request."""
        version = self.asked.form.version
        topics = [
            FetchTopic(
                **self._named(topic),
                partitions=[ScannedPartition(version, data).decoded() for _, data in partitions],
            )
            for topic, partitions in self._topics
        ]
        message = FetchRequest(
            session_id=self._session_id, session_epoch=self._epoch, topics=topics
        )
        return Request(APIS[ApiKey.FETCH], self.asked.header(self.correlation_id), message)

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer, and note the session that it begins."""
        backend, pipeline = self.asked.route
        if self._kept is None:
            finish = partial(begun, backend, rights, request, pipeline.fetch_sessions, self._before)
        else:
            sessions = pipeline.fetch_sessions
            finish = partial(continued, rights, self._kept, sessions, self._session_id)
        return read_fetch(backend, rights, request, self._before, finish, self.unread or b"")


def relay_produce(
    asked: Asked,
    correlation_id: int,
    transactional_id: bytes | None,
    acks: int,
    topics: Sequence[ProducedTopic],
    transactional: bool,
    _records: int,
) -> ForwardedProduce | None:
    """Return the place of the answer to a Produce that may pass. Raises UnicodeDecodeError."""
    names = asked.names(topics)
    if names is None or not acks:
        return None
    rights, session = asked.rights, asked.session
    ids = [] if transactional_id is None else [transactional_id.decode()]
    by_id: Decisions | None = None
    if transactional:
        by_id = rights.allow(session, WRITE_TRANSACTIONAL_ID, ids) if ids else None
        if by_id is None:
            return None
    decisions = rights.allow(session, WRITE_TOPIC, names)
    if decisions is None:
        return None
    if by_id is not None:
        asked.record(WRITE_TRANSACTIONAL_ID, ids, [1], by_id)
    asked.record(WRITE_TOPIC, names, [len(numbers) for _, numbers in topics], decisions)
    slot = ForwardedProduce(asked, correlation_id, topics)
    slot.decisions = decisions
    return slot


def relay_fetch(
    asked: Asked,
    correlation_id: int,
    replica_id: int,
    session_id: int,
    epoch: int,
    topics: Sequence[tuple[bytes, list[tuple[int, bytes]]]],
    forgotten: Sequence[tuple[bytes, tuple[int, ...]]],
) -> ForwardedFetch | None:
    """Return the place of the answer to a Fetch that may pass. Raises UnicodeDecodeError."""
    names = asked.names(topics)
    decisions = None if names is None else asked.rights.allow(asked.session, READ_TOPIC, names)
    if names is None or decisions is None or replica_id >= 0:
        return None
    sessions, form = asked.route.pipeline.fetch_sessions, asked.form
    kept = sessions.get(session_id) if session_id else None
    scanned: Sequence[ScannedTopic] = topics
    gone: Sequence[tuple[Topic, tuple[int, ...]]] = forgotten
    if not form.by_id:
        scanned = [(name, each) for name, (_, each) in zip(names, topics, strict=True)]
        gone = [(name.decode(), each) for name, each in forgotten]
    if epoch in FULL_FETCH:
        if session_id and kept is None:
            return None
        sessions.pop(session_id, None)
        kept = None
    elif kept is None or not kept.is_allowed_by(decisions):
        return None
    else:
        kept.update_scanned(form.version, scanned, gone)
    if topics:
        asked.record(READ_TOPIC, names, [len(partitions) for _, partitions in topics], decisions)
    return ForwardedFetch(asked, correlation_id, decisions, scanned, (session_id, epoch), kept)


def _are_among(topics: Collection[Topic], asked: Collection[Topic]) -> bool:
    """Return whether an answer has topics that were asked for alone, and none of them twice."""
    found = set(topics)
    return len(found) == len(topics) and found.issubset(asked)
