"""Starts the two clusters, and sends both the same requests on connections of the same users."""

from __future__ import annotations

import json
import os
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch
from urllib.parse import urlencode

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.broker.memory import topics
from aclbroker.protocol.messages import APIS
from tests.gateway.twins.answers import Difference, Renames, differences
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client
from tests.support.gateway import IN_MEMORY, gateway_of_nodes
from tests.support.process import wait_for

_WITHIN_S: Final = 20

SUPER: Final = "admin"
"""A super user of both sides."""

USERS: Final = ("alice", "bob", "carol")
"""The users whose rights are in ACLs."""

PASSWORDS: Final = {user: f"{user}-secret" for user in (SUPER, *USERS)}
NODES: Final = range(1, 4)

_JAAS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    + " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    + ";"
)
_LOGINS: Final = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS}
_CLUSTER: Final = {
    "aclbroker.cluster": "memory",
    "aclbroker.nodes": str(len(NODES)),
    "aclbroker.catalog.topics": "t1:3,t2:1,fixed-1:2,fixed-2:1",
    "auto.create.topics.enable": "true",
    "aclbroker.faults.address": "127.0.0.1:0",
    # A member must not be lost because the machine is slow.
    "group.consumer.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.share.record.lock.duration.ms": "600000",
    **_LOGINS,
}

_ALL_ALLOWED: Final = {"authorizer.class.name": ""}


class Closed:
    """Stands for an answer if the connection was closed in place of one."""

    def __repr__(self) -> str:
        return "the connection was closed"


CLOSED: Final = Closed()


class Place(NamedTuple):
    """The connections of a user to a node, which may have several of them.

    They go to the cluster behind the gateway if they are ``direct``.
    """

    user: str
    node: int
    number: int = 0
    direct: bool = False


class Step(NamedTuple):
    """A request whose answers differ."""

    number: int
    place: Place
    request: str
    found: list[Difference]

    def __str__(self) -> str:
        lines = [f"step {self.number}, {self.place}: {self.request}"[:1500]]
        for path, alone, behind in self.found[:8]:
            lines.append(f"  {path}\n    with ACLs  {alone!r:.600}\n    a gateway  {behind!r:.600}")
        return "\n".join(lines)


Ask = Callable[[int, int, Any], Any]
"""Sends a request of a key and version to one side; returns its answer."""

Here = Callable[[bytes], bytes]
"""Returns the topic id of the cluster that has ACLs for an id of one side."""

Conversation = Callable[[Ask, Here], Any]
"""Asks one side; returns a result that both sides must have."""

IsDone = Callable[[Any], bool]


class Twins:
    """A cluster with ACLs, and a gateway with the same ACLs before a cluster without them.

    ``sent`` counts the requests by their keys and versions.
    """

    def __init__(self, alone: Broker, upstream: Broker, gateway: Broker) -> None:
        self._brokers = (alone, upstream, gateway)
        self._fault_urls = [
            event["faults"]
            for broker in (alone, upstream)
            for event in broker.events()
            if "faults" in event
        ]
        self._clients: dict[Place, tuple[Client, Client]] = {}
        self.renames = Renames()
        self.sent: Counter[tuple[int, int]] = Counter()
        self.differing: list[Step] = []
        self.number = 0

    def ask(self, place: Place, key: int, version: int, message: Any) -> Any:
        """Send a request to both sides; return the answer of the cluster that has ACLs."""
        self.send(place, key, version, message)
        return self.answer(place, key, version, message)

    def send(self, place: Place, key: int, version: int, message: Any) -> None:
        """Send a request to both sides, whose answers may come later."""
        self.number += 1
        self.sent[key, version] += not place.direct
        alone, behind = self._connected(place)
        for client, sent in ((alone, message), (behind, self.renames.translated(message))):
            try:
                client.request(key, version, sent)
            except ConnectionClosed:
                continue  # Its answer says so.

    def answer(self, place: Place, key: int, version: int, message: Any) -> Any:
        """Return the next answer of the cluster that has ACLs, and compare both sides."""
        alone, behind = (_answer(client, key, version) for client in self._connected(place))
        if CLOSED in (alone, behind):
            for client in self._clients.pop(place):
                client.close()
        self._compare(place, key, version, message, alone, behind)
        return alone

    def until(self, place: Place, key: int, version: int, message: Any, is_done: IsDone) -> Any:
        """Ask each side until its answer is the awaited one; return that of the first side."""

        def awaited(client: Client, asked: Any) -> Any:
            def ask() -> Any:
                answer = client.ask(key, version, asked)
                return answer if is_done(answer) else None

            return wait_for("an answer", ask, _WITHIN_S)

        one, other = self._connected(place)
        alone, behind = awaited(one, message), awaited(other, self.renames.translated(message))
        self._compare(place, key, version, message, alone, behind)
        return alone

    def on_each(self, place: Place, conversation: Conversation) -> None:
        """Hold a conversation with each side, whose results must be equal."""
        one, other = self._connected(place)
        alone, behind = conversation(one.ask, bytes), conversation(other.ask, self._topic_here)
        if alone != behind:
            found = [Difference("result", alone, behind)]
            self.differing.append(Step(self.number, place, repr(conversation), found))

    def _topic_here(self, topic_id: bytes) -> bytes:
        return bytes(self.renames.here("topic", topic_id))

    def fail(self, key: int, **fault: Any) -> None:
        """Let the next request of a key fail in both clusters."""
        query = urlencode({"request": APIS[key].name, **fault})
        for url in self._fault_urls:
            _http("POST", f"{url}?{query}")

    def forget_faults(self) -> list[Any]:
        """Let no request fail any more; return the faults that each cluster still had to come."""
        coming = [_http("GET", url)["faults"] for url in self._fault_urls]
        for url in self._fault_urls:
            _http("DELETE", url)
        return coming

    def close(self) -> None:
        """Close all connections."""
        for clients in self._clients.values():
            for client in clients:
                client.close()

    def _compare(
        self, place: Place, key: int, version: int, message: Any, alone: Any, behind: Any
    ) -> None:
        found = differences(key, message, alone, behind, self.renames)
        if found:
            request = f"{APIS[key].name} v{version} {message!r}"
            self.differing.append(Step(self.number, place, request, found))

    def _connected(self, place: Place) -> tuple[Client, Client]:
        if place not in self._clients:
            alone, upstream, gateway = self._brokers
            behind = upstream if place.direct else gateway
            self._clients[place] = (_opened(alone, place), _opened(behind, place))
        return self._clients[place]


def _http(method: str, url: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20) as answer:
        return json.load(answer)


def _opened(broker: Broker, place: Place) -> Client:
    name = "PLAINTEXT" if place.direct else "SASL_PLAINTEXT"
    client = Client(broker.listeners[name].split(",")[place.node - NODES[0]])
    if not place.direct:
        assert client.login(place.user, PASSWORDS[place.user]).error_code == 0
    return client


def _answer(client: Client, key: int, version: int) -> Any:
    try:
        return client.response(key, version)[1]
    except ConnectionClosed:
        return CLOSED


class _TopicIds:
    """Makes the ids of topics, which differ by side and have the order of their creation.

    Assignors take topics in the order of their ids, so random ids would have them differ.
    """

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> bytes:
        return next(self._numbers).to_bytes(8) + os.urandom(8)


@contextmanager
def twins(directory: Path, *, auto_creates: bool = True) -> Iterator[Twins]:
    """Run both sides; the gateway or the cluster with ACLs says whether Metadata creates topics."""
    creation = {"auto.create.topics.enable": str(auto_creates).lower()}
    folders = [directory / name for name in ("alone", "upstream", "gateway")]
    for folder in folders:
        folder.mkdir(parents=True)
    with patch.object(topics, "new_topic_id", _TopicIds()), ExitStack() as running:
        alone = ThreadBroker(folders[0], {**_CLUSTER, **IN_MEMORY, **creation})
        upstream = ThreadBroker(folders[1], {**_CLUSTER, **IN_MEMORY, **_ALL_ALLOWED})
        for broker in (alone, upstream):
            broker.start()
            running.callback(broker.terminate)
        address = upstream.listeners["PLAINTEXT"]
        gateway = gateway_of_nodes(address, folders[2], NODES, **_LOGINS, **creation)
        running.callback(gateway.terminate)
        both = Twins(alone, upstream, gateway)
        running.callback(both.close)
        yield both
