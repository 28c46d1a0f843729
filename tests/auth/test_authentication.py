"""Sessions that end, and authentication once more (KIP-368), by a clock of the test's own."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import pytest

from aclbroker.acl.groups import Groups
from aclbroker.broker.auth.authentication import Authentication
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.principals import DefaultPrincipalBuilder
from aclbroker.broker.auth.sasl.exchange import Reply
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.broker.auth.sasl.plain import PlainServer
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server.dispatch import before_login
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import decode_response
from tests.gate.rights import everything, services
from tests.support.client import request_frame

BEFORE_LOGIN = before_login(
    services(everything, Catalog(), Audit(load(), "cluster", configure(stream=io.StringIO())))
)
USERS = {"alice": "1", "bob": "2"}
PLAIN = request_frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))[4:]
OTHER = request_frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("OTHER"))[4:]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authentication(clock: Clock) -> Authentication:
    plain = partial(PlainServer, USERS)
    login = Login(
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        DefaultPrincipalBuilder(str, str),
        {"PLAIN": plain, "OTHER": plain},
        {"PLAIN": 60_000},
    )
    begun = Authentication(login, "127.0.0.1", BEFORE_LOGIN, clock)
    begun.begin(None)
    return begun


def token(user: str, version: int = 2) -> bytes:
    request = SaslAuthenticateRequest(f"\0{user}\0{USERS[user]}".encode())
    return request_frame(ApiKey.SASL_AUTHENTICATE, version, request)[4:]


def answer(reply: Reply, version: int = 2) -> Any:
    return decode_response(APIS[ApiKey.SASL_AUTHENTICATE], version, reply.frame[4:])[1]


def logged_in(authentication: Authentication) -> Authentication:
    authentication.receive(PLAIN)
    authentication.receive(token("alice"))
    return authentication


class Reluctant:
    """A mechanism that tells of its failure inside its exchange."""

    identity: Identity | None = None

    def evaluate(self, token: bytes) -> bytes:
        raise AuthenticationFailed("refused", "because", b"alas")


def test_a_failure_inside_the_exchange_is_logged_once_and_ends_with_the_next_token(
    clock: Clock,
) -> None:
    login = Login(
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        DefaultPrincipalBuilder(str, str),
        {"PLAIN": Reluctant},
    )
    authentication = Authentication(login, "127.0.0.1", BEFORE_LOGIN, clock)
    authentication.begin(None)
    authentication.receive(PLAIN)
    first = authentication.receive(token("alice"))
    assert (answer(first).error_code, answer(first).auth_bytes) == (0, b"alas")
    assert (first.failure, first.closes) == ("because", False)
    second = authentication.receive(token("alice"))
    assert (answer(second).error_code, answer(second).error_message) == (58, "refused")
    assert (second.failure, second.closes) == (None, True)
    assert authentication.session is None


def test_a_client_is_told_how_long_its_session_is_good(authentication: Authentication) -> None:
    authentication.receive(PLAIN)
    told = answer(authentication.receive(token("alice")))
    assert (told.error_code, told.session_lifetime_ms) == (0, 60_000)
    assert not authentication.is_at_work
    assert authentication.may_expire


def test_a_session_ends_unless_it_is_authenticated_again(
    authentication: Authentication, clock: Clock
) -> None:
    logged_in(authentication)
    first = authentication.session
    clock.now += 59
    assert not authentication.is_expired
    assert authentication.begins_again(PLAIN)
    assert authentication.is_at_work
    authentication.receive(PLAIN)
    told = answer(authentication.receive(token("alice")))
    assert (told.error_code, told.session_lifetime_ms) == (0, 60_000)
    assert authentication.session == first
    assert authentication.session is not None
    assert first is not None
    assert authentication.session.connection is first.connection
    clock.now += 59
    assert not authentication.is_expired
    clock.now += 2
    assert authentication.is_expired


def test_a_session_that_has_ended_may_be_authenticated_again(
    authentication: Authentication, clock: Clock
) -> None:
    logged_in(authentication)
    clock.now += 600
    assert authentication.begins_again(PLAIN)
    authentication.receive(PLAIN)
    authentication.receive(token("alice"))
    assert not authentication.is_expired


def test_it_does_not_begin_again_within_a_second_nor_with_another_request(
    authentication: Authentication, clock: Clock
) -> None:
    logged_in(authentication)
    clock.now += 0.9
    assert not authentication.begins_again(PLAIN)
    clock.now += 0.1
    assert not authentication.begins_again(token("alice"))
    assert authentication.begins_again(PLAIN)


def test_nobody_becomes_somebody_else(authentication: Authentication, clock: Clock) -> None:
    logged_in(authentication)
    clock.now += 10
    assert authentication.begins_again(PLAIN)
    authentication.receive(PLAIN)
    reply = authentication.receive(token("bob"))
    assert answer(reply).error_code == 58
    assert "Cannot change principals during re-authentication" in answer(reply).error_message
    assert reply.failure
    assert authentication.session is not None
    assert authentication.session.principals == ("User:alice",)


def test_the_mechanism_stays_the_same(authentication: Authentication, clock: Clock) -> None:
    logged_in(authentication)
    clock.now += 10
    assert authentication.begins_again(OTHER)
    assert authentication.receive(OTHER).failure is None
    reply = authentication.receive(token("alice"))
    assert answer(reply).error_code == 58
    assert reply.failure is not None
    assert "is not the PLAIN" in reply.failure


def test_a_session_that_does_not_end_never_begins_again(
    authentication: Authentication, clock: Clock
) -> None:
    authentication.receive(OTHER)
    told = answer(authentication.receive(token("alice", 1)), 1)
    assert told.session_lifetime_ms == 0
    clock.now += 1e9
    assert not authentication.may_expire
    assert not authentication.begins_again(OTHER)
    assert not authentication.is_expired


class Bearer:
    """A mechanism whose tokens are the name of the user and its groups, with blanks between."""

    identity: Identity | None = None

    def evaluate(self, token: bytes) -> bytes:
        name, *groups = token.decode().split()
        self.identity = Identity(name, groups=tuple(groups))
        return b""


def test_who_authenticates_again_with_other_groups_has_those_from_then_on(clock: Clock) -> None:
    now = Groups([("staff", "User:alice")])
    login = Login(
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        DefaultPrincipalBuilder(str, str),
        {"PLAIN": Bearer},
        {"PLAIN": 60_000},
        lambda: now,
    )
    authentication = Authentication(login, "127.0.0.1", BEFORE_LOGIN, clock)
    assert not authentication.regroup()
    authentication.begin(None)
    for groups, principals in [
        (b" Group:a", ("User:alice", "Group:a", "Group:staff")),
        (b" Group:b", ("User:alice", "Group:b", "Group:staff")),
        (b"", ("User:alice", "Group:staff")),
    ]:
        assert authentication.is_at_work or authentication.begins_again(PLAIN)
        authentication.receive(PLAIN)
        request = SaslAuthenticateRequest(b"alice" + groups)
        told = answer(authentication.receive(request_frame(36, 2, request)[4:]))
        assert told.error_code == 0
        assert authentication.session is not None
        assert authentication.session.principals == principals
        clock.now += 10
    assert not authentication.regroup()
    now = Groups()
    before = authentication.session
    assert authentication.regroup()
    assert authentication.session is not None
    assert before is not None
    assert authentication.session.connection is before.connection
    assert authentication.session.principals == ("User:alice",)
