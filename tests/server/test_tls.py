"""TLS listeners as clients see them: who gets in, what the others are told, and at whose cost."""

from __future__ import annotations

import random
import socket
import ssl
from pathlib import Path

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from tests.conftest import StartBroker
from tests.server.test_connections import sent_until_it_blocks
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.certificates import Authority, Identity, self_signed
from tests.support.client import ALL_ACLS, Client, request_frame, topic_read
from tests.support.process import wait_for
from tests.support.tls import LISTENERS, client_tls, pem_stores

DESCRIBE = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Identity:
    return authority.issue()


@pytest.fixture(scope="module")
def trusting(authority: Authority) -> ssl.SSLContext:
    """A client that trusts the broker, and shows no certificate."""
    return client_tls(authority)


def _start(
    start_broker: StartBroker,
    directory: Path,
    identity: Identity,
    authority: Authority,
    overrides: dict[str, str] | None = None,
) -> Broker:
    stores = pem_stores(directory, identity, authority)
    return start_broker({**LISTENERS, **stores, **(overrides or {})})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, identity: Identity, authority: Authority):
    """A broker that asks for no certificates on SSL, and requires them on SASL_SSL."""
    directory = tmp_path_factory.mktemp("broker")
    stores = pem_stores(directory, identity, authority)
    mutual = {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    broker = ThreadBroker(directory, {**LISTENERS, **stores, **mutual})
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture(scope="module")
def required(tmp_path_factory: pytest.TempPathFactory, identity: Identity, authority: Authority):
    """A broker that requires certificates on SSL."""
    directory = tmp_path_factory.mktemp("required")
    stores = pem_stores(directory, identity, authority)
    broker = ThreadBroker(directory, {**LISTENERS, **stores, "ssl.client.auth": "required"})
    broker.start()
    yield broker
    broker.terminate()


def failures(broker: Broker) -> list[str]:
    """The reasons of failed handshakes in the log."""
    return [event["reason"] for event in broker.events() if event.get("mechanism") == "TLS"]


def told(broker: Broker, before: int, count: int = 1) -> list[str]:
    """The reasons of `count` handshakes that failed after the first `before`."""
    return wait_for(
        "the failure in the log",
        lambda: failures(broker)[before:] if len(failures(broker)) >= before + count else None,
        10,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_on_an_ssl_listener_without_client_certificates_is_anonymous(
    broker: Broker, authority: Authority, version: ssl.TLSVersion
) -> None:
    tls = client_tls(authority)
    tls.minimum_version = tls.maximum_version = version
    with Client(broker.listeners["SSL"], tls=tls) as client:
        # User:ANONYMOUS is a super user of these brokers.
        assert client.resource_names() == []


def test_the_names_and_the_chain_of_the_brokers_certificate_are_good(
    start_broker: StartBroker, tmp_path: Path, authority: Authority
) -> None:
    below = Authority("Between", authority).issue()
    broker = _start(start_broker, tmp_path, below, authority)
    with Client(broker.listeners["SSL"], tls=client_tls(authority)) as client:
        assert client.resource_names() == []


def test_sasl_goes_through_tls(broker: Broker, authority: Authority) -> None:
    shown = client_tls(authority, authority.issue("CN=alice"))
    with Client(broker.listeners["SASL_SSL"], tls=shown) as client:
        assert client.login("admin", PASSWORDS["admin"]).error_code == 0
        assert client.resource_names() == []
    with Client(broker.listeners["SASL_SSL"], tls=shown) as client:
        assert client.login("admin", "guessed").error_code == 58
        assert client.is_closed()


def _connects(broker: Broker, listener: str, tls: ssl.SSLContext) -> bool:
    with Client(broker.listeners[listener], tls=tls) as client:
        return bool(client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0)


def test_a_certificate_that_is_required_and_good_lets_its_client_in(
    required: Broker, authority: Authority
) -> None:
    assert _connects(required, "SSL", client_tls(authority, authority.issue("CN=alice")))


def test_the_setting_of_all_listeners_is_none_of_a_sasl_ssl_listeners_business(
    required: Broker, broker: Broker, trusting: ssl.SSLContext
) -> None:
    assert _connects(required, "SASL_SSL", trusting)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        _connects(broker, "SASL_SSL", trusting)
    assert "no effect on the SASL_SSL listener SASL_SSL, as in Kafka" in required.log_text()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("shown", "alert", "reason"),
    [
        ("none", "CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE", "peer did not return a certificate"),
        ("unknown", "UNKNOWN_CA", "not accepted: self-signed certificate"),
        ("other", "UNKNOWN_CA", "not accepted: unable to get local issuer certificate"),
        ("expired", "CERTIFICATE_EXPIRED", "not accepted: certificate has expired"),
    ],
)
def test_who_shows_no_good_certificate_is_told_by_an_alert_and_the_log_has_one_line(
    required: Broker,
    authority: Authority,
    version: ssl.TLSVersion,
    shown: str,
    alert: str,
    reason: str,
) -> None:
    identities = {
        "none": None,
        "unknown": self_signed("CN=alice"),
        "other": Authority("Other").issue("CN=alice"),
        "expired": authority.issue("CN=alice", days=-1),
    }
    tls = client_tls(authority, identities[shown])
    tls.minimum_version = tls.maximum_version = version
    before = len(failures(required))
    with pytest.raises(ssl.SSLError, match=alert):
        _connects(required, "SSL", tls)
    [logged] = told(required, before)
    assert reason in logged


def test_a_client_that_does_not_trust_the_broker_shows_in_the_log(broker: Broker) -> None:
    before = len(failures(broker))
    with pytest.raises(ssl.SSLCertVerificationError):
        _connects(broker, "SSL", client_tls(Authority("Other")))
    [logged] = told(broker, before)
    assert "unknown ca" in logged


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(DESCRIBE, id="a request"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(bytes(range(256)) * 40, id="anything"),
    ],
)
def test_bytes_without_tls_end_the_connection_with_one_log_line(
    broker: Broker, sent: bytes
) -> None:
    before = len(failures(broker))
    with Client(broker.listeners["SSL"]) as client:
        client.send(sent)
        assert client.is_closed()
    assert told(broker, before) == ["the client does not speak TLS"]
    assert "Traceback" not in broker.log_text()


def test_tls_on_a_listener_without_it_ends_with_one_log_line(
    broker: Broker, trusting: ssl.SSLContext
) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _connects(broker, "PLAINTEXT", trusting)
    [event] = wait_for(
        "the log line",
        lambda: [e for e in broker.events() if e["event"] == "malformed request"] or None,
        10,
    )
    assert event["reason"].endswith("it looks like TLS")


def test_clients_that_begin_no_handshake_hold_nobody_back_and_are_dropped(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    overrides = {"aclbroker.sasl.timeout.ms": "2000"}
    broker = _start(start_broker, tmp_path, identity, authority, overrides)
    silent = [Client(broker.listeners["SSL"]) for _ in range(20)]
    for client in silent[10:]:
        client.send(b"\x16\x03\x01")
    assert _connects(broker, "SSL", trusting)
    for client in silent:
        assert client.is_closed()
        client.close()
    assert told(broker, 0, 20) == ["no handshake within 2 seconds"] * 20


def test_the_time_to_authenticate_counts_from_the_accept_on(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    overrides = {"aclbroker.sasl.timeout.ms": "1000"}
    broker = _start(start_broker, tmp_path, identity, authority, overrides)
    with Client(broker.listeners["SASL_SSL"], tls=trusting) as client:
        assert client.is_closed()
    assert failures(broker) == []
    assert "not within 1 seconds" in broker.log_text()


def test_the_place_of_a_failed_handshake_is_given_to_others(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    overrides = {"max.connections": "2"}
    broker = _start(start_broker, tmp_path, identity, authority, overrides)
    for number in range(10):
        with Client(broker.listeners["SSL"]) as client:
            if number % 2:
                client.send(DESCRIBE)
                assert client.is_closed()
    with Client(broker.listeners["SSL"], tls=trusting) as first:
        assert first.resource_names() == []
        with Client(broker.listeners["SSL"], tls=trusting) as second:
            assert second.resource_names() == []


def test_sigterm_ends_handshakes_and_answers_what_has_begun(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    broker = _start(start_broker, tmp_path, identity, authority)
    with (
        Client(broker.listeners["SSL"]) as silent,
        Client(broker.listeners["SSL"], tls=trusting) as client,
    ):
        assert client.create(topic_read("orders")) == [0]
        assert broker.terminate() == 0
        assert silent.is_closed()
        assert client.is_closed()


def test_requests_sent_at_once_are_answered_in_order(
    broker: Broker, trusting: ssl.SSLContext
) -> None:
    with Client(broker.listeners["SSL"], tls=trusting) as client:
        for number in range(2000):
            client.send(
                request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), correlation_id=number)
            )
        # The client sends no more, and says so below TLS.
        socket.socket.shutdown(client.socket, socket.SHUT_WR)
        for number in range(2000):
            assert client.response(ApiKey.API_VERSIONS, 0)[0] == number
        assert client.is_closed()


@pytest.mark.broker_process
def test_large_answers_arrive_whole_and_a_client_that_does_not_read_holds_no_memory(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    broker = _start(start_broker, tmp_path, identity, authority)
    address = broker.listeners["SSL"]
    with (
        Client(address, tls=trusting) as other,
        Client(address, tls=trusting) as client,
    ):
        names = [f"topic-{number:05}" for number in range(20_000)]
        for start in range(0, len(names), 5000):
            batch = (topic_read(name) for name in names[start : start + 5000])
            assert set(other.create(*batch)) == {0}
        assert other.resource_names() == names
        before = broker.resident_mib
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.settimeout(1)
        large = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, client_id="c" * 30_000)
        assert sent_until_it_blocks(client, large, 10_000) < 10_000
        assert broker.resident_mib - before < 60
        assert len(other.resource_names()) == 20_000


def test_a_client_that_says_good_bye_is_gone_with_no_line_in_the_log(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    broker = _start(start_broker, tmp_path, identity, authority)
    for _ in range(3):
        with Client(broker.listeners["SSL"], tls=trusting) as client:
            assert client.resource_names() == []
            assert isinstance(client.socket, ssl.SSLSocket)
            client.socket.unwrap()
            client.socket.close()
    with Client(broker.listeners["SSL"], tls=trusting) as client:
        client.send(DESCRIBE)
        client.response(ApiKey.DESCRIBE_ACLS, 3)
        socket.socket.shutdown(client.socket, socket.SHUT_WR)
        assert client.is_closed()
    broker.terminate()
    events = broker.events()
    ready = [event["event"] for event in events].index("ready")
    assert {event["level"] for event in events[ready:]} == {"info"}


def test_a_damaged_record_ends_the_connection_with_one_log_line(
    broker: Broker, trusting: ssl.SSLContext
) -> None:
    with Client(broker.listeners["SSL"], tls=trusting) as client:
        assert client.resource_names() == []
        socket.socket.send(client.socket, b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises((ssl.SSLError, ConnectionClosed)):
            client.receive()
    [event] = wait_for(
        "the log line",
        lambda: [e for e in broker.events() if e["event"] == "TLS failed"] or None,
        10,
    )
    assert "bad record mac" in event["reason"]


def test_no_damaged_handshake_breaks_anything(
    start_broker: StartBroker,
    tmp_path: Path,
    identity: Identity,
    authority: Authority,
    trusting: ssl.SSLContext,
) -> None:
    broker = _start(start_broker, tmp_path, identity, authority)
    choose = random.Random(6)
    hello = _client_hello(trusting)
    for _ in range(500):
        damaged = bytearray(hello)
        for _ in range(choose.randint(1, 8)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        with Client(broker.listeners["SSL"]) as client:
            client.send(bytes(damaged[: choose.randint(1, len(damaged))]))
    with Client(broker.listeners["SSL"], tls=trusting) as client:
        assert client.resource_names() == []
    assert not [event for event in broker.events() if event["level"] == "error"]
    assert "Traceback" not in broker.log_text()


def _client_hello(context: ssl.SSLContext) -> bytes:
    """The first bytes that a client sends."""
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()
