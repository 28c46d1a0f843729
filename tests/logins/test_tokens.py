"""Access tokens, good and bad, are accepted and refused as a real Kafka 4.3.0 does it."""

import time
from typing import NamedTuple

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from tests.conftest import StartBroker
from tests.logins.conftest import RSA, token_properties
from tests.logins.token_cases import ALIKE, GOOD, KAFKA_ACCEPTS, KAFKA_HANGS_UP, ONLY_WE_ACCEPT
from tests.support.access_tokens import claims, initial_response, token
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.kafka import Kafka
from tests.support.process import wait_for
from tests.support.tables import check_each

INVALID_TOKEN = '{"status":"invalid_token"}'


class Outcome(NamedTuple):
    """What became of a login: the first challenge, and the error's text if there was one.

    `listed` is the error code for a list of all ACLs, which alice may have; None is no answer.
    """

    accepted: bool
    challenge: str = ""
    error: str = ""
    listed: int | None = None


HUNG_UP = Outcome(accepted=False)


def log_in(server: Broker | Kafka, message: bytes) -> Outcome:
    """Send a first message, and the single byte 1 if it is answered with a challenge."""
    with Client(server.listeners["SASL_PLAINTEXT"]) as client:
        assert client.handshake("OAUTHBEARER").error_code == 0
        try:
            answer = client.authenticate(message)
            challenge = answer.auth_bytes.decode()
            if challenge and not answer.error_code:
                answer = client.authenticate(b"\x01")
        except ConnectionClosed:
            return HUNG_UP
        if answer.error_code:
            return Outcome(False, challenge, answer.error_message)
        try:
            listed = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code
        except ConnectionClosed:
            listed = None
        return Outcome(True, challenge, listed=listed)


def test_what_kafka_accepts_is_accepted_and_what_it_refuses_refused_alike(
    token_broker: Broker, token_kafka: Kafka
) -> None:
    def check(name: str) -> None:
        assert log_in(token_broker, ALIKE[name]) == log_in(token_kafka, ALIKE[name])

    check_each(ALIKE, check)


@pytest.mark.parametrize("name", KAFKA_ACCEPTS)
def test_what_kafka_should_not_accept_is_refused(
    name: str, token_broker: Broker, token_kafka: Kafka
) -> None:
    message, _ = KAFKA_ACCEPTS[name]
    assert not log_in(token_broker, message).accepted
    assert log_in(token_kafka, message).accepted


@pytest.mark.parametrize("name", KAFKA_HANGS_UP)
def test_where_kafka_hangs_up_the_client_is_told(
    name: str, token_broker: Broker, token_kafka: Kafka
) -> None:
    message, _ = KAFKA_HANGS_UP[name]
    ours = log_in(token_broker, message)
    assert not ours.accepted
    assert ours.error
    assert log_in(token_kafka, message) == HUNG_UP


@pytest.mark.parametrize("name", ONLY_WE_ACCEPT)
def test_what_kafka_cannot_take_in_is_accepted(
    name: str, token_broker: Broker, token_kafka: Kafka
) -> None:
    message, _ = ONLY_WE_ACCEPT[name]
    assert log_in(token_broker, message).accepted
    assert not log_in(token_kafka, message).accepted


@pytest.mark.parametrize("server", ["token_broker", "token_kafka"])
def test_a_session_is_good_as_long_as_its_token(
    server: str, request: pytest.FixtureRequest
) -> None:
    expires_at = int(time.time()) + 600
    with Client(request.getfixturevalue(server).listeners["SASL_PLAINTEXT"]) as client:
        client.handshake("OAUTHBEARER")
        message = initial_response(token(RSA, claims(exp=expires_at)))
        lifetime = client.authenticate(message).session_lifetime_ms
    # The clock has gone on since.
    assert (expires_at - time.time()) * 1000 - 1 <= lifetime <= 600_000


@pytest.mark.parametrize("server", ["token_broker", "token_kafka"])
def test_who_authenticates_again_with_something_malformed_is_told_so(
    server: str, request: pytest.FixtureRequest
) -> None:
    with Client(request.getfixturevalue(server).listeners["SASL_PLAINTEXT"]) as client:
        client.handshake("OAUTHBEARER")
        assert client.authenticate(initial_response(GOOD)).error_code == 0
        # Not before a second has passed.
        wait_for("again", lambda: client.handshake("OAUTHBEARER").error_code == 0 or None, 20)
        answer = client.authenticate(b"n,,")
    assert answer.error_message == (
        "Authentication failed during re-authentication due to invalid credentials with SASL "
        "mechanism OAUTHBEARER"
    )


def test_after_a_refused_token_another_one_needs_a_new_connection(
    token_broker: Broker, token_kafka: Kafka
) -> None:
    """Kafka checks as many tokens as come on one connection."""
    codes = []
    for server in (token_broker, token_kafka):
        with Client(server.listeners["SASL_PLAINTEXT"]) as client:
            client.handshake("OAUTHBEARER")
            assert client.authenticate(initial_response("a.b.c")).auth_bytes
            codes.append(client.authenticate(initial_response(GOOD)).error_code)
    assert codes == [ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.NONE]


def test_a_refused_token_is_logged_once_whether_the_client_stays_or_leaves(
    jwks_url: str, start_broker: StartBroker
) -> None:
    broker = start_broker(token_properties(jwks_url))
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.handshake("OAUTHBEARER")
        assert client.authenticate(initial_response("alice")).auth_bytes
        [failed] = [each for each in broker.events() if each["event"] == "authentication failed"]
        assert failed["reason"] == "invalid token: not three parts with a period between them"
        client.authenticate(b"\x01")
    assert broker.log_text().count("authentication failed") == 1


def test_a_bad_token_does_no_harm_to_others_and_is_not_logged(token_broker: Broker) -> None:
    with Client(token_broker.listeners["SASL_PLAINTEXT"]) as healthy:
        healthy.handshake("OAUTHBEARER")
        assert healthy.authenticate(initial_response(GOOD)).error_code == 0
        bad = [message for message in ALIKE.values() if not log_in(token_broker, message).accepted]
        assert len(bad) > 60
        assert healthy.resource_names() == []
    log = token_broker.log_text()
    assert "Traceback" not in log
    for message in bad:
        parts = message.decode(errors="replace").replace("\x01", ".").replace(" ", ".").split(".")
        assert not [part for part in parts if len(part) > 20 and part in log]
