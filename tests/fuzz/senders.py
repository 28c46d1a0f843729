"""Who sends unkind requests, and what must come of each: its answer, and not too much of one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, Self

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.wire import decode_response
from tests.fuzz.peers import Asked, Healthy, login
from tests.fuzz.unkind import Request
from tests.gate.requests import codes
from tests.support.accounts import PASSWORDS
from tests.support.client import Client, request_frame

MOST_REQUESTS: Final = 20
MOST_BYTES: Final = 32_000
"""What is sent on a connection before its answers are read: it can be sent in one go."""

ANSWERED_WITHIN: Final = 60
"""Seconds: the largest requests take some, and the machine may be busy."""

OF_AN_ENTRY: Final = 600
"""The most bytes that an answer has for an entry of the request, beside what it repeats of it.

They are the fixed fields of its entry with an error code or a broker's address, at most 100, and an
error message: 200 of ours and a name, which is cut to 256. Or they are the broker's few settings.
"""

OF_LISTS: Final = 65_536
"""The most bytes that an answer has of what the broker lists: it has few topics and settings."""


@dataclass
class Tally:
    """What became of requests, and the sizes in bytes of the largest answer and of the last.

    ``created`` is the size of the requests that may have created ACLs, which others are told.
    """

    sent: int = 0
    refused: int = 0
    closed: int = 0
    largest: int = 0
    last: int = 0
    created: int = 0

    def longest_answer(self, request: Request) -> int:
        """Return how many bytes the answer to a request may have.

        It repeats each text of the request once.
        """
        own = 2 * len(request.frame) + OF_AN_ENTRY * request.entries
        return own + OF_LISTS + 2 * self.created


class Sender:
    """The connections of one user, each of which is begun with the same requests."""

    def __init__(
        self, address: str, begin: Sequence[Asked], connections: int, tally: Tally
    ) -> None:
        self._address = address
        self._begin = begin
        self._tally = tally
        self._clients = [self._connected() for _ in range(connections)]
        self._unanswered: list[deque[Request]] = [deque() for _ in range(connections)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self._clients:
            client.close()

    def send(self, batches: Iterator[Sequence[Request]]) -> None:
        """Send a batch on each connection, as long as there are any, and read no answer."""
        for client, unanswered in zip(self._clients, self._unanswered, strict=True):
            batch = next(batches, ())
            unanswered.extend(batch)
            client.send(b"".join(request.frame for request in batch))
            self._tally.sent += len(batch)
            creations = (each for each in batch if each.key == ApiKey.CREATE_ACLS)
            self._tally.created += sum(len(each.frame) for each in creations)

    def receive(self) -> None:
        """Read all answers, and check them."""
        for place, unanswered in enumerate(self._unanswered):
            while unanswered:
                self._receive(place, unanswered.popleft())

    def _receive(self, place: int, request: Request) -> None:
        client = self._clients[place]
        try:
            if request.is_closed:
                assert client.is_closed()
                self._tally.closed += 1
                client.close()
                self._clients[place] = self._connected()
            else:
                self._check(client.receive(), request)
        except (AssertionError, ConnectionClosed, TimeoutError, ProtocolError) as error:
            raise AssertionError(f"{error!r} at {request}") from error

    def _check(self, frame: bytes, request: Request) -> None:
        correlation_id, answer = decode_response(APIS[request.key], request.version, frame)
        assert correlation_id == request.correlation_id
        assert len(frame) <= self._tally.longest_answer(request), f"{len(frame)} bytes"
        self._tally.last = len(frame)
        self._tally.largest = max(self._tally.largest, len(frame))
        if request.is_refused:
            self._tally.refused += 1
            assert codes(answer) <= {ErrorCode.NONE, ErrorCode.INVALID_REQUEST}

    def _connected(self) -> Client:
        client = Client(self._address)
        client.socket.settimeout(ANSWERED_WITHIN)
        for asked in self._begin:
            client.send(request_frame(*asked))
            assert client.response(*asked[:2])[1].error_code == 0
        return client


def batches(requests: Iterable[Request]) -> Iterator[Sequence[Request]]:
    """Divide requests into what is sent at once; what closes its connection ends a batch."""
    batch: list[Request] = []
    size = 0
    for request in requests:
        size += len(request.frame)
        if batch and (len(batch) == MOST_REQUESTS or size > MOST_BYTES or batch[-1].is_closed):
            yield batch
            batch, size = [], len(request.frame)
        batch.append(request)
    if batch:
        yield batch


class Parties(NamedTuple):
    """Who sends unkind requests, and who wants to do some work meanwhile."""

    healthy: Healthy
    senders: tuple[Sender, ...]
    tally: Tally
    ids: list[bytes]

    def exchange(self, waiting: Iterator[Sequence[Request]]) -> None:
        """Send a batch on each connection, work, and read the answers."""
        for sender in self.senders:
            sender.send(waiting)
        self.healthy.works()
        for sender in self.senders:
            sender.receive()

    def forget(self) -> None:
        """Have the ACLs deleted that were created."""
        if self.tally.created:
            self.healthy.begin_anew()
            self.tally.created = 0


@contextmanager
def parties(listeners: Mapping[str, str]) -> Iterator[Parties]:
    """Log in an admin who works, and a super user, a user with some rights and one without any."""
    tally = Tally()
    plaintext, sasl = listeners["PLAINTEXT"], listeners["SASL_PLAINTEXT"]
    alice, bob = (login(f"\0{name}\0{PASSWORDS[name]}".encode()) for name in ("alice", "bob"))
    with Client(sasl) as client:
        assert client.login("admin", PASSWORDS["admin"]).error_code == 0
        healthy = Healthy(client)
        with (
            Sender(plaintext, [], 4, tally) as anonymous,
            Sender(sasl, alice, 4, tally) as some_rights,
            Sender(sasl, bob, 8, tally) as no_rights,
        ):
            senders = (anonymous, some_rights, no_rights)
            yield Parties(healthy, senders, tally, [healthy.topic_id()])
