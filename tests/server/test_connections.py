"""The life of connections: their number, their idleness, clients that do not read, and the end."""

from __future__ import annotations

import itertools
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.broker.config import load
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.listening import ConnectionQuotas
from aclbroker.protocol.compile import encode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client, request_frame, topic_read
from tests.support.process import wait_for

DESCRIBE = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)


@pytest.mark.broker_process
def test_a_client_that_does_not_read_is_not_read_from_and_holds_no_memory(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    address = broker.listeners["PLAINTEXT"]
    # A request of 30 kB, answered by some 100 kB.
    large = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, client_id="c" * 30_000)
    with Client(address) as other, Client(address) as client:
        assert set(other.create(*(topic_read(f"topic-{n}") for n in range(2000)))) == {0}
        before = broker.resident_mib
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.settimeout(1)
        assert sent_until_it_blocks(client, large, 10_000) < 10_000
        assert broker.resident_mib - before < 50
        assert len(other.resource_names()) == 2000
        client.socket.settimeout(20)
        # Through so small a window each of the answers takes the kernel more than a second.
        for _ in range(3):
            _, response = client.response(ApiKey.DESCRIBE_ACLS, 3)
            assert len(response.resources) == 2000


def sent_until_it_blocks(client: Client, frame: bytes, most: int) -> int:
    """Send a frame again and again; returns how often until nobody took it in."""
    for sent in range(most):
        try:
            client.send(frame)
        except TimeoutError:
            return sent
    return most


def test_requests_sent_at_once_are_answered_though_their_client_sends_no_more(
    start_broker: StartBroker,
) -> None:
    with Client(start_broker().listeners["PLAINTEXT"]) as client:
        client.send(DESCRIBE * 2000)
        client.socket.shutdown(socket.SHUT_WR)
        for _ in range(2000):
            assert client.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0
        assert client.is_closed()


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(start_broker: StartBroker) -> None:
    broker = start_broker({"connections.max.idle.ms": "400"})
    with (
        Client(broker.listeners["PLAINTEXT"]) as idle,
        Client(broker.listeners["PLAINTEXT"]) as busy,
    ):
        ended = threading.Event()

        def stay_busy() -> None:
            while not ended.is_set():
                busy.resource_names()

        worker = threading.Thread(target=stay_busy)
        worker.start()
        try:
            assert idle.is_closed()
        finally:
            ended.set()
            worker.join()
        assert busy.resource_names() == []


def test_connections_above_max_connections_wait_until_another_ends(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"max.connections": "2"})
    address = broker.listeners["PLAINTEXT"]
    with Client(address) as first, Client(address) as second, Client(address) as third:
        for client in (first, second):
            assert client.resource_names() == []
        third.send(DESCRIBE)
        third.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            third.receive()
        third.socket.settimeout(20)
        first.close()
        assert third.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0


def test_a_connection_that_waits_for_a_place_is_closed_when_the_broker_stops(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"max.connections": "1"})
    address = broker.listeners["PLAINTEXT"]
    with Client(address) as first, Client(address) as waiting:
        assert first.resource_names() == []
        waiting.send(DESCRIBE)
        broker.terminate()
        assert waiting.is_closed()


def test_connections_above_max_connections_per_ip_are_closed(start_broker: StartBroker) -> None:
    broker = start_broker({"max.connections.per.ip": "1"})
    address = broker.listeners["PLAINTEXT"]
    with Client(address) as first:
        assert first.resource_names() == []
        with Client(address) as second:
            assert second.is_closed()
        assert first.resource_names() == []

    def answered() -> bool | None:
        with Client(address) as again:
            try:
                again.send(DESCRIBE)
                return again.receive() != b""
            except ConnectionError:
                return None

    assert wait_for("the place to be free again", answered, 10)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_d4_an_acl_for_an_ipv6_host_matches_however_it_is_written(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"listeners": "PLAINTEXT://[::1]:0"})
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(cluster_describe("User:ANONYMOUS", "0:0:0:0:0:0:0:1")) == [0]
    broker.properties["super.users"] = ""
    broker.restart()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        [resource] = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).resources
        assert [acl.host for acl in resource.acls] == ["0:0:0:0:0:0:0:1"]


def cluster_describe(principal: str, host: str) -> AclCreation:
    """Return the creation that allows a principal to describe the cluster."""
    return AclCreation(4, "kafka-cluster", 3, principal, host, 8, 3)


def test_sigterm_answers_what_has_begun_and_ends_with_status_0(start_broker: StartBroker) -> None:
    broker = start_broker()
    batches = 20
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for batch in range(batches):
            creations = [topic_read(f"batch-{batch}-{number}") for number in range(500)]
            client.send(request_frame(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations)))
        client.response(ApiKey.CREATE_ACLS, 3)
        assert broker.terminate() == 0
        answered = 1 + successes_until_closed(client)
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        names = set(client.resource_names())
    for batch in range(answered):
        assert {f"batch-{batch}-{number}" for number in range(500)} <= names


def successes_until_closed(client: Client) -> int:
    """Read answers to CreateAcls, all successes, until the connection ends; returns how many."""
    for count in itertools.count():
        try:
            _, response = client.response(ApiKey.CREATE_ACLS, 3)
        except ConnectionClosed:
            return count
        assert {result.error_code for result in response.results} == {0}
    raise AssertionError


@pytest.mark.broker_process
def test_sigint_ends_it_too_and_idle_connections_do_not_hold_it_up(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.resource_names() == []
        broker.running.send_signal(2)
        assert broker.running.wait(10) == 0
        assert client.is_closed()
    assert [event["event"] for event in broker.events()][-2:] == ["stopping", "stopped"]


@pytest.mark.broker_process
def test_announced_bytes_take_no_memory_before_they_arrive(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    before = broker.resident_mib
    clients = [Client(broker.listeners["PLAINTEXT"]) for _ in range(50)]
    body = encode(CreateAclsRequest([topic_read("x")]), 1)
    for client in clients:
        # 100 MiB announced, a few bytes sent: nothing is set aside for the rest.
        client.send((104_857_600).to_bytes(4, "big") + body)
    with Client(broker.listeners["PLAINTEXT"]) as other:
        assert other.resource_names() == []
    assert broker.resident_mib - before < 20
    for client in clients:
        client.close()


def test_without_a_file_it_serves_loopback_only(tmp_path: Path) -> None:
    command = [str(Path(Broker(tmp_path).command[0])), "serve"]
    overrides = ["--override", "listeners=PLAINTEXT://0.0.0.0:0"]
    refused = subprocess.run(
        [*command, *overrides], cwd=tmp_path, capture_output=True, text=True, timeout=20
    )
    assert refused.returncode == 1
    assert "loopback" in refused.stderr


async def test_an_address_has_one_limit_however_many_interfaces_it_comes_by() -> None:
    connections = ConnectionQuotas(9, 1, {}, 9, Metrics())
    listener = load().listeners[0]
    assert await connections.admit(listener, "fe80::1%eth0")
    assert not await connections.admit(listener, "fe80::1%eth1")
    connections.leave(listener, "fe80::1%eth0")
    assert await connections.admit(listener, "fe80::1%eth1")
