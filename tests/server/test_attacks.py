"""Many who do not authenticate, or fail to: nobody else notices, and nothing stays behind."""

from __future__ import annotations

import re
import select
import socket
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest

from aclbroker.broker.config.values import SECURITY_PROTOCOLS
from aclbroker.broker.observability.limited_log import PEER_BURST
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS, SASL_PLAIN
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.client import (
    ALL_ACLS,
    TIMEOUT_SECONDS,
    Client,
    request_frame,
    topic_read,
)
from tests.support.process import wait_for
from tests.support.tls import LISTENERS as TLS_LISTENERS
from tests.support.tls import pem_stores

METRICS = {"aclbroker.metrics.address": "127.0.0.1:0"}
WRONG_LOGIN = request_frame(
    ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")
) + request_frame(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(b"\0admin\0not-hers"))
AT_ONCE = 250
ACLS = 50_000


def metrics(broker: Broker) -> str:
    """Return what a Prometheus would read."""
    [address] = [event["address"] for event in broker.events() if event["event"] == "metrics"]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        return str(answer.read(), "utf-8")


def figure(broker: Broker, name: str, **labels: str) -> float:
    """Return a figure, 0 if it is not there yet."""
    for line in metrics(broker).splitlines():
        if line.startswith(name) and all(
            f'{key}="{value}"' in line for key, value in labels.items()
        ):
            return float(line.rpartition(" ")[2])
    return 0.0


def works(broker: Broker) -> None:
    """Check that somebody who knows a password gets in, and gets an answer."""
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("admin", PASSWORDS["admin"]).error_code == 0
        assert client.resource_names() == []


def next_answered(clients: Sequence[Client]) -> Client:
    """Return a client, of those that have read nothing yet, to which the broker has sent."""
    answered, _, _ = select.select([client.socket for client in clients], [], [], TIMEOUT_SECONDS)
    return next(client for client in clients if client.socket in answered)


def wrong_logins(address: str, count: int) -> None:
    with ExitStack() as opened:
        clients: Sequence[Client] = [opened.enter_context(Client(address)) for _ in range(count)]
        for client in clients:
            client.send(WRONG_LOGIN)
        for client in clients:
            assert client.response(ApiKey.SASL_HANDSHAKE, 1)[1].error_code == 0
            assert client.response(ApiKey.SASL_AUTHENTICATE, 2)[1].error_code == 58
            assert client.is_closed()


@pytest.mark.thorough
@pytest.mark.broker_process
def test_ten_thousand_failed_logins_leave_figures_and_a_few_lines(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(METRICS)
    address = broker.listeners["SASL_PLAINTEXT"]
    wrong_logins(address, AT_ONCE)
    works(broker)
    before = broker.resident_mib
    for _ in range(10_000 // AT_ONCE):
        wrong_logins(address, AT_ONCE)
        works(broker)
    assert broker.resident_mib < 1.2 * before
    labels = {"listener": "SASL_PLAINTEXT", "mechanism": "PLAIN"}
    name = "aclbroker_authentications_total"
    assert figure(broker, name, outcome="failed", **labels) == 10_000 + AT_ONCE
    assert figure(broker, name, outcome="succeeded", **labels) == 10_000 // AT_ONCE + 1
    failures = [event for event in broker.events() if event["event"] == "authentication failed"]
    told = len(failures) + sum(event.get("not_logged_before", 0) for event in failures)
    assert PEER_BURST <= len(failures) < 2_000
    assert 5_000 < told <= 10_000 + AT_ONCE
    assert failures[0]["mechanism"] == "PLAIN"
    assert "not-hers" not in broker.log_text()


@pytest.mark.thorough
@pytest.mark.broker_process
def test_two_thousand_half_open_connections_keep_nobody_out(start_broker: StartBroker) -> None:
    broker = start_broker(METRICS)
    address = broker.listeners["SASL_PLAINTEXT"]
    name, labels = "aclbroker_connections", {"listener": "SASL_PLAINTEXT"}
    works(broker)
    before = broker.resident_mib
    handshake = request_frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    with ExitStack() as opened:
        strangers = [opened.enter_context(Client(address)) for _ in range(2_000)]
        for number, stranger in enumerate(strangers[1_000:]):
            stranger.send(handshake[: number % len(handshake)])
        works(broker)
        assert figure(broker, name, **labels) <= 1_000
        assert strangers[0].is_closed()
    wait_for("the end of all", lambda: figure(broker, name, **labels) == 0 or None, 20)
    works(broker)
    assert broker.resident_mib < 1.2 * before
    reasons = [event.get("reason", "") for event in broker.events()]
    assert any("made room" in reason for reason in reasons)


def test_known_clients_stay_when_strangers_are_too_many(start_broker: StartBroker) -> None:
    broker = start_broker({"aclbroker.max.unauthenticated.connections": "3"})
    address = broker.listeners["SASL_PLAINTEXT"]
    with ExitStack() as opened:
        known = opened.enter_context(Client(address))
        assert known.login("admin", PASSWORDS["admin"]).error_code == 0
        strangers = [opened.enter_context(Client(address)) for _ in range(10)]
        assert all(stranger.is_closed() for stranger in strangers[:7])
        assert known.resource_names() == []
        assert strangers[-1].login("admin", PASSWORDS["admin"]).error_code == 0


def test_figures_are_served_where_that_is_asked_for(start_broker: StartBroker) -> None:
    broker = start_broker(METRICS)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.resource_names() == []
        assert figure(broker, "aclbroker_connections", listener="PLAINTEXT") == 1
    assert re.search(r"^process_resident_memory_bytes \d", metrics(broker), re.MULTILINE)
    assert broker.terminate() == 0


@pytest.mark.broker_process
def test_random_bytes_on_each_listener_disturb_nobody(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    authority = Authority()
    broker = start_broker(
        METRICS
        | TLS_LISTENERS
        | pem_stores(tmp_path, authority.issue(), authority)
        | SASL_PLAIN
        | {"listeners": ",".join(f"{name}://127.0.0.1:0" for name in SECURITY_PROTOCOLS)}
    )
    chance = Random(4)

    def garbage(address: str) -> None:
        with ExitStack() as opened:
            clients = [opened.enter_context(Client(address)) for _ in range(100)]
            for client in clients:
                client.send(chance.randbytes(chance.randrange(1, 4_000)))
                with suppress(OSError):
                    client.socket.shutdown(socket.SHUT_WR)
            for client in clients:
                with suppress(ConnectionError):
                    while client.socket.recv(65_536):
                        pass

    for address in broker.listeners.values():
        garbage(address)
    works(broker)
    before = broker.resident_mib
    for _ in range(5):
        for address in broker.listeners.values():
            garbage(address)
            works(broker)
    assert broker.resident_mib < 1.2 * before
    assert broker.terminate() == 0
    events = [event["event"] for event in broker.events()]
    assert not [event for event in events if event.startswith("request failed")]


def test_malformed_requests_leave_a_few_lines_and_their_number(start_broker: StartBroker) -> None:
    broker = start_broker()
    for _ in range(AT_ONCE):
        with Client(broker.listeners["PLAINTEXT"]) as client:
            client.send(b"\0\0\0\4\x7f\xff\x7f\xff")
            assert client.is_closed()
    assert broker.terminate() == 0
    lines, count = broker.told("malformed request")
    assert PEER_BURST <= lines < AT_ONCE / 2
    assert count == AT_ONCE


def test_refused_connections_leave_a_few_lines_and_their_number(start_broker: StartBroker) -> None:
    broker = start_broker({"max.connections.per.ip": "1"})
    address = broker.listeners["PLAINTEXT"]
    with Client(address) as first:
        assert first.resource_names() == []
        for _ in range(AT_ONCE):
            with Client(address) as client:
                assert client.is_closed()
    assert broker.terminate() == 0
    lines, count = broker.told("connection refused: too many of this address")
    assert PEER_BURST <= lines < AT_ONCE / 2
    assert count == AT_ONCE


@pytest.mark.thorough
@pytest.mark.broker_process
def test_who_asks_for_all_acls_on_many_connections_and_reads_nothing_takes_no_more_memory(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"aclbroker.max.request.bytes.per.principal": "1000000"})
    acls = [topic_read(f"{number:0300}") for number in range(ACLS)]
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        for first in range(0, ACLS, 1_000):
            admin.create(*acls[first : first + 1_000])
        assert len(admin.resource_names()) == ACLS
    process = Path(f"/proc/{broker.running.pid}")
    (process / "clear_refs").write_text("5")
    before = broker.resident_mib
    with ExitStack() as opened:
        clients = [opened.enter_context(Client(broker.listeners["PLAINTEXT"])) for _ in range(20)]
        for client in clients:
            client.send(request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS))
        used: list[str] = []

        def is_quiet() -> bool | None:
            """Whether the broker has used no CPU since it was last looked at, a while ago."""
            time.sleep(0.3)
            used.append(" ".join((process / "stat").read_text().split()[13:15]))
            return used[-2:-1] == used[-1:] or None

        wait_for("the end of its work", is_quiet, 30)
        with Client(broker.listeners["SASL_PLAINTEXT"]) as other:
            assert other.login("admin", PASSWORDS["admin"]).error_code == 0
            assert len(other.resource_names()) == ACLS
        [peak] = re.findall(r"^VmHWM:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
        # An answer has 16 MB, more than the system keeps for who does not read. One is held and one
        # is made; of both there are the parts, too, which are kept for the next ones.
        assert int(peak) / 1024 - before < 150
        # Who reads makes room for the next; nobody says that the broker heard the first one first.
        for _ in range(2):
            answered = next_answered(clients)
            clients.remove(answered)
            assert len(answered.response(ApiKey.DESCRIBE_ACLS, 3)[1].resources) == ACLS
