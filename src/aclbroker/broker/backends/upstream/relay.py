"""The short way of a Produce or a Fetch that is wholly allowed: it is not decoded.

A scan reads the topics from the bytes of the request. If the session has the rights on all of them,
the request leaves as it came. Its answer leaves as it came, too, if a scan finds only the topics of
the request in it. For a Fetch the rights must also be the same as before. All else takes the
decoded path: a request stays where it is, and an answer becomes ``unread``.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.backends.backend import Answers, Relayed
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.connection import UpstreamConnection
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
from aclbroker.protocol.wire import FrameReader, Request

WRITE_TOPIC: Final = Right(AclOperation.WRITE, ResourceType.TOPIC)
READ_TOPIC: Final = Right(AclOperation.READ, ResourceType.TOPIC)
WRITE_TRANSACTIONAL_ID: Final = Right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)

MOST_AT_WORK: Final = 32
"""The most requests of a connection that are relayed and not answered at a time."""

_FIRST_BY_ID: Final = 13
"""The first version of Produce and of Fetch that names topics by their ids."""

_REQUEST_HEAD: Final = struct.Struct(">iIih")
"""The length, the key with the version, the correlation id and the length of the client id."""

_RESPONSE_HEAD: Final = struct.Struct(">ii")
"""The length and the correlation id."""

_LENGTH_SIZE: Final = 4
_CORRELATION_ID_SIZE: Final = 4

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


_PLANS: Final = {
    ApiKey.PRODUCE: (PRODUCE_REQUEST, PRODUCE_RESPONSE),
    ApiKey.FETCH: (FETCH_REQUEST, FETCH_RESPONSE),
}


def form_of(key: ApiKey, version: int) -> Form:
    """Return the form of a key's requests at a version that the gateway knows."""
    api, (request, answer) = APIS[key], _PLANS[key]
    return Form(
        key,
        version,
        scanner(request, version),
        scanner(answer, version),
        _CORRELATION_ID_SIZE + response_header_version(api, version),
        request_header_version(api, version) > 1,
        version >= _FIRST_BY_ID,
    )


class Forms(dict[int, Form | None]):
    """The forms of the versions that a cluster offers, by the key and version in one number."""

    def __init__(self, offered: Mapping[int, range]) -> None:
        super().__init__()
        self.offered = offered

    def __missing__(self, head: int) -> Form | None:
        key, version = head >> 16, head & 0xFFFF
        if key not in _PLANS or version not in self.offered.get(key, ()):
            return None  # It is not kept, because clients may send any.
        form = self[head] = form_of(ApiKey(key), version)
        return form


class _Forwarded(Relayed):
    """The place of an answer; the connection upstream uses it as the future of that answer."""

    def __init__(self, relay: UpstreamRelay, session: Session, form: Form, head: bytes) -> None:
        self.relay = relay
        self.session = session
        self.form = form
        self.head = head

    def leave(self) -> None:
        """Note that the answer leaves for the client."""
        self.relay.pipeline.answer_left()

    def done(self) -> bool:
        """Return whether the request has an answer or an error."""
        return self.answer is not None or self.unread is not None or self.error is not None

    def set_result(self, frame: Frame) -> None:
        """Take the answer, a frame without its length."""
        if self.may_pass(frame, 0, len(frame)):
            self.answer = len(frame).to_bytes(_LENGTH_SIZE) + frame
        else:
            self.unread = frame
        self.relay.pipeline.has_arrived = True

    def set_exception(self, error: BaseException) -> None:
        """Take the reason why there will be no answer."""
        self.error = error
        self.relay.pipeline.has_arrived = True

    def may_pass(self, data: Frame, pos: int, end: int) -> bool:
        """Return whether the answer between two positions may leave as it came."""
        form = self.form
        body = pos + form.answer_head
        if body > pos + _CORRELATION_ID_SIZE and data[body - 1 : body] != b"\0":
            return False
        found = form.answer(data, body, end)
        return found is not None and self._is_expected(*found)

    def _is_expected(self, *_found: Any) -> bool:
        """Return whether an answer has only what the session may see."""
        raise NotImplementedError

    def header(self) -> RequestHeader:
        """Return the header of the request."""
        _, _, correlation_id, size = _REQUEST_HEAD.unpack_from(self.head)
        client_id = None if size < 0 else self.head[_REQUEST_HEAD.size :].decode()
        return RequestHeader(self.form.key, self.form.version, correlation_id, client_id, (), 0)

    def context(self) -> RequestContext:
        """Return the request as the audit log records it."""
        key, version, correlation_id, client_id, _, _ = self.header()
        return RequestContext(self.session, key, version, client_id, correlation_id)

    def _named(self, topic: Topic) -> dict[str, Any]:
        if isinstance(topic, bytes) and self.form.by_id:
            return {"topic_id": topic}
        name = "name" if self.form.key is ApiKey.PRODUCE else "topic"
        return {"topic_id": ZERO_UUID, name: topic.decode() if isinstance(topic, bytes) else topic}


class _Produce(_Forwarded):
    """The place of the answer to a Produce."""

    topics: Sequence[ProducedTopic] = ()

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
        return Request(APIS[ApiKey.PRODUCE], self.header(), ProduceRequest(None, 1, 0, topics))

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer."""
        frame = self.unread or b""
        return read_answer(self.relay.backend, rights, request, self.form.version, frame)


class _Fetch(_Forwarded):
    """The place of the answer to a Fetch, which was allowed by the decisions ``before``."""

    before: Decisions
    rights: WholeRights
    topics: Sequence[ScannedTopic] = ()
    session_id = 0
    epoch = 0
    kept: KeptSession | None = None
    """The session that the request continues."""

    def _is_expected(self, *found: Any) -> bool:
        error_code, session_id, answered = found
        if error_code or self.rights.decisions(self.session, READ_TOPIC) is not self.before:
            return False
        topics = answered if self.form.by_id else [topic.decode() for topic in answered]
        if self.kept is not None:
            return self.kept.has_all(topics)
        if not _are_among(topics, [topic for topic, _ in self.topics]):
            return False
        if session_id:
            kept = KeptSession(FETCH, self.relay.backend.directory)
            kept.begin_scanned(self.form.version, self.topics, self.before)
            keep_session(self.relay.pipeline.fetch_sessions, session_id, kept)
        return True

    def request(self) -> Request:
        """Return the request."""
        topics = [
            FetchTopic(
                **self._named(topic),
                partitions=[
                    ScannedPartition(self.form.version, data).decoded() for _, data in partitions
                ],
            )
            for topic, partitions in self.topics
        ]
        message = FetchRequest(session_id=self.session_id, session_epoch=self.epoch, topics=topics)
        return Request(APIS[ApiKey.FETCH], self.header(), message)

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer, and note the session that it begins."""
        backend, sessions = self.relay.backend, self.relay.pipeline.fetch_sessions
        if self.kept is None:
            finish = partial(begun, backend, rights, request, sessions, self.before)
        else:
            finish = partial(continued, rights, self.kept, sessions, self.session_id)
        return read_fetch(backend, rights, request, self.before, finish, self.unread or b"")


class UpstreamRelay:
    """Forwards the wholly allowed requests of one connection, and their answers."""

    __slots__ = ("_answers", "_connection", "_forms", "backend", "pipeline")

    def __init__(self, backend: UpstreamBackend, pipeline: Pipeline, answers: Answers) -> None:
        self.backend = backend
        self.pipeline = pipeline
        self._answers = answers
        self._connection: UpstreamConnection | None = None
        self._forms = Forms({})
        pipeline.opened = self.opened

    @property
    def is_full(self) -> bool:
        """Whether the broker does not read, so that no further request may begin."""
        return self._connection is not None and self._connection.is_full

    def opened(self, connection: UpstreamConnection) -> None:
        """Use a connection to a broker from now on."""
        self._connection = connection
        connection.relay = self

    def take(self, rights: WholeRights, session: Session, frames: FrameReader) -> None:
        """Forward the requests at the front of those that have arrived, up to one to decode."""
        connection = self._connection
        if connection is None or not connection.is_open:
            return
        forms = self._forms
        if forms.offered is not self.backend.cluster.state.offered:
            forms = self._forms = Forms(self.backend.cluster.state.offered)
        data, pos, slots = frames.data, frames.start, self._answers.slots
        size, limit = len(data), frames.limit
        while size - pos >= _REQUEST_HEAD.size and len(slots) < MOST_AT_WORK:
            length, head, correlation_id, name_size = _REQUEST_HEAD.unpack_from(data, pos)
            form, end = forms[head], pos + _LENGTH_SIZE + length
            if form is None or end > size or length > limit:
                break
            body = pos + _REQUEST_HEAD.size + (name_size if name_size > 0 else 0)
            slot = self._relayed(rights, session, form, data, pos, body, end)
            if slot is None:
                break
            connection.expected.append((correlation_id, slot))
            slots.append(slot)
            self.backend.cluster.relayed += 1
            pos = end
        if pos > frames.start:
            # All requests of one read leave in one write.
            connection.write(data[frames.start : pos])
            frames.skip_to(pos)

    def _relayed(
        self,
        rights: WholeRights,
        session: Session,
        form: Form,
        data: Frame,
        pos: int,
        body: int,
        end: int,
    ) -> _Forwarded | None:
        """Return the place of the answer to the request between two positions, if it may pass."""
        if body >= end:
            return None
        header = bytes(data[pos:body])
        if form.is_flexible:
            if data[body]:
                return None
            body += 1
        found = form.request(data, body, end)
        if found is None:
            return None
        try:
            if form.key is ApiKey.PRODUCE:
                return self._produce(rights, session, form, header, *found)
            return self._fetch(rights, session, form, header, *found)
        except UnicodeDecodeError:
            return None

    def take_answers(self, frames: FrameReader) -> None:
        """Pass on the answers at the front of those that have arrived, up to one to decode."""
        answers, connection = self._answers, self._connection
        if connection is None or not answers.is_writable:
            return
        data, pos, slots, expected = frames.data, frames.start, answers.slots, connection.expected
        size = len(data)
        while size - pos >= _RESPONSE_HEAD.size and expected and slots:
            length, correlation_id = _RESPONSE_HEAD.unpack_from(data, pos)
            end = pos + _LENGTH_SIZE + length
            number, slot = expected[0]
            if correlation_id != number or not pos < end <= size:
                break
            # An answer may not leave before those to earlier requests.
            if slots[0] is not slot or not isinstance(slot, _Forwarded):
                break
            if not slot.may_pass(data, pos + _LENGTH_SIZE, end):
                break
            expected.popleft()
            slots.popleft()
            pos = end
        if pos > frames.start:
            passed = data[frames.start : pos]
            frames.skip_to(pos)
            answers.pass_on(passed)

    def _names(
        self, form: Form, rights: WholeRights, topics: Sequence[tuple[bytes, Any]]
    ) -> list[str] | None:
        """Return the names of topics, None if one is unknown, reserved or there twice."""
        known = self.backend.directory.names
        names = []
        for topic, _ in topics:
            name = known.get(topic) if form.by_id else topic.decode()
            if name is None or name in rights.reserved:
                return None
            names.append(name)
        return names if len(names) < 2 or len(set(names)) == len(names) else None

    def _produce(
        self,
        rights: WholeRights,
        session: Session,
        form: Form,
        head: bytes,
        transactional_id: bytes | None,
        acks: int,
        topics: Sequence[ProducedTopic],
        transactional: bool,
    ) -> _Produce | None:
        names = self._names(form, rights, topics)
        if names is None or not acks:
            return None
        ids = [] if transactional_id is None else [transactional_id.decode()]
        by_id: Decisions | None = None
        if transactional:
            by_id = rights.allow(session, WRITE_TRANSACTIONAL_ID, ids) if ids else None
            if by_id is None:
                return None
        decisions = rights.allow(session, WRITE_TOPIC, names)
        if decisions is None:
            return None
        slot = _Produce(self, session, form, head)
        slot.topics = topics
        if rights.records:
            if by_id is not None:
                rights.record(slot.context(), WRITE_TRANSACTIONAL_ID, ids, [1], by_id)
            counts = [len(numbers) for _, numbers in topics]
            rights.record(slot.context(), WRITE_TOPIC, names, counts, decisions)
        return slot

    def _fetch(
        self,
        rights: WholeRights,
        session: Session,
        form: Form,
        head: bytes,
        replica_id: int,
        session_id: int,
        epoch: int,
        topics: Sequence[tuple[bytes, list[tuple[int, bytes]]]],
        forgotten: Sequence[tuple[bytes, tuple[int, ...]]],
    ) -> _Fetch | None:
        names = self._names(form, rights, topics)
        if names is None or replica_id >= 0:
            return None
        decisions = rights.allow(session, READ_TOPIC, names)
        if decisions is None:
            return None
        sessions = self.pipeline.fetch_sessions
        kept = sessions.get(session_id) if session_id else None
        slot = _Fetch(self, session, form, head)
        slot.rights, slot.before = rights, decisions
        slot.session_id, slot.epoch = session_id, epoch
        slot.topics = topics
        if not form.by_id:
            slot.topics = [(name, each) for name, (_, each) in zip(names, topics, strict=True)]
        if epoch in FULL_FETCH:
            if session_id and kept is None:
                return None
            sessions.pop(session_id, None)
        elif kept is None or not kept.is_allowed_by(decisions):
            return None
        else:
            gone = forgotten if form.by_id else [(name.decode(), each) for name, each in forgotten]
            kept.update_scanned(form.version, slot.topics, gone)
            slot.kept = kept
        if rights.records and topics:
            counts = [len(partitions) for _, partitions in topics]
            rights.record(slot.context(), READ_TOPIC, names, counts, decisions)
        return slot


def _are_among(topics: Collection[Topic], asked: Collection[Topic]) -> bool:
    """Return whether an answer has topics that were asked for alone, and none of them twice."""
    found = set(topics)
    return len(found) == len(topics) and found.issubset(asked)
