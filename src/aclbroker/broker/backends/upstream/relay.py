"""The short way of a Produce or a Fetch that is wholly allowed: it is not decoded.

A scan reads the topics from the bytes of the request. If the session has the rights on all of them,
the request leaves as it came. Its answer leaves as it came, too, if a scan finds only the topics of
the request in it. For a Fetch the rights must also be the same as before. All else takes the
decoded path: then `WholeRelay` returns None, or leaves the answer ``unread``.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.backends.backend import Relayed
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.fetch import begun, continued, read_fetch
from aclbroker.broker.backends.upstream.forwarding import read_answer
from aclbroker.broker.backends.upstream.kept_session import (
    FETCH,
    KeptSession,
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
from aclbroker.protocol.header import request_header_version, response_header_version
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import Frame

WRITE_TOPIC: Final = Right(AclOperation.WRITE, ResourceType.TOPIC)
READ_TOPIC: Final = Right(AclOperation.READ, ResourceType.TOPIC)
WRITE_TRANSACTIONAL_ID: Final = Right(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)

_PLANS: Final = {
    ApiKey.PRODUCE: (PRODUCE_REQUEST, PRODUCE_RESPONSE),
    ApiKey.FETCH: (FETCH_REQUEST, FETCH_RESPONSE),
}
_FIRST_BY_ID: Final = 13
"""The first version of Produce and of Fetch that names topics by their ids."""

_HEADER: Final = struct.Struct(">hhih")
_LENGTH: Final = struct.Struct(">i")
_CORRELATION_ID: Final = struct.Struct(">i")


class Form(NamedTuple):
    """How a request and its answer are read at one version of their key.

    ``answer_body`` is where the message of the answer begins. ``is_flexible`` says whether headers
    have tagged fields.
    """

    key: int
    version: int
    request: Scan
    answer: Scan
    answer_body: int
    is_flexible: bool
    by_id: bool

    def scan(self, frame: Frame) -> tuple[Any, ...] | None:
        """Return what a scan finds in a request; None if it must be decoded."""
        size = _HEADER.unpack_from(frame)[3]
        pos = _HEADER.size + max(size, 0)
        if self.is_flexible:
            if frame[pos : pos + 1] != b"\0":
                return None
            pos += 1
        return self.request(frame, pos)

    def scan_answer(self, frame: Frame) -> tuple[Any, ...] | None:
        """Return what a scan finds in an answer; None if it must be decoded."""
        if self.answer_body > _CORRELATION_ID.size and frame[_CORRELATION_ID.size]:
            return None
        return self.answer(frame, self.answer_body)


def form_of(key: ApiKey, version: int) -> Form:
    """Return the form of a key's requests at a version that the gateway knows."""
    api, (request, answer) = APIS[key], _PLANS[key]
    return Form(
        key,
        version,
        scanner(request, version),
        scanner(answer, version),
        _CORRELATION_ID.size + response_header_version(api, version),
        request_header_version(api, version) > 1,
        version >= _FIRST_BY_ID,
    )


class _Scanned(NamedTuple):
    """A request that was scanned, with the rights and the session of its client."""

    rights: WholeRights
    session: Session
    frame: Frame
    form: Form
    pipeline: Pipeline

    def context(self) -> RequestContext:
        """Return the request as the audit log records it."""
        key, version, correlation_id, size = _HEADER.unpack_from(self.frame)
        end = _HEADER.size + size
        client_id = None if size < 0 else self.frame[_HEADER.size : end].decode()
        return RequestContext(self.session, key, version, client_id, correlation_id)


class _Forwarded(Relayed):
    """The place of an answer; the connection upstream uses it as the future of that answer."""

    __slots__ = ("_form", "_pipeline")

    def __init__(self, pipeline: Pipeline, form: Form) -> None:
        super().__init__()
        self._pipeline = pipeline
        self._form = form
        self.left = pipeline.answer_left

    def send(self) -> None:
        """Send all requests of the connection that were relayed and not sent yet."""
        self._pipeline.flush()

    def done(self) -> bool:
        """Return whether the request has an answer or an error."""
        return self.answer is not None or self.unread is not None or self.error is not None

    def set_result(self, frame: Frame) -> None:
        """Take the answer, a frame without its length."""
        if type(frame) is bytes and self._may_pass(frame):
            self.answer = _LENGTH.pack(len(frame)) + frame
        else:
            self.unread = frame
        self._pipeline.has_arrived = True

    def set_exception(self, error: BaseException) -> None:
        """Take the reason why there will be no answer."""
        self.error = error
        self._pipeline.has_arrived = True

    def _may_pass(self, frame: bytes) -> bool:
        """Return whether an answer may leave as it came."""
        raise NotImplementedError


class _RelayedProduce(_Forwarded):
    """The place of the answer to a Produce; its topics are as the request has them."""

    __slots__ = ("_relay", "_topics")

    def __init__(
        self, relay: WholeRelay, pipeline: Pipeline, form: Form, topics: Collection[bytes]
    ) -> None:
        super().__init__(pipeline, form)
        self._relay = relay
        self._topics = topics

    def _may_pass(self, frame: bytes) -> bool:
        found = self._form.scan_answer(frame)
        if found is None:
            return False
        topics: list[bytes] = found[0]
        return topics == self._topics or _are_among(topics, self._topics)

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer."""
        return read_answer(
            self._relay.backend, rights, request, self._form.version, self.unread or b""
        )


class _RelayedFetch(_Forwarded):
    """The place of the answer to a Fetch that was allowed by ``decisions``."""

    __slots__ = ("_before", "_kept", "_relay", "_rights", "_session", "_topics")

    def __init__(
        self,
        relay: WholeRelay,
        request: _Scanned,
        before: Decisions,
        topics: list[ScannedTopic],
        kept: tuple[int, KeptSession] | None,
    ) -> None:
        super().__init__(request.pipeline, request.form)
        self._relay = relay
        self._rights = request.rights
        self._session = request.session
        self._before = before
        self._topics = topics
        self._kept = kept

    def _may_pass(self, frame: bytes) -> bool:
        found = self._form.scan_answer(frame)
        if found is None or self._rights.decisions(self._session, READ_TOPIC) is not self._before:
            return False
        error_code, session_id, answered = found
        if error_code:
            return False
        topics = answered if self._form.by_id else [each.decode() for each in answered]
        if self._kept is not None:
            return self._kept[1].has_all(topics)
        if not _are_among(topics, [topic for topic, _ in self._topics]):
            return False
        if session_id:
            kept = KeptSession(FETCH, self._relay.backend.directory)
            kept.begin_scanned(self._form.version, self._topics, self._before)
            keep_session(self._pipeline.fetch_sessions, session_id, kept)
        return True

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer; note the session that it begins."""
        backend, sessions = self._relay.backend, self._pipeline.fetch_sessions
        if self._kept is None:
            finish = partial(begun, backend, rights, request, sessions, self._before)
        else:
            session_id, session = self._kept
            finish = partial(continued, rights, session, sessions, session_id)
        return read_fetch(backend, rights, request, self._before, finish, self.unread or b"")


class WholeRelay:
    """Forwards what is wholly allowed, for the clients of a backend."""

    def __init__(self, backend: UpstreamBackend) -> None:
        self.backend = backend
        self._offered: Mapping[int, range] = {}
        self._forms: dict[Frame, Form] = {}

    def __call__(self, rights: WholeRights, session: Session, frame: Frame) -> Relayed | None:
        """Forward a request; None if it must be decoded."""
        form = self._form(frame)
        pipeline: Pipeline | None = self.backend.pipelines.get(session.connection)
        if form is None or pipeline is None or not pipeline.is_open:
            return None
        found = form.scan(frame)
        if found is None:
            return None
        request = _Scanned(rights, session, frame, form, pipeline)
        try:
            if form.key == ApiKey.PRODUCE:
                relayed: _Forwarded | None = self._produce(request, *found)
            else:
                relayed = self._fetch(request, *found)
        except UnicodeDecodeError:
            return None
        if relayed is not None:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 4)
            pipeline.send_together(frame, correlation_id, relayed)
        return relayed

    def _form(self, frame: Frame) -> Form | None:
        """Return the form of a request's version, None if it is not to be scanned."""
        offered = self.backend.cluster.state.offered
        if offered is not self._offered:
            self._offered = offered
            self._forms.clear()
        if type(frame) is not bytes or len(frame) < _HEADER.size:
            return None
        known = self._forms.get(frame[:4])
        if known is not None:
            return known
        key, version, _, _ = _HEADER.unpack_from(frame)
        if key not in _PLANS or version not in offered.get(key, ()):
            return None
        form = self._forms[frame[:4]] = form_of(ApiKey(key), version)
        return form

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
        request: _Scanned,
        transactional_id: bytes | None,
        acks: int,
        topics: list[tuple[bytes, int]],
        transactional: bool,
    ) -> _Forwarded | None:
        rights, session = request.rights, request.session
        names = self._names(request.form, rights, topics)
        if names is None or not acks:
            return None
        ids: list[str] = []
        by_id: Decisions | None = None
        if transactional:
            if transactional_id is None:
                return None
            ids = [transactional_id.decode()]
            by_id = rights.allow(session, WRITE_TRANSACTIONAL_ID, ids)
            if by_id is None:
                return None
        decisions = rights.allow(session, WRITE_TOPIC, names)
        if decisions is None:
            return None
        if rights.records:
            context = request.context()
            if by_id is not None:
                rights.record(context, WRITE_TRANSACTIONAL_ID, ids, [1], by_id)
            counts = [count for _, count in topics]
            rights.record(context, WRITE_TOPIC, names, counts, decisions)
        return _RelayedProduce(self, request.pipeline, request.form, [topic for topic, _ in topics])

    def _fetch(
        self,
        request: _Scanned,
        replica_id: int,
        session_id: int,
        session_epoch: int,
        topics: list[tuple[bytes, list[tuple[int, bytes]]]],
        forgotten: list[tuple[bytes, tuple[int, ...]]],
    ) -> _Forwarded | None:
        rights, form = request.rights, request.form
        names = self._names(form, rights, topics)
        if names is None or replica_id >= 0:
            return None
        decisions = rights.allow(request.session, READ_TOPIC, names)
        if decisions is None:
            return None
        sessions = request.pipeline.fetch_sessions
        kept = sessions.get(session_id)
        scanned: list[ScannedTopic] = list(topics)
        if not form.by_id:
            scanned = [(name, each) for name, (_, each) in zip(names, topics, strict=True)]
        if session_epoch in FULL_FETCH:
            if session_id:
                if kept is None:
                    return None
                del sessions[session_id]
            continued_session = None
        else:
            if kept is None or not kept.is_allowed_by(decisions):
                return None
            gone = (
                forgotten if form.by_id else [(topic.decode(), each) for topic, each in forgotten]
            )
            kept.update_scanned(form.version, scanned, gone)
            continued_session = session_id, kept
        if rights.records and topics:
            counts = [len(partitions) for _, partitions in topics]
            rights.record(request.context(), READ_TOPIC, names, counts, decisions)
        return _RelayedFetch(self, request, decisions, scanned, continued_session)


def _are_among(topics: Collection[Topic], asked: Collection[Topic]) -> bool:
    """Return whether an answer has topics that were asked for alone, and none of them twice."""
    found = set(topics)
    return len(found) == len(topics) and found.issubset(asked)
