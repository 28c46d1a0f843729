"""Large requests and answers that pass in pieces, as they arrive.

A Produce of one topic passes once its topic, its transactional id and its first batch are known. A
Fetch's answer passes as long as its topics are those that were asked for. Where the rest of a frame
then is not as expected, both connections end in the middle of it, and so it has no effect.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from aclbroker.broker.backends.upstream.relayed import (
    REQUEST_HEAD,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Asked,
    ForwardedFetch,
    ForwardedProduce,
)
from aclbroker.broker.gate.whole import Decisions
from aclbroker.protocol.compile.scanner import MOST_ENTRIES
from aclbroker.protocol.messages import fetch, produce
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.schema import struct_of
from aclbroker.protocol.walk import Walk

LARGE: Final = 65_536
"""From how many bytes on a frame passes in pieces."""

FIRST: Final = 4_096
"""How many bytes of a frame are awaited before the first ones pass."""

MOST_FIRST: Final = 1 << 20
"""With how many bytes a frame may still begin to pass in pieces. Each attempt copies them."""

BATCH_HEAD: Final = 61
"""The bytes of a batch of format 2 without records."""

_TRANSACTIONAL: Final = 0x10
_NODE_ENDPOINTS: Final = {"": (0,)}
"""The addresses of brokers in the answer to a Fetch: clients ask for the new ones by Metadata."""


class Irregular(ProtocolError):
    """A frame cannot pass in pieces. It is decoded if none of it has passed yet."""


class Stream:
    """A frame of ``size`` bytes, its length included, that passes in pieces.

    The message of the frame begins at ``body``.
    """

    walk: Walk

    def __init__(self, size: int, body: int) -> None:
        self.left = size
        """How many bytes of the frame have not come yet."""

        self._head = body

    def take(self, data: Frame) -> Frame:
        """Read the next bytes of the frame; return those that may pass. Raises `ProtocolError`."""
        head, self._head = self._head, 0
        if head > len(data):
            raise Irregular("the header has not arrived")
        self.left -= len(data)
        try:
            passed = self.walk.take(data[head:] if head else data)
        except UnicodeDecodeError as error:
            raise ProtocolError(str(error)) from error
        if not self.left and not self.walk.is_done:
            raise ProtocolError("a frame ends before its message does")
        return data[:head] + passed if head else passed


class FetchAnswerStream(Stream):
    """The answer to a Fetch."""

    def __init__(self, slot: ForwardedFetch, size: int, body: int) -> None:
        super().__init__(size, body)
        self.slot = slot
        self._topics: set[bytes] = set()
        self._session_id = 0
        self._partitions = 0
        kept = (
            *("error_code", "session_id", "responses.topic", "responses.topic_id"),
            "responses.partitions",
        )
        layout = struct_of(fetch.FetchResponse, slot.asked.form.version)
        self.walk = Walk(layout, kept, self._seen, hidden=_NODE_ENDPOINTS)

    def end(self) -> None:
        """Note that all of the answer has passed."""
        self.slot.keep(self._session_id)

    def _seen(self, path: str, value: Any) -> None:
        if path == "error_code":
            if value:
                raise Irregular("the answer has an error code")
        elif path == "session_id":
            self._session_id = value
        elif path == "responses.partitions":
            self._partitions += value
            if self._partitions > MOST_ENTRIES:
                raise Irregular("the answer has more partitions than were asked for")
        elif value in self._topics or not self.slot.is_asked(value):
            raise Irregular("the answer has a topic twice, or one that was not asked for")
        else:
            self._topics.add(value)


class ProduceStream(Stream):
    """A Produce of one topic."""

    def __init__(self, asked: Asked, size: int, body: int) -> None:
        super().__init__(size, body)
        self._asked = asked
        self._ids: list[str] = []
        self._names: list[str] = []
        self._numbers: list[int] = []
        self._by_name: Decisions | None = None
        self._by_id: Decisions | None = None
        self.slot: ForwardedProduce | None = None
        """The place of the answer; None until the first batch was seen."""

        self._topic = b""
        kept: Collection[str] = (
            *("transactional_id", "acks", "topic_data", "topic_data.name", "topic_data.topic_id"),
            *("topic_data.partition_data", "topic_data.partition_data.index"),
            "topic_data.partition_data.records",
        )
        layout = struct_of(produce.ProduceRequest, asked.form.version)
        self.walk = Walk(layout, kept, self._seen, head=BATCH_HEAD, refuses_tags=True)

    def end(self) -> None:
        """Record the decisions, because all of the request has passed."""
        if self._by_id is not None:
            self._asked.record(WRITE_TRANSACTIONAL_ID, self._ids, [1], self._by_id)
        if self._by_name is not None:
            counts = [len(self._numbers)]
            self._asked.record(WRITE_TOPIC, self._names, counts, self._by_name)

    def _seen(self, path: str, value: Any) -> None:
        match path.rpartition(".")[2]:
            case "transactional_id":
                self._ids = [] if value is None else [value.decode()]
            case "acks" if not value:
                raise Irregular("the request wants no answer")
            case "topic_data" if value != 1:
                raise Irregular("the request has several topics")
            case "name" | "topic_id":
                self._decide(value)
            case "partition_data" if value > MOST_ENTRIES:
                raise Irregular("the request has so many partitions that it takes several turns")
            case "index":
                self._numbers.append(value)
            case "records":
                self._check_batch(*value)

    def _decide(self, topic: bytes) -> None:
        asked = self._asked
        names = asked.names([(topic, None)])
        if names is not None:
            self._by_name = asked.rights.allow(asked.session, WRITE_TOPIC, names)
        if names is None or self._by_name is None:
            raise Irregular("the topic may not be written")
        self._names, self._topic = names, topic

    def _check_batch(self, head: bytes, size: int) -> None:
        if len(head) < BATCH_HEAD or head[16] != 2 or int.from_bytes(head[8:12]) + 12 != size:
            raise Irregular("the records of a partition are not one batch")
        if head[22] & _TRANSACTIONAL and self._by_id is None:
            asked = self._asked
            if self._ids:
                self._by_id = asked.rights.allow(asked.session, WRITE_TRANSACTIONAL_ID, self._ids)
            if self._by_id is None:
                raise Irregular("the transactional id may not be used")
        if self.slot is None:
            _, _, correlation_id, _ = REQUEST_HEAD.unpack_from(self._asked.head)
            topics = [(self._topic, self._numbers)]
            self.slot = ForwardedProduce(self._asked, correlation_id, topics)
