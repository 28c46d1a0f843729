"""New certificates are taken over while the broker runs."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.certificates import (
    PASSWORD,
    Authority,
    Identity,
    pkcs12_truststore,
)
from tests.support.client import Client
from tests.support.process import wait_for
from tests.support.tls import LISTENERS, client_tls

StartTls = Callable[..., Broker]


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def start(start_broker: StartBroker, tmp_path: Path, authority: Authority) -> StartTls:
    """Starts a broker with a certificate in PKCS#12, and other settings."""

    def start_with(identity: Identity, **overrides: str) -> Broker:
        _put(tmp_path / "keystore.p12", identity.pkcs12())
        _put(tmp_path / "truststore.p12", pkcs12_truststore(authority.certificate))
        return start_broker(
            {
                **LISTENERS,
                "ssl.keystore.location": str(tmp_path / "keystore.p12"),
                "ssl.keystore.password": PASSWORD,
                "ssl.truststore.location": str(tmp_path / "truststore.p12"),
                "ssl.truststore.password": PASSWORD,
                **{f"ssl.{name.replace('_', '.')}": text for name, text in overrides.items()},
            }
        )

    return start_with


def _put(path: Path, content: bytes) -> None:
    """Replace a file at once, as who renews certificates should."""
    unfinished = path.with_suffix(".new")
    unfinished.write_bytes(content)
    unfinished.rename(path)


def _serial(broker: Broker, tls: ssl.SSLContext, listener: str = "SSL") -> int:
    """The serial number of the certificate that a new connection gets."""
    with Client(broker.listeners[listener], tls=tls) as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        certificate: Any = client.socket.getpeercert()
        return int(certificate["serialNumber"], 16)


def _events(broker: Broker, start: str) -> list[dict[str, Any]]:
    return [event for event in broker.events() if event["event"].startswith(start)]


def _wait_for(broker: Broker, start: str, count: int) -> list[dict[str, Any]]:
    """The events, once there are `count`: files are looked at every few seconds."""
    return wait_for(
        f"{count} times {start}",
        lambda: events if len(events := _events(broker, start)) >= count else None,
        30,
    )


@pytest.mark.parametrize("told", [True, False], ids=["by SIGHUP", "by the file's time"])
def test_new_connections_get_the_new_certificate_and_open_ones_stay(
    start: StartTls, tmp_path: Path, authority: Authority, told: bool
) -> None:
    old, new = authority.issue(), authority.issue()
    broker = start(old)
    tls = client_tls(authority)
    with Client(broker.listeners["SSL"], tls=tls) as before:
        assert before.resource_names() == []
        _put(tmp_path / "keystore.p12", new.pkcs12())
        if told:
            broker.hang_up()
        for event in _wait_for(broker, "certificate reloaded", 2):
            assert event["level"] == "info"
            assert event["certificates"][0].startswith("CN=localhost until ")
        for listener in ("SSL", "SASL_SSL"):
            assert _serial(broker, tls, listener) == new.certificate.serial_number
        assert before.resource_names() == []


def test_a_broken_file_is_told_once_and_the_old_certificate_stays(
    start: StartTls, tmp_path: Path, authority: Authority
) -> None:
    old, new = authority.issue(), authority.issue()
    broker = start(old)
    tls = client_tls(authority)
    _put(tmp_path / "keystore.p12", new.pkcs12()[:-10])
    failures = _wait_for(broker, "certificate not reloaded", 2)
    assert {event["setting"] for event in failures} == {
        "listener.name.ssl.ssl.keystore.password",
        "listener.name.sasl_ssl.ssl.keystore.password",
    }
    assert PASSWORD not in broker.log_text()
    assert _serial(broker, tls) == old.certificate.serial_number
    _put(tmp_path / "keystore.p12", new.pkcs12())
    _wait_for(broker, "certificate reloaded", 2)
    # Meanwhile the files were looked at again, and the broken one not told of again.
    assert len(_events(broker, "certificate not reloaded")) == 2
    assert _serial(broker, tls) == new.certificate.serial_number


@pytest.mark.parametrize(
    ("subject", "names", "setting"),
    [
        ("CN=other", ["localhost", "127.0.0.1"], "ssl.allow.dn.changes"),
        ("CN=localhost", ["127.0.0.1"], "ssl.allow.san.changes"),
    ],
)
def test_a_certificate_of_another_name_is_refused_unless_that_is_allowed(
    start: StartTls,
    tmp_path: Path,
    authority: Authority,
    subject: str,
    names: list[str],
    setting: str,
) -> None:
    old, new = authority.issue(), authority.issue(subject, names=names)
    tls = client_tls(authority)
    for allowed in (False, True):
        broker = start(old, **{setting.removeprefix("ssl."): str(allowed).lower()})
        _put(tmp_path / "keystore.p12", new.pkcs12())
        broker.hang_up()
        if allowed:
            _wait_for(broker, "certificate reloaded", 2)
            assert _serial(broker, tls) == new.certificate.serial_number
        else:
            for event in _wait_for(broker, "certificate not reloaded", 2):
                assert str(event["setting"]).endswith(setting)
            assert _serial(broker, tls) == old.certificate.serial_number
        broker.terminate()


def test_a_new_trust_store_counts_for_new_connections(
    start: StartTls, tmp_path: Path, authority: Authority
) -> None:
    broker = start(authority.issue(), client_auth="required")
    others = Authority("Other")
    stranger = client_tls(authority, others.issue("CN=alice"))
    with pytest.raises(ssl.SSLError), Client(broker.listeners["SSL"], tls=stranger) as client:
        client.resource_names()
    both = pkcs12_truststore(authority.certificate, others.certificate)
    _put(tmp_path / "truststore.p12", both)
    broker.hang_up()
    _wait_for(broker, "certificate reloaded", 2)
    assert _serial(broker, stranger)
    _put(tmp_path / "truststore.p12", pkcs12_truststore(others.certificate))
    broker.hang_up()
    _wait_for(broker, "certificate reloaded", 4)
    with (
        pytest.raises(ssl.SSLError),
        Client(
            broker.listeners["SSL"], tls=client_tls(authority, authority.issue("CN=bob"))
        ) as client,
    ):
        client.resource_names()
