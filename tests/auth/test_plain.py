"""SASL PLAIN by RFC 4616 and Kafka's PlainSaslServer."""

import pytest

from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.broker.auth.sasl.plain import PlainServer

USERS = {"alice": "s\xe9cret", "bob": "b", "nopassword": ""}


@pytest.mark.parametrize("authorization_id", ["", "alice"])
def test_the_right_password_logs_in_as_the_user(authorization_id: str):
    server = PlainServer(USERS)
    assert server.identity is None
    assert server.evaluate(f"{authorization_id}\0alice\0s\xe9cret".encode()) == b""
    assert server.identity == Identity("alice")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0Alice\0s\xc3\xa9cret", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0nopassword\0", "Authentication failed: password not specified"),
        (b"alice\0bob\0b", "authorization id that is different from username"),
        (b"", "expected 3 tokens, got 1"),
        (b"alice\0b", "expected 3 tokens, got 2"),
        (b"\0bob\0b\0", "expected 3 tokens, got 4"),
        (b"\0bob\0b\0\0\0", "expected 3 tokens, got 4"),
        (b"\0bob\0\xff", "not UTF-8"),
    ],
)
def test_everything_else_fails(token: bytes, message: str):
    server = PlainServer(USERS)
    with pytest.raises(AuthenticationFailed, match=message):
        server.evaluate(token)
    assert server.identity is None


def test_a_failure_after_a_success_takes_the_success_back():
    server = PlainServer(USERS)
    server.evaluate(b"\0bob\0b")
    with pytest.raises(AuthenticationFailed):
        server.evaluate(b"\0bob\0c")
    assert server.identity is None


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"\0alice\0wrong", "PLAIN: wrong password of user 'alice'"),
        (b"\0mallory\0wrong", "PLAIN: no user 'mallory'"),
        (b"\0alice\0", "PLAIN: no password of user 'alice'"),
        (b"root\0bob\0b", "PLAIN: user 'bob' asked for another authorization id, 'root'"),
        (b"\0" + b"x" * 500_000 + b"\0wrong", f"PLAIN: no user '{'x' * 64}'"),
    ],
)
def test_the_log_is_told_which_user_failed_and_why(token: bytes, reason: str):
    with pytest.raises(AuthenticationFailed) as error:
        PlainServer(USERS).evaluate(token)
    assert error.value.reason == reason
    assert "wrong" not in str(error.value)
