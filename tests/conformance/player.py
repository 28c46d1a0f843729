"""Plays requests to a broker over raw sockets and returns its answers as plain data."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import socket
import struct
import time
import uuid
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from aiokafka.protocol.admin import (
    CreateAclsResponse_v0,
    DeleteAclsResponse_v0,
    DescribeAclsResponse_v0,
)
from kio.index import load_response_schema
from kio.serial import entity_reader

from tests.conformance.requests import (
    API_VERSIONS,
    DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Request,
    acl,
    create,
    describe,
)
from tests.support.accounts import PASSWORDS

Answer = Any
"""A response as nested dicts and lists, or `CLOSED`."""

CLOSED = "connection closed"
ANONYMOUS, STRANGER = "ANONYMOUS", "stranger"
"""Who connects by PLAINTEXT, and who does not log in on the SASL_PLAINTEXT listener."""
FENCE = "fence-"
OLDEST = {30: CreateAclsResponse_v0, 31: DeleteAclsResponse_v0, 29: DescribeAclsResponse_v0}
KIO_NAMES = {"creation_responses": "results", "filter_responses": "filter_results"}
ANSWERED_WITHIN = 20.0


class Connection:
    """One TCP connection on which each request waits for its answer."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWERED_WITHIN)
        self._correlation_id = 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, request: Request, version: int) -> Answer:
        """Return the answer to a request, or `CLOSED` if the broker hangs up instead."""
        self._correlation_id += 1
        frame = header(request.key, version, self._correlation_id) + request.body(version)
        answer = self.exchange(struct.pack(">i", len(frame)) + frame)
        if answer is None:
            return CLOSED
        if answer[:4] != struct.pack(">i", self._correlation_id):
            raise AssertionError(f"answer to another request: {answer!r}")
        return decoded(request.key, version, answer)

    def exchange(self, data: bytes) -> bytes | None:
        """Send bytes; return the frame that comes back, without its length."""
        try:
            self._socket.sendall(data)
            length = self._read(4)
            return self._read(struct.unpack(">i", length)[0])
        except ConnectionError:
            return None

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError
            data += part
        return data


class Player:
    """The connections to one broker, one for each user, opened when first needed."""

    def __init__(self, listeners: Mapping[str, str]) -> None:
        self._listeners = listeners
        self._connections: dict[str, Connection] = {}
        self._fences = 0

    def ask(self, user: str, request: Request, version: int) -> Answer:
        """Return the answer that a user gets; `ANONYMOUS` and `STRANGER` are users too."""
        if user not in self._connections:
            self._connections[user] = self._connected(user)
        answer = self._connections[user].ask(request, version)
        if answer == CLOSED:
            self.forget(user)
        return answer

    def forget(self, user: str) -> None:
        """Close a user's connection; the next request opens another."""
        if user in self._connections:
            self._connections.pop(user).close()

    def settle(self) -> None:
        """Wait until reads see all that was written.

        A Kafka broker learns of ACLs from the metadata log, after the answer to whoever created
        them, and in order. So one more ACL is created and waited for; twice, since the broker
        shows the first before the controller, too, decides by it.
        """
        for _ in range(2):
            self._fences += 1
            name = f"{FENCE}{self._fences}"
            self.ask(ANONYMOUS, create(acl(DELEGATION_TOKEN, name)), 2)
            deadline = time.monotonic() + ANSWERED_WITHIN
            while not self.ask(ANONYMOUS, describe(name=name), 2)["resources"]:
                if time.monotonic() > deadline:
                    raise TimeoutError("an ACL that was created is not described")

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connected(self, user: str) -> Connection:
        listener = "PLAINTEXT" if user == ANONYMOUS else "SASL_PLAINTEXT"
        connection = Connection(self._listeners[listener])
        if user in PASSWORDS:
            connection.ask(Request(SASL_HANDSHAKE, {"mechanism": "PLAIN"}), 1)
            token = f"\0{user}\0{PASSWORDS[user]}".encode()
            answer = connection.ask(Request(SASL_AUTHENTICATE, {"auth_bytes": token}), 2)
            if answer == CLOSED or answer["error_code"]:
                raise AssertionError(f"{user} cannot log in: {answer}")
        return connection


@contextlib.contextmanager
def playing(listeners: Mapping[str, str]) -> Iterator[Player]:
    """A player whose connections are closed at the end."""
    player = Player(listeners)
    try:
        yield player
    finally:
        player.close()


def header(key: int, version: int, correlation_id: int) -> bytes:
    """Return a request header; version 2 of it where the request is flexible."""
    head = struct.pack(">hhih", key, version, correlation_id, 4) + b"test"
    return head + (b"\0" if _flexible(key, version) else b"")


def _flexible(key: int, version: int) -> bool:
    return bool(version >= FLEXIBLE.get(key, 1 << 15))


FLEXIBLE = {3: 9, 18: 3, 29: 2, 30: 2, 31: 2, 36: 2, 60: 0}
"""The first flexible version of the API keys that are played."""


def decoded(key: int, version: int, answer: bytes) -> Answer:
    """Return a response frame as plain data."""
    if version == 0 and key in OLDEST:
        schema = OLDEST[key].SCHEMA
        return _named(schema, schema.decode(BytesIO(answer[4:])))
    if key == API_VERSIONS and version not in range(5):
        version = 0
    start = 5 if _flexible(key, version) and key != API_VERSIONS else 4
    item, size = entity_reader(load_response_schema(key, version))(answer, start)
    if start + size != len(answer):
        raise AssertionError(f"{len(answer) - start - size} bytes behind the answer: {answer!r}")
    return plain(item)


def _named(schema: Any, values: Any) -> Answer:
    """Return what aiokafka decoded as `plain` has it, with kio's names."""
    if isinstance(values, list):
        return [_named(schema.array_of, entry) for entry in values]
    if not isinstance(values, tuple):
        return values
    fields = zip(schema.names, schema.fields, values, strict=True)
    return {
        KIO_NAMES.get(name, name): _named(field, value)
        for name, field, value in fields
        if name != "throttle_time_ms"
    }


def plain(value: Any) -> Any:
    """Return a kio value as dicts, lists and scalars; durations are left out."""
    match value:
        case enum.Enum():
            return value.value
        case tuple():
            return [plain(entry) for entry in value]
        case uuid.UUID():
            return str(value)
        case _ if dataclasses.is_dataclass(value):
            items = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
            return {
                name: plain(item)
                for name, item in items
                if not isinstance(item, datetime.timedelta)
            }
        case _:
            return value
