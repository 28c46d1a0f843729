"""The OAUTHBEARER exchange, as Kafka's OAuthBearerSaslServer has it."""

import pytest

from aclbroker.broker.auth.sasl.access_token import InvalidToken
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.broker.auth.sasl.oauthbearer import OAuthBearerServer
from tests.support.access_tokens import initial_response

INVALID_CREDENTIALS = (
    "Authentication failed during authentication due to invalid credentials "
    "with SASL mechanism OAUTHBEARER"
)
GOOD = Identity("alice, the first", 1_800_000_000.0)


def validate(token: str) -> Identity:
    if token != "good":
        raise InvalidToken("because")
    return GOOD


def exchange() -> OAuthBearerServer:
    return OAuthBearerServer(validate)


def failure(server: OAuthBearerServer, message: bytes) -> AuthenticationFailed:
    with pytest.raises(AuthenticationFailed) as failed:
        server.evaluate(message)
    assert server.identity is None
    return failed.value


@pytest.mark.parametrize(
    "message",
    [
        initial_response("good"),
        initial_response("good", "alice=2C the first"),
        initial_response("good", extensions="logicalCluster=lkc-1\x01identityPoolId=p\x01"),
        b"n,,\x01host=h\x01port=9092\x01auth=bearer   good\x01\x01",
        b"n,,\x01auth=BEARER good\x01\x01",
    ],
)
def test_a_good_token_completes_the_exchange_with_an_empty_answer(message: bytes) -> None:
    server = exchange()
    assert server.evaluate(message) == b""
    assert server.identity == GOOD


def test_a_refused_token_is_told_before_the_exchange_fails() -> None:
    failed = failure(exchange(), initial_response("bad"))
    assert failed.challenge == b'{"status":"invalid_token"}'
    assert str(failed) == '{"status":"invalid_token"}'
    assert failed.reason == "invalid token: because"


def test_another_authorization_id_than_the_tokens_subject_is_refused() -> None:
    assert str(failure(exchange(), initial_response("good", "bob"))) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from "
        "the token's principal name (alice, the first)"
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01",
        b"n,,\x01\x01",
        b"n,,\x01\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer good\x01\x01",
        b"n,a=,\x01auth=Bearer good\x01\x01",
        b"n,a=a=b,\x01auth=Bearer good\x01\x01",
        b"n,a=\x00,\x01auth=Bearer good\x01\x01",
        b"n,,auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01auth=Bearer good",
        b"n,,\x01auth=Bearer good\x01\x01\x01",
        b"n,,\x01auth=Bearer good\x01\x01more",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=good\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer good good\x01\x01",
        b"n,,\x01auth=Bearer go\x00od\x01\x01",
        b"n,,\x01auth=Bearer go=od\x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer bad\x01auth=Bearer good\x01\x01",
        b"n,,\x01key=value\x01\x01",
        b"n,,\x01auth=Bearer good\x01k3y=value\x01\x01",
        b"n,,\x01auth=Bearer good\x01key=\x01\x01",
        b"n,,\x01auth=Bearer good\x01key=v\xc3\xa4lue\x01\x01",
        b"n,,\x01auth=Bearer g\xff\x01\x01",
        b"\0alice\0secret",
        b"n,,n=alice,r=nonce",
        b"a=b\x01" * 100_000,
        b"n,,\x01" + b"a=b\x01" * 100_000 + b"\x01",
    ],
)
def test_a_malformed_message_is_refused_without_a_hint(message: bytes) -> None:
    failed = failure(exchange(), message)
    assert str(failed) == INVALID_CREDENTIALS
    assert "good" not in failed.reason
