"""The servers of a run: Kafka 4.3.0, proxies in C before it, and gateways, started when needed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from aclbroker.broker.stores.store import new_cluster_id
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from benchmarks.gateway.machine import tree
from benchmarks.gateway.programs import Load, running_proxy
from benchmarks.gateway.requests import (
    FETCHED_TOPIC,
    LARGE_TOPIC,
    RECORD_BYTES,
    TOPIC,
    list_offsets,
    produce,
)
from benchmarks.peers import AS_IN_PRODUCTION, aclbroker
from benchmarks.servers import KAFKA_HEAP
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.client import Client
from tests.support.kafka import Kafka, free_ports
from tests.support.process import wait_for
from tests.support.tls import pem_stores

DIRECT, PROXY, GATEWAY = "direct", "C proxy", "gateway"
MANY_ACLS, AUDITED = "gateway with 110,000 ACLs", "gateway with audit"
PERF_TOPIC, READ_TOPIC = "perf", "perf-read"
"""The topics that Kafka's own tools write and read; their groups have the same prefix."""

CLIENT: Final = "User:ANONYMOUS"
PRINCIPALS, MANY, FEW = 2_000, 110_000, 10
_LEADERS_WITHIN: Final = 30.0
_AT_ONCE: Final = 1_000
_TOPIC, _GROUP, _LITERAL, _PREFIXED, _READ, _WRITE, _ALLOW = 2, 3, 3, 4, 3, 4, 3

_KAFKA: Final = {
    "authorizer.class.name": "",
    # Large records would fill the disk: old segments are deleted soon.
    "log.retention.ms": "-1",
    "log.segment.bytes": str(64 << 20),
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
_KEPT: Final = (FETCHED_TOPIC, READ_TOPIC)
_RETENTION: Final = str(512 << 20)
_LISTENERS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "PROXIED": "PLAINTEXT",
    "SSL": "SSL",
    "PROXIED_SSL": "SSL",
}
_GATEWAY: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
    "super.users": "User:admin",
    "aclbroker.audit.level": "off",
}
_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    GATEWAY: {},
    MANY_ACLS: {},
    AUDITED: {"aclbroker.audit.level": "all", "aclbroker.audit.file": "audit.log"},
}


@dataclass(frozen=True)
class Side:
    """A way to the cluster: its addresses, and the processes whose CPU time it costs."""

    plain: str
    tls: str
    pids: Sequence[int] = ()


@dataclass
class Stage:
    """The running servers. `side` starts a gateway when it is used for the first time."""

    directory: Path
    kafka: Kafka
    stores: Mapping[str, str]
    running: ExitStack
    sides: dict[str, Side]
    gateways: dict[str, Broker] = field(default_factory=dict)
    records: int = 0
    """How many records the topic `READ_TOPIC` has."""

    def side(self, name: str) -> Side:
        """Return a side by its name."""
        if name not in self.sides:
            gateway = self.running.enter_context(self.gateway(name))
            self.gateways[name] = gateway
            self.sides[name] = side_of(gateway)
        return self.sides[name]

    @contextmanager
    def gateway(self, name: str) -> Iterator[Broker]:
        """Run a gateway with the settings and the ACLs of a side until the block ends."""
        directory = Path(tempfile.mkdtemp(prefix="gateway-", dir=self.directory))
        upstream = {"aclbroker.upstream.bootstrap.servers": self.kafka.listeners["PLAINTEXT"]}
        gateway = Broker(directory, {**_GATEWAY, **self.stores, **upstream, **_SETTINGS[name]})
        gateway.command[:1] = aclbroker()
        try:
            gateway.start()
            grant(gateway, MANY if name == MANY_ACLS else FEW)
            yield gateway
        finally:
            if gateway.is_alive:
                gateway.kill()


def side_of(gateway: Broker) -> Side:
    """Return the side of a running gateway, with its worker processes if it has any."""
    pids = tree(gateway.running.pid)
    return Side(gateway.listeners["PLAINTEXT"], gateway.listeners["SSL"], pids)


@contextmanager
def running_stage() -> Iterator[Stage]:
    """Run the Kafka with its topics, and two proxies before it, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="bench-gateway-") as name, ExitStack() as running:
        directory = Path(name)
        authority = Authority()
        stores = pem_stores(directory, authority.issue(), authority)
        kafka, sides = _started_kafka(directory, stores, running)
        _create_topics(kafka)
        yield Stage(directory, kafka, stores, running, sides)


def _started_kafka(
    directory: Path, stores: Mapping[str, str], running: ExitStack
) -> tuple[Kafka, dict[str, Side]]:
    """Start the Kafka and the proxies before it; return it with the sides without a gateway."""
    kafka = Kafka(
        directory,
        flags=(*AS_IN_PRODUCTION, *KAFKA_HEAP),
        overrides={**_KAFKA, **stores},
        protocols=_LISTENERS,
    )
    # Clients that come by a proxy must be sent back to the proxy, so Kafka advertises its port.
    ports = dict(zip(("PROXIED", "PROXIED_SSL"), free_ports(2), strict=True))
    proxied = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    advertised = {**kafka.listeners, **proxied}
    listed = ",".join(f"{name}://{address}" for name, address in advertised.items())
    kafka.format(new_cluster_id(), **{"advertised.listeners": listed})
    running.callback(_kill, kafka)
    kafka.start_again()
    plain, tls = (
        running.enter_context(running_proxy(kafka.listeners[name], port))
        for name, port in ports.items()
    )
    return kafka, {
        DIRECT: Side(kafka.listeners["PLAINTEXT"], kafka.listeners["SSL"]),
        PROXY: Side(plain.address, tls.address, (plain.pid, tls.pid)),
    }


def _create_topics(kafka: Kafka) -> None:
    """Create the topics, and write the records that are fetched."""
    bounded = [CreatableTopicConfig("retention.bytes", _RETENTION)]
    topics = [
        CreatableTopic(name, 1, 1, [], [] if name in _KEPT else bounded)
        for name in (TOPIC, LARGE_TOPIC, FETCHED_TOPIC, PERF_TOPIC, READ_TOPIC)
    ]
    with Client(kafka.listeners["PLAINTEXT"]) as admin:
        answer = admin.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics))
        if any(topic.error_code for topic in answer.topics):
            raise RuntimeError(f"a topic was not created: {answer}")
        for topic in topics:
            wait_for("a leader", partial(_has_leader, admin, topic.name), _LEADERS_WITHIN)
    filling = produce(FETCHED_TOPIC, RECORD_BYTES)
    _, payload = Load(filling.frame, requests=3).run(kafka.listeners["PLAINTEXT"])
    filling.check(payload)


def _has_leader(client: Client, topic: str) -> bool | None:
    request = list_offsets(topic)
    answer = client.ask(request.key, request.version, request.message)
    return None if any(request.codes(answer)) else True


def grant(gateway: Broker, count: int) -> None:
    """Create so many ACLs at a gateway: the client's own, and those of other principals."""
    own = [
        AclCreation(_TOPIC, name, _PREFIXED, CLIENT, "*", operation, _ALLOW)
        for name in (TOPIC, PERF_TOPIC)
        for operation in (_READ, _WRITE)
    ]
    own.append(AclCreation(_GROUP, PERF_TOPIC, _PREFIXED, CLIENT, "*", _READ, _ALLOW))
    others = (foreign_acl(number) for number in range(count - len(own)))
    acls = [*own, *others]
    with Client(gateway.listeners["SASL_PLAINTEXT"]) as admin:
        admin.login("admin", PASSWORDS["admin"])
        for begin in range(0, count, _AT_ONCE):
            if any(admin.create(*acls[begin : begin + _AT_ONCE])):
                raise RuntimeError("an ACL was not created")


def foreign_acl(number: int) -> AclCreation:
    """Return one of the ACLs of the other principals; each names a topic of its own."""
    principal = f"User:service-{number % PRINCIPALS}"
    return AclCreation(_TOPIC, f"owned-{number}", _LITERAL, principal, "*", _READ, _ALLOW)


def _kill(kafka: Kafka) -> None:
    if kafka.is_alive:
        kafka.kill()


@contextmanager
def changing(gateway: Broker) -> Iterator[None]:
    """Create and delete one of the client's ACLs in turn, once a second, until the block ends."""
    acl = AclCreation(_TOPIC, "changing", _LITERAL, CLIENT, "*", _READ, _ALLOW)
    filter_ = DeleteAclsFilter(_TOPIC, "changing", _LITERAL, CLIENT, "*", _READ, _ALLOW)
    ended = Event()

    def change() -> None:
        with Client(gateway.listeners["SASL_PLAINTEXT"]) as admin:
            admin.login("admin", PASSWORDS["admin"])
            exists = False
            while not ended.wait(1.0):
                if exists:
                    admin.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([filter_]))
                else:
                    admin.create(acl)
                exists = not exists

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(change)
        try:
            yield
        finally:
            ended.set()
            work.result()
