"""SASL/PLAIN on the wire: who gets in, and what may be sent before."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.produce import ProduceRequest
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import framed
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import ALL_ACLS, Client, request_frame
from tests.support.process import wait_for

VERSIONS = ApiVersionsRequest("test", "1.0")
HANDSHAKE = SaslHandshakeRequest("PLAIN")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory):
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture
def client(broker: Broker):
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        yield client


def test_the_right_password_makes_the_user_the_principal(client: Client) -> None:
    response = client.login("admin", PASSWORDS["admin"])
    assert (response.error_code, response.auth_bytes) == (0, b"")
    assert client.resource_names() == []


def test_a_user_without_rights_gets_cluster_authorization_failed(client: Client) -> None:
    client.login("alice", PASSWORDS["alice"])
    for version in range(4):
        response = client.ask(ApiKey.DESCRIBE_ACLS, version, ALL_ACLS)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert not response.resources


@pytest.mark.parametrize(
    ("user", "password"),
    [("admin", "wrong"), ("nobody", "wrong"), ("admin", ""), ("", "admin-secret"), ("Admin", "x")],
)
def test_a_wrong_login_gets_one_answer_whoever_it_was_and_ends_the_connection(
    client: Client, user: str, password: str
) -> None:
    response = client.login(user, password)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not response.auth_bytes
    if user and password:
        assert response.error_message == "Authentication failed: Invalid username or password"
    assert client.is_closed()


def test_passwords_are_in_no_log_line(broker: Broker, client: Client) -> None:
    client.login("admin", "a-mistyped-password")
    assert client.is_closed()
    wait_for("the failure", lambda: "authentication failed" in broker.log_text() or None, 10)
    for secret in (*PASSWORDS.values(), "a-mistyped-password"):
        assert secret not in broker.log_text()


def test_version_0_of_the_handshake_is_followed_by_bare_tokens(client: Client) -> None:
    response = client.ask(ApiKey.SASL_HANDSHAKE, 0, HANDSHAKE)
    assert (response.error_code, response.mechanisms) == (0, ["PLAIN"])
    client.send(framed(b"\0admin\0" + PASSWORDS["admin"].encode()))
    assert client.receive() == b""
    assert client.resource_names() == []


def test_a_wrong_bare_token_is_answered_by_nothing(client: Client) -> None:
    client.ask(ApiKey.SASL_HANDSHAKE, 0, HANDSHAKE)
    client.send(framed(b"\0admin\0wrong"))
    assert client.is_closed()


def test_an_unknown_mechanism_is_told_the_enabled_ones(client: Client) -> None:
    response = client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN"]
    assert client.is_closed()


def test_api_versions_is_answered_before_the_handshake(client: Client) -> None:
    assert client.ask(ApiKey.API_VERSIONS, 3, VERSIONS).error_code == 0
    assert client.login("admin", PASSWORDS["admin"]).error_code == 0


def test_api_versions_of_an_unknown_version_may_be_asked_again(client: Client) -> None:
    client.send(framed(struct.pack(">hhih", ApiKey.API_VERSIONS, 77, 1, -1) + b"\0"))
    response = client.response(ApiKey.API_VERSIONS, 0)[1]
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert client.ask(ApiKey.API_VERSIONS, 3, VERSIONS).error_code == 0
    assert client.login("admin", PASSWORDS["admin"]).error_code == 0


def test_nothing_else_is_answered_before_authentication(client: Client) -> None:
    client.send(request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS))
    assert client.is_closed()


def test_a_request_in_place_of_a_token_gets_its_own_answer_before_the_close(client: Client) -> None:
    client.handshake("PLAIN")
    response = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    assert (response.error_code, response.resources) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    assert client.is_closed()


def test_a_long_request_in_place_of_a_token_is_not_looked_at(client: Client) -> None:
    client.handshake("PLAIN")
    client.send(
        request_frame(ApiKey.METADATA, 0, MetadataRequest([MetadataRequestTopic(name="")] * 9000))
    )
    assert client.is_closed()


def test_a_produce_without_an_answer_in_place_of_a_token_gets_none(client: Client) -> None:
    client.handshake("PLAIN")
    client.send(request_frame(ApiKey.PRODUCE, 9, ProduceRequest(None, 0, 100, [])))
    assert client.is_closed()


def test_a_token_before_the_handshake_closes_the_connection(client: Client) -> None:
    token = SaslAuthenticateRequest(b"\0admin\0" + PASSWORDS["admin"].encode())
    client.send(request_frame(ApiKey.SASL_AUTHENTICATE, 2, token))
    assert client.is_closed()


def test_a_request_pipelined_behind_the_login_waits_for_it(client: Client) -> None:
    token = SaslAuthenticateRequest(b"\0admin\0" + PASSWORDS["admin"].encode())
    client.send(
        request_frame(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
        + request_frame(ApiKey.SASL_AUTHENTICATE, 2, token)
        + request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    )
    assert client.response(ApiKey.SASL_HANDSHAKE, 1)[1].error_code == 0
    assert client.response(ApiKey.SASL_AUTHENTICATE, 2)[1].error_code == 0
    assert client.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0


def test_a_request_pipelined_behind_a_failed_login_is_not_answered(client: Client) -> None:
    token = SaslAuthenticateRequest(b"\0admin\0wrong")
    client.send(
        request_frame(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
        + request_frame(ApiKey.SASL_AUTHENTICATE, 2, token)
        + request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    )
    assert client.response(ApiKey.SASL_HANDSHAKE, 1)[1].error_code == 0
    assert client.response(ApiKey.SASL_AUTHENTICATE, 2)[1].error_code == 58
    with pytest.raises(ConnectionClosed):
        client.response(ApiKey.DESCRIBE_ACLS, 3)


def test_a_handshake_after_the_login_is_out_of_place_and_the_session_goes_on(
    client: Client,
) -> None:
    client.login("admin", PASSWORDS["admin"])
    assert client.ask(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE).error_code == 34
    token = SaslAuthenticateRequest(b"\0alice\0" + PASSWORDS["alice"].encode())
    assert client.ask(ApiKey.SASL_AUTHENTICATE, 2, token).error_code == 34
    assert client.resource_names() == []


def test_frames_before_the_login_end_at_512_kib(client: Client) -> None:
    client.send(struct.pack(">i", 524_289))
    assert client.is_closed()


def test_frames_after_the_login_may_be_larger(client: Client) -> None:
    client.login("admin", PASSWORDS["admin"])
    large = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, client_id="c")
    # Bytes behind a request are passed over, as Kafka passes them over.
    client.send(framed(large[4:] + bytes(1_000_000)))
    assert client.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0


def test_who_does_not_log_in_in_time_is_disconnected(tmp_path: Path) -> None:
    broker = ThreadBroker(tmp_path, {"aclbroker.sasl.timeout.ms": "200"})
    broker.start()
    try:
        with (
            Client(broker.listeners["SASL_PLAINTEXT"]) as silent,
            Client(broker.listeners["SASL_PLAINTEXT"]) as slow,
            Client(broker.listeners["PLAINTEXT"]) as open_to_all,
        ):
            slow.ask(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
            assert silent.is_closed()
            assert slow.is_closed()
            assert open_to_all.resource_names() == []
        wait_for("the reason", lambda: "not within 0.2 seconds" in broker.log_text() or None, 10)
    finally:
        broker.terminate()


def test_a_session_must_be_authenticated_again_where_that_is_set(tmp_path: Path) -> None:
    broker = ThreadBroker(tmp_path, {"connections.max.reauth.ms": "1500"})
    broker.start()
    token = SaslAuthenticateRequest(b"\0admin\0" + PASSWORDS["admin"].encode())
    try:
        with (
            Client(broker.listeners["SASL_PLAINTEXT"]) as renewed,
            Client(broker.listeners["SASL_PLAINTEXT"]) as forgotten,
        ):
            assert forgotten.login("admin", PASSWORDS["admin"]).session_lifetime_ms == 1500
            assert renewed.login("admin", PASSWORDS["admin"]).session_lifetime_ms == 1500

            def begun_again() -> bool | None:
                return renewed.ask(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE).error_code == 0 or None

            def is_over() -> bool | None:
                forgotten.send(request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS))
                try:
                    forgotten.receive()
                except ConnectionClosed:
                    return True
                return None

            wait_for("a second between both", begun_again, 10)
            assert renewed.ask(ApiKey.SASL_AUTHENTICATE, 2, token).session_lifetime_ms == 1500
            assert renewed.resource_names() == []
            wait_for("the end of the session", is_over, 10)
    finally:
        broker.terminate()
