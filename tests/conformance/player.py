"""Plays requests, written by other codecs, to a broker and returns its answers as plain data."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import struct
import time
import uuid
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import count
from typing import Any

from aiokafka.protocol.admin import (
    CreateAclsResponse_v0,
    DeleteAclsResponse_v0,
    DescribeAclsResponse_v0,
)
from kio.index import load_response_schema
from kio.serial import entity_reader

from aclbroker.broker.client.blocking import ConnectionClosed
from tests.conformance.requests import (
    API_VERSIONS,
    DELEGATION_TOKEN,
    Request,
    acl,
    create,
    describe,
)
from tests.support.accounts import PASSWORDS
from tests.support.client import Client

Answer = Any
"""A response as nested dicts and lists, or `CLOSED`."""

CLOSED = "connection closed"
ANONYMOUS, STRANGER = "ANONYMOUS", "stranger"
"""Who connects by PLAINTEXT, and who does not log in on the SASL_PLAINTEXT listener."""
FENCE = "fence-"
OLDEST = {30: CreateAclsResponse_v0, 31: DeleteAclsResponse_v0, 29: DescribeAclsResponse_v0}
KIO_NAMES = {"creation_responses": "results", "filter_responses": "filter_results"}
ANSWERED_WITHIN = 20.0


def ask(client: Client, correlation_id: int, request: Request, version: int) -> Answer:
    """Return the answer to a request, or `CLOSED` if the broker hangs up instead."""
    frame = header(request.key, version, correlation_id) + request.body(version)
    try:
        client.send(struct.pack(">i", len(frame)) + frame)
        answer = client.receive()
    except ConnectionClosed:
        return CLOSED
    if answer[:4] != struct.pack(">i", correlation_id):
        raise AssertionError(f"answer to another request: {answer!r}")
    return decoded(request.key, version, answer)


class Player:
    """The connections to one broker, one for each user, opened when first needed."""

    def __init__(self, listeners: Mapping[str, str]) -> None:
        self._listeners = listeners
        self._clients: dict[str, Client] = {}
        self._correlation_ids = count(1)
        self._fences = 0

    def ask(self, user: str, request: Request, version: int) -> Answer:
        """Return the answer that a user gets; `ANONYMOUS` and `STRANGER` are users too."""
        if user not in self._clients:
            self._clients[user] = self._connected(user)
        answer = ask(self._clients[user], next(self._correlation_ids), request, version)
        if answer == CLOSED:
            self.forget(user)
        return answer

    def forget(self, user: str) -> None:
        """Close a user's connection; the next request opens another."""
        if user in self._clients:
            self._clients.pop(user).close()

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
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _connected(self, user: str) -> Client:
        listener = "PLAINTEXT" if user == ANONYMOUS else "SASL_PLAINTEXT"
        client = Client(self._listeners[listener])
        if user in PASSWORDS:
            answer = client.login(user, PASSWORDS[user])
            assert answer.error_code == 0, f"{user} cannot log in: {answer}"
        return client


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
