"""GSSAPI with a real MIT KDC: who has a ticket gets in, as with a real Kafka 4.3.0."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.messages import ApiKey
from tests.conftest import StartBroker
from tests.logins.conftest import PREFIX, SERVICE, kerberos_login, kerberos_properties
from tests.logins.initiator import context, first_token
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.kafka import Kafka
from tests.support.kdc import Kdc, require_gssapi, running

NO_LAYER = b"\x01\x00\x00\x00"
REFUSED = (
    "Authentication failed during authentication due to invalid credentials "
    "with SASL mechanism GSSAPI"
)


class Keytabs(NamedTuple):
    """The keys of two users, and those of another service."""

    alice: Path
    bob: Path


class Outcome(NamedTuple):
    """What became of a login: the error's text, or the error code for a list of all ACLs.

    Only alice may have that. Both are None if the broker hung up.
    """

    error: str | None = None
    listed: int | None = None


@pytest.fixture(scope="module")
def keytabs(kdc: Kdc) -> Keytabs:
    kdc.keytab("other/localhost")
    return Keytabs(kdc.keytab("alice"), kdc.keytab("bob/admin"))


@pytest.fixture(autouse=True)
def with_tickets_of_the_kdc(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    require_gssapi()
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["aclbroker", "kafka-4.3.0"])
def address(request: pytest.FixtureRequest) -> str:
    """Where our broker is, then a real Kafka."""
    ours = request.param == "aclbroker"
    server: Broker | Kafka = request.getfixturevalue(
        "kerberos_broker" if ours else "kerberos_kafka"
    )
    return server.listeners["SASL_PLAINTEXT"].replace("localhost", "127.0.0.1")


def log_in(
    address: str, initiator: Any, chosen: bytes = NO_LAYER, *, wrapped: bool = True
) -> Outcome:
    """Do what a client does, and choose a security layer."""
    with Client(address) as client:
        client.handshake("GSSAPI")
        answer = client.authenticate(initiator.step())
        while not initiator.complete:
            answer = client.authenticate(initiator.step(answer.auth_bytes) or b"")
        assert initiator.unwrap(answer.auth_bytes).message[:1] == NO_LAYER[:1]
        return _end(client, initiator.wrap(chosen, False).message if wrapped else chosen)


def _end(client: Client, token: bytes) -> Outcome:
    try:
        answer = client.authenticate(token)
    except ConnectionClosed:
        return Outcome()
    if answer.error_code:
        return Outcome(answer.error_message)
    return Outcome(None, client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code)


def send_first(address: str, token: bytes) -> Outcome:
    """Send a first token that gets nobody in."""
    with Client(address) as client:
        client.handshake("GSSAPI")
        return _end(client, token)


def test_a_ticket_says_who_somebody_is(address: str, keytabs: Keytabs) -> None:
    assert log_in(address, context("alice", keytabs.alice)) == Outcome(listed=0)
    assert log_in(address, context("bob/admin", keytabs.bob)) == Outcome(listed=31)


def test_a_name_is_shortened_by_the_rules(address: str, kdc: Kdc) -> None:
    carol = kdc.keytab("carol/ops")
    assert log_in(address, context("carol/ops", carol)) == Outcome(listed=0)


def test_an_authorization_id_has_no_effect(address: str, keytabs: Keytabs) -> None:
    bob = context("bob/admin", keytabs.bob)
    assert log_in(address, bob, NO_LAYER + b"alice") == Outcome(listed=31)


def test_security_layers_are_neither_offered_nor_accepted(
    kerberos_broker: Broker, address: str, keytabs: Keytabs
) -> None:
    for layer in (b"\x00", b"\x02", b"\x04"):
        alice = context("alice", keytabs.alice)
        assert log_in(address, alice, layer + b"\x00\xff\xff") == Outcome(REFUSED)


def test_an_answer_that_is_not_protected_by_the_context_is_refused(
    address: str, keytabs: Keytabs
) -> None:
    assert log_in(address, context("alice", keytabs.alice), wrapped=False) == Outcome(REFUSED)


def test_a_token_that_was_seen_before_is_refused(address: str, keytabs: Keytabs) -> None:
    token = context("alice", keytabs.alice).step()
    with Client(address) as client:
        client.handshake("GSSAPI")
        assert client.authenticate(token).error_code == 0
    assert send_first(address, token) == Outcome(REFUSED)


@pytest.mark.parametrize("clock", ["-3h", "+3h"])
def test_a_ticket_that_has_expired_or_is_not_valid_yet_is_refused(
    clock: str, kdc: Kdc, address: str, keytabs: Keytabs, tmp_path: Path
) -> None:
    at_another_time = Kdc(tmp_path, database=kdc.directory, clock=clock)
    with running(at_another_time):
        alice = tmp_path / "alice.keytab"
        alice.write_bytes(keytabs.alice.read_bytes())
        token = first_token(at_another_time, "alice", alice)
    assert send_first(address, token) == Outcome(REFUSED)


def test_a_ticket_of_another_realm_is_refused(address: str, tmp_path: Path) -> None:
    with running(Kdc(tmp_path, "ELSEWHERE.TEST")) as elsewhere:
        elsewhere.keytab(SERVICE)
        token = first_token(elsewhere, "alice", elsewhere.keytab("alice"))
    assert send_first(address, token) == Outcome(REFUSED)


def test_a_ticket_for_another_service_is_refused(address: str, keytabs: Keytabs) -> None:
    token = context("alice", keytabs.alice, "other@localhost").step()
    assert send_first(address, token) == Outcome(REFUSED)


def test_kerberos_is_not_negotiated(address: str, keytabs: Keytabs) -> None:
    token = context("alice", keytabs.alice, mechanism="SPNEGO").step()
    assert send_first(address, token) == Outcome(REFUSED)


def test_what_is_no_token_is_refused(address: str, keytabs: Keytabs) -> None:
    token = context("alice", keytabs.alice).step()
    flipped = bytearray(token)
    flipped[-5] ^= 1
    broken = [b"", b"\x60", b"\x60" + b"\xff" * 50, bytes(300), token[:200], bytes(flipped)]
    broken.append(b"\0alice\0secret")
    assert [send_first(address, each) for each in broken] == [Outcome(REFUSED)] * len(broken)
    assert log_in(address, context("alice", keytabs.alice)) == Outcome(listed=0)


def test_where_we_differ_from_kafka(
    kerberos_broker: Broker, kerberos_kafka: Kafka, keytabs: Keytabs
) -> None:
    """Kafka takes several layers for a choice, and hangs up on a choice that is too short.

    It does not look at what comes after a token either.
    """

    def outcomes(chosen: bytes) -> list[Outcome]:
        servers = (kerberos_broker, kerberos_kafka)
        addresses = [each.listeners["SASL_PLAINTEXT"].split(":")[1] for each in servers]
        return [
            log_in(f"127.0.0.1:{port}", context("alice", keytabs.alice), chosen)
            for port in addresses
        ]

    assert outcomes(b"\x05\x00\x00\x00") == [Outcome(REFUSED), Outcome(listed=0)]
    assert outcomes(b"\x01\x00") == [Outcome(REFUSED), Outcome()]
    ours = kerberos_broker.listeners["SASL_PLAINTEXT"].replace("localhost", "127.0.0.1")
    assert send_first(ours, context("alice", keytabs.alice).step() * 2) == Outcome(REFUSED)


def test_the_log_says_why(keytab: Path, keytabs: Keytabs, start_broker: StartBroker) -> None:
    broker = start_broker(kerberos_properties(keytab))
    address = broker.listeners["SASL_PLAINTEXT"]
    token = context("alice", keytabs.alice).step()
    with Client(address) as client:
        client.handshake("GSSAPI")
        client.authenticate(token)
    send_first(address, token)
    log_in(address, context("alice", keytabs.alice), b"\x02\x00\x00\x00")
    failed = [each for each in broker.events() if each["event"] == "authentication failed"]
    assert "Request is a replay" in failed[0]["reason"]
    assert failed[1]["reason"] == "a security layer that was not offered"
    assert "Traceback" not in broker.log_text()


def test_a_new_key_of_the_broker_needs_no_restart(
    kdc: Kdc, keytabs: Keytabs, start_broker: StartBroker, tmp_path: Path
) -> None:
    keytab = kdc.keytab("rotated/localhost")
    login = kerberos_login(keytab, "rotated/localhost")
    properties = {**kerberos_properties(keytab), f"{PREFIX}gssapi.sasl.jaas.config": login}
    broker = start_broker(properties | {"sasl.kerberos.service.name": "rotated"})
    address = broker.listeners["SASL_PLAINTEXT"]
    assert log_in(address, context("alice", keytabs.alice, "rotated@localhost")).listed == 0
    kdc.keytab("rotated/localhost")
    carol = kdc.keytab("carol")
    assert log_in(address, context("carol", carol, "rotated@localhost")).listed == 31


@pytest.mark.parametrize(
    ("principal", "file", "reason"),
    [
        ("elsewhere/localhost", None, "No key table entry found for elsewhere/localhost"),
        (SERVICE, "/nowhere.keytab", "Key table file '/nowhere.keytab' not found"),
        (SERVICE, "/etc/hostname", "Unsupported key table format"),
        ("a@b", None, "Malformed representation of principal"),
    ],
)
def test_the_start_is_refused_without_the_brokers_key(
    principal: str, file: str | None, reason: str, keytab: Path, start_broker: StartBroker
) -> None:
    path = Path(file) if file else keytab
    name = f"{PREFIX}gssapi.sasl.jaas.config"
    properties = {**kerberos_properties(path), name: kerberos_login(path, principal)}
    with pytest.raises(RuntimeError) as refused:
        start_broker(properties)
    assert f"{name}: " in str(refused.value)
    assert reason in str(refused.value)
