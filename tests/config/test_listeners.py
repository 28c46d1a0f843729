"""Listeners as Kafka reads them: names, protocols, addresses, and what is advertised."""

import socket

import pytest

from tests.config.conftest import JAAS, LoadError, LoadText

MANY = 2**31 - 1


def test_a_file_without_listeners_listens_on_every_interface_like_kafka(load_text: LoadText):
    [listener] = load_text("node.id=1").listeners
    assert (listener.name, listener.security_protocol) == ("PLAINTEXT", "PLAINTEXT")
    assert (listener.host, listener.port) == (None, 9092)
    assert (listener.advertised_host, listener.advertised_port) == (socket.getfqdn(), 9092)
    assert listener.max_connections == MANY


def test_ipv6_addresses_stand_in_brackets(load_text: LoadText):
    [listener] = load_text("listeners=PLAINTEXT://[::1]:9092").listeners
    assert (listener.host, listener.port, listener.advertised_host) == ("::1", 9092, "::1")


def test_listeners_keep_their_order_and_their_names_are_in_upper_case(load_text: LoadText):
    config = load_text(
        "listeners=internal://127.0.0.1:9093 , External://127.0.0.1:0",
        "listener.security.protocol.map=INTERNAL:plaintext,external:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        JAAS.replace("sasl_plaintext", "external"),
    )
    internal, external = config.listeners
    assert (internal.name, internal.security_protocol) == ("INTERNAL", "PLAINTEXT")
    assert (external.name, external.security_protocol) == ("EXTERNAL", "SASL_PLAINTEXT")
    assert external.mechanisms["PLAIN"] == {"admin": "top-secret-1", "alice": "top-secret-2"}
    assert internal.mechanisms == {}


def test_port_0_advertises_the_port_that_will_be_chosen(load_text: LoadText):
    [listener] = load_text("listeners=PLAINTEXT://localhost:0").listeners
    assert (listener.port, listener.advertised_port) == (0, 0)


def test_advertised_addresses_may_differ_and_share_a_port(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://0.0.0.0:9092,OTHER://0.0.0.0:9093",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "advertised.listeners=PLAINTEXT://a.example:443,OTHER://b.example:443",
    )
    shown = [(each.advertised_host, each.advertised_port) for each in config.listeners]
    assert shown == [("a.example", 443), ("b.example", 443)]


def test_a_listener_that_is_not_advertised_advertises_itself(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://0.0.0.0:9092,OTHER://0.0.0.0:9093,THIRD://127.0.0.1:9094",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,THIRD:PLAINTEXT",
        "advertised.listeners=PLAINTEXT://a.example:443",
    )
    shown = [(each.advertised_host, each.advertised_port) for each in config.listeners]
    assert shown == [("a.example", 443), (socket.getfqdn(), 9093), ("127.0.0.1", 9094)]


def test_an_empty_advertised_host_is_the_name_of_the_machine(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners=PLAINTEXT://:19092"
    )
    [listener] = config.listeners
    assert (listener.advertised_host, listener.advertised_port) == (socket.getfqdn(), 19092)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]"])
def test_the_address_of_every_interface_must_not_be_advertised(load_error: LoadError, host: str):
    error = load_error(f"listeners=PLAINTEXT://{host}:9092")
    assert "s.properties:1: listeners=" in str(error)
    assert "advertised.listeners must be set" in str(error)
    error = load_error(
        "listeners=PLAINTEXT://:9092", f"advertised.listeners=PLAINTEXT://{host}:9092"
    )
    assert "s.properties:2: advertised.listeners=" in str(error)
    assert "not an address to connect to" in str(error)


def test_a_controllers_listener_is_left_out_with_a_note(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093",
        "controller.listener.names=CONTROLLER",
        "listener.name.controller.ssl.client.auth=required",
        "super.users=User:a",
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.notes == ("listener CONTROLLER belongs to a controller and is not opened",)
    assert config.warnings == (
        "settings of Kafka that have no effect here: listener.name.controller.ssl.client.auth",
    )


def test_settings_of_one_listener_win_over_those_of_the_broker(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://127.0.0.1:9093",
        "max.connections=100",
        "listener.name.sasl_plaintext.max.connections=7",
        "sasl.enabled.mechanisms=GSSAPI",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN",
        JAAS,
    )
    assert config.max_connections == 100
    plaintext, sasl = config.listeners
    assert (plaintext.max_connections, sasl.max_connections) == (100, 7)
    assert ([*plaintext.mechanisms], [*sasl.mechanisms]) == ([], ["PLAIN"])


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        ("", "no listener of a broker"),
        ("localhost:9092", "'localhost:9092' is not NAME://HOST:PORT"),
        ("PLAINTEXT://a b:9092", "is not NAME://HOST:PORT"),
        ("://:9092", "is not NAME://HOST:PORT"),
        ("A.B://:9092", "is not NAME://HOST:PORT"),
        ("PLAINTEXT://:65536", "port that is not from 0 to 65535"),
        ("PLAINTEXT://:-1", "port that is not from 0 to 65535"),
        ("PLAINTEXT://[::g]:9092", "host that is not an IPv6 address"),
        ("PLAINTEXT://[a b]:9092", "is not NAME://HOST:PORT"),
        ("PLAINTEXT://[::1::]:9092", "host that is not an IPv6 address"),
        ("PLAINTEXT://a:1,plaintext://b:2", "'PLAINTEXT' is there twice"),
        ("PLAINTEXT://a:1,SASL_PLAINTEXT://b:1", "port 1 is there twice"),
        ("PLAINTEXT://1.1.1.1:1,SASL_PLAINTEXT://1.1.1.2:1", "port 1 is there twice"),
        ("PLAINTEXT://:1,SASL_PLAINTEXT://[::1]:1", "port 1 is there twice"),
        ("FOO://:9092", "listener FOO has no security protocol"),
    ],
)
def test_listeners_that_cannot_be_opened_are_refused(
    load_error: LoadError, listeners: str, reason: str
):
    error = load_error(f"listeners={listeners}")
    assert f"s.properties:1: listeners={listeners!r}: " in str(error)
    assert reason in str(error)
    assert "; allowed: " in str(error)


def test_one_port_may_serve_an_ipv4_and_an_ipv6_address(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://127.0.0.1:9092,OTHER://[::1]:9092",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    )
    assert [listener.host for listener in config.listeners] == ["127.0.0.1", "::1"]


@pytest.mark.parametrize(
    ("protocols", "reason"),
    [
        ("PLAINTEXT", "'PLAINTEXT' has no colon"),
        ("PLAINTEXT:TLS", "'TLS' is not a security protocol"),
        ("A:PLAINTEXT,a:SSL", "listener 'A' is there twice"),
        ("A:PLAINTEXT", "listener PLAINTEXT has no security protocol"),
    ],
)
def test_a_wrong_protocol_map_is_refused_with_its_line(
    load_error: LoadError, protocols: str, reason: str
):
    error = load_error("node.id=1", f"listener.security.protocol.map={protocols}")
    assert f"s.properties:2: listener.security.protocol.map={protocols!r}: " in str(error)
    assert reason in str(error)


def test_what_is_advertised_must_be_a_listener(load_error: LoadError):
    error = load_error(
        "listeners=PLAINTEXT://127.0.0.1:9092", "advertised.listeners=OTHER://a.example:9092"
    )
    assert "'OTHER' is not in listeners; allowed: PLAINTEXT" in str(error)
