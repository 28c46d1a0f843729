"""The short way of a Produce or a Fetch that is wholly allowed: it is not decoded.

A scan reads the topics from the bytes of the request. If the session has the rights on all of them,
the request leaves as it came. Its answer leaves as it came, too, if a scan finds only the topics of
the request in it. For a Fetch the rights must also be the same as before. All else takes the
decoded path: a request stays where it is, and an answer becomes ``unread``.
"""

from __future__ import annotations

import struct
from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.broker.backends.backend import Answers
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.connection import UpstreamConnection
from aclbroker.broker.backends.upstream.likeness import Likeness, likeness_of
from aclbroker.broker.backends.upstream.pipeline import Pipeline
from aclbroker.broker.backends.upstream.relayed import (
    CORRELATION_ID_SIZE,
    LENGTH_SIZE,
    REQUEST_HEAD,
    Asked,
    Form,
    Forms,
    Forwarded,
    ForwardedFetch,
    Route,
    relay_fetch,
    relay_produce,
)
from aclbroker.broker.backends.upstream.streaming import (
    FIRST,
    LARGE,
    MOST_FIRST,
    FetchAnswerStream,
    ProduceStream,
)
from aclbroker.broker.gate.whole import WholeRights
from aclbroker.protocol.compile.scanner import MOST_ENTRIES
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.wire import FrameReader

MOST_AT_WORK: Final = 32
"""The most requests of a connection that are relayed and not answered at a time."""

_RESPONSE_HEAD: Final = struct.Struct(">ii")
"""The length and the correlation id."""


class UpstreamRelay:
    """Forwards the wholly allowed requests of one connection, and their answers."""

    __slots__ = (
        *("_answers", "_connection", "_forms", "_likeness"),
        *("_receiving", "_route", "_sending"),
    )

    def __init__(self, backend: UpstreamBackend, pipeline: Pipeline, answers: Answers) -> None:
        self._route = Route(backend, pipeline)
        self._answers = answers
        self._connection: UpstreamConnection | None = None
        self._forms = Forms({})
        self._likeness: Likeness | None = None
        self._sending: ProduceStream | None = None
        self._receiving: FetchAnswerStream | None = None
        pipeline.opened = self._opened

    @property
    def is_full(self) -> bool:
        """Whether the broker does not read, so that no further request may begin."""
        return self._connection is not None and self._connection.is_full

    def _opened(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        connection.relay = self

    # -- requests

    def take(self, rights: WholeRights, session: Session | None, frames: FrameReader) -> bool:
        """Forward the requests at the front of those that have arrived, up to one to decode.

        Without a session only a request is sent on that was begun. Returns whether there were any.
        """
        connection = self._connection
        if connection is None or not connection.is_open or not frames.data:
            return False
        if self._sending is not None:
            self._send_on(self._sending, connection, frames)
            if not frames.data or frames.is_midway:
                return True
        if session is None:
            return True
        if self._forms.offered is not self._route.backend.cluster.state.offered:
            self._forms = Forms(self._route.backend.cluster.state.offered)
            self._likeness = None
        start = frames.start
        self._send_whole(rights, session, connection, frames)
        if FIRST <= frames.buffered <= MOST_FIRST and len(self._answers.slots) < MOST_AT_WORK:
            self._begin_to_send(rights, session, connection, frames)
        return not frames.data or frames.start > start

    def _send_whole(
        self,
        rights: WholeRights,
        session: Session,
        connection: UpstreamConnection,
        frames: FrameReader,
    ) -> None:
        """Send those first requests that may pass, all in one write."""
        forms, slots, expected = self._forms, self._answers.slots, connection.expected
        data, pos, size, limit = frames.data, frames.start, len(frames.data), frames.limit
        try:
            while size - pos >= REQUEST_HEAD.size and len(slots) < MOST_AT_WORK:
                length, head, correlation_id, name_size = REQUEST_HEAD.unpack_from(data, pos)
                form, end = forms[head], pos + LENGTH_SIZE + length
                if form is None or end > size or length > limit:
                    break
                slot: Forwarded | None = None
                if self._likeness is not None:
                    slot = self._likeness.relayed(rights, session, data, pos, end)
                if slot is None:
                    slot = self._scanned(rights, session, form, data, pos, name_size, end)
                if slot is None:
                    break
                expected.append((correlation_id, slot))
                slots.append(slot)
                self._route.backend.cluster.relayed += 1
                pos = end
        finally:
            if pos > frames.start:
                connection.write(data[frames.start : pos])
                frames.skip_to(pos)

    def _scanned(
        self,
        rights: WholeRights,
        session: Session,
        form: Form,
        data: Frame,
        pos: int,
        name_size: int,
        end: int,
    ) -> Forwarded | None:
        """Return the place of the answer to the request between two positions, if it may pass."""
        body = pos + REQUEST_HEAD.size + max(name_size, 0)
        if body >= end:
            return None
        asked = Asked(self._route, rights, session, form, bytes(data[pos:body]))
        if form.is_flexible:
            if data[body]:
                return None
            body += 1
        found = form.request(data, body, end)
        if found is None:
            return None
        _, _, correlation_id, _ = REQUEST_HEAD.unpack_from(data, pos)
        try:
            if form.key is not ApiKey.PRODUCE:
                return relay_fetch(asked, correlation_id, *found)
            slot = relay_produce(asked, correlation_id, *found)
        except UnicodeDecodeError:
            return None
        if slot is not None and not found[3]:
            self._likeness = slot.likeness = likeness_of(slot, data, pos, found[4], end)
        return slot

    def _begin_to_send(
        self,
        rights: WholeRights,
        session: Session,
        connection: UpstreamConnection,
        frames: FrameReader,
    ) -> None:
        """Send the first bytes of a large Produce, if it may pass."""
        data, start = frames.data, frames.start
        length, head, correlation_id, name_size = REQUEST_HEAD.unpack_from(data, start)
        form, size = self._forms[head], LENGTH_SIZE + length
        is_large = frames.buffered < size and size > LARGE and length <= frames.limit
        if form is None or form.key is not ApiKey.PRODUCE or not is_large:
            return
        body = REQUEST_HEAD.size + max(name_size, 0) + form.is_flexible
        if form.is_flexible and data[start + body - 1 : start + body] != b"\0":
            return
        asked = Asked(self._route, rights, session, form, bytes(data[start : start + body]))
        stream = ProduceStream(asked, size, body)
        try:
            passed = stream.take(data[start:])
        except ProtocolError:
            return
        if stream.slot is None:
            return
        connection.expected.append((correlation_id, stream.slot))
        self._answers.slots.append(stream.slot)
        self._sending = stream
        connection.begin_large()
        connection.write(passed)
        frames.skip_to(len(data))
        frames.is_midway = True

    def _send_on(
        self, stream: ProduceStream, connection: UpstreamConnection, frames: FrameReader
    ) -> None:
        """Send the next bytes of a large Produce."""
        end = min(len(frames.data), frames.start + stream.left)
        try:
            passed = stream.take(frames.data[frames.start : end])
        except ProtocolError as error:
            # The rest of the frame never comes, so that the broker does nothing.
            if stream.slot is not None:
                stream.slot.set_exception(error)
            connection.lose(str(error))
            return
        frames.skip_to(end)
        connection.write(passed)
        if not stream.left:
            self._sending, frames.is_midway = None, False
            self._route.backend.cluster.relayed += 1
            connection.end_large()
            stream.end()

    # -- answers

    def take_answers(self, frames: FrameReader) -> None:
        """Pass on the answers at the front of those that have arrived, up to one to decode."""
        connection = self._connection
        if connection is None:
            return
        if self._receiving is not None:
            self._receive_on(self._receiving, connection, frames)
        if not self._answers.is_writable:
            connection.pause()
        elif frames.data and not frames.is_midway:
            self._receive_whole(connection, frames)
            if FIRST <= frames.buffered <= MOST_FIRST and self._answers.is_writable:
                self._begin_to_receive(connection, frames)

    def go_on(self) -> None:
        """Read answers again, because the client has read those before."""
        if self._connection is not None:
            self._connection.go_on()

    def _receive_whole(self, connection: UpstreamConnection, frames: FrameReader) -> None:
        """Pass on those first answers that may pass, all in one write."""
        slots, expected = self._answers.slots, connection.expected
        data, pos, size = frames.data, frames.start, len(frames.data)
        try:
            while size - pos >= _RESPONSE_HEAD.size and expected and slots:
                length, correlation_id = _RESPONSE_HEAD.unpack_from(data, pos)
                end = pos + LENGTH_SIZE + length
                number, slot = expected[0]
                if correlation_id != number or not pos < end <= size:
                    break
                # An answer may not leave before those to earlier requests.
                if slots[0] is not slot or not isinstance(slot, Forwarded):
                    break
                if not slot.may_pass(data, pos + LENGTH_SIZE, end):
                    break
                expected.popleft()
                slots.popleft()
                pos = end
        finally:
            if pos > frames.start:
                passed = data[frames.start : pos]
                frames.skip_to(pos)
                self._answers.pass_on(passed)

    def _begin_to_receive(self, connection: UpstreamConnection, frames: FrameReader) -> None:
        """Pass on the first bytes of a large answer to a Fetch, if it may pass."""
        data, start, slots = frames.data, frames.start, self._answers.slots
        length, correlation_id = _RESPONSE_HEAD.unpack_from(data, start)
        size = LENGTH_SIZE + length
        is_large = frames.buffered < size and size > LARGE and length <= frames.limit
        if not is_large or not connection.expected or not slots:
            return
        number, slot = connection.expected[0]
        if number != correlation_id or slots[0] is not slot or not isinstance(slot, ForwardedFetch):
            return
        head = slot.asked.form.answer_head
        body = LENGTH_SIZE + head
        if slot.partitions > MOST_ENTRIES:
            return  # To read so many takes several turns.
        if not slot.is_allowed() or (head > CORRELATION_ID_SIZE and data[start + body - 1]):
            return
        stream = FetchAnswerStream(slot, size, body)
        try:
            passed = stream.take(data[start:])
        except ProtocolError:
            return
        slot.is_leaving = True
        self._receiving = stream
        frames.skip_to(len(data))
        frames.is_midway = True
        self._pass_on(connection, passed)

    def _receive_on(
        self, stream: FetchAnswerStream, connection: UpstreamConnection, frames: FrameReader
    ) -> None:
        """Pass on the next bytes of a large answer."""
        end = min(len(frames.data), frames.start + stream.left)
        try:
            passed = stream.take(frames.data[frames.start : end])
        except ProtocolError as error:
            connection.lose(f"malformed answer: {error}")
            return
        frames.skip_to(end)
        if not stream.left:
            self._receiving, frames.is_midway = None, False
            stream.end()
            connection.expected.popleft()
            self._answers.slots.popleft()
        self._pass_on(connection, passed)

    def _pass_on(self, connection: UpstreamConnection, passed: Frame) -> None:
        self._answers.pass_on(passed)
        if not self._answers.is_writable:
            connection.pause()
