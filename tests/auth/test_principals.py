"""From what was proved to the principals of a session."""

from __future__ import annotations

from typing import Any

import pytest

from aclbroker.acl.groups import Groups
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.principals import (
    AuthenticationContext,
    DefaultPrincipalBuilder,
    PrincipalBuilder,
)
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity


def login(builder: PrincipalBuilder, protocol: str = "SASL_SSL", **reauth: int) -> Login:
    return Login("EXTERNAL", protocol, builder, {}, reauth)


class Builder:
    """Returns what it was made with, and keeps what it was given."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.seen: list[AuthenticationContext] = []

    def configure(self, properties: Any) -> None:
        pass

    def build(self, context: AuthenticationContext) -> Any:
        self.seen.append(context)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


DEFAULT = DefaultPrincipalBuilder(lambda der: f"CN={der.decode()}", lambda name: name.split("@")[0])


@pytest.mark.parametrize(
    ("protocol", "mechanism", "identity", "certificate", "principal"),
    [
        ("PLAINTEXT", None, None, None, "User:ANONYMOUS"),
        ("SSL", None, None, None, "User:ANONYMOUS"),
        ("SSL", None, None, b"alice", "User:CN=alice"),
        ("SASL_PLAINTEXT", "PLAIN", Identity("bob@EXAMPLE"), None, "User:bob@EXAMPLE"),
        ("SASL_SSL", "SCRAM-SHA-256", Identity("bob"), b"alice", "User:bob"),
        ("SASL_SSL", "GSSAPI", Identity("bob@EXAMPLE"), None, "User:bob"),
    ],
)
def test_the_default_principal_is_the_user_that_was_proved(
    protocol: str,
    mechanism: str | None,
    identity: Identity | None,
    certificate: bytes | None,
    principal: str,
) -> None:
    session = login(DEFAULT, protocol).session(
        "127.0.0.1", mechanism=mechanism, identity=identity, peer_certificate=certificate
    )
    assert session.principals == (principal,)
    assert (session.listener, session.security_protocol) == ("EXTERNAL", protocol)


def test_a_sasl_session_without_an_identity_is_nobody() -> None:
    with pytest.raises(AuthenticationFailed):
        login(DEFAULT).session("127.0.0.1")


def test_a_builder_is_told_all_that_is_known_and_may_name_groups() -> None:
    builder = Builder(["User:alice", "Group:staff"])
    identity = Identity("alice", claims={"groups": ["staff"]}, token_authenticated=True)
    session = login(builder).session(
        "10.0.0.1", mechanism="OAUTHBEARER", identity=identity, peer_certificate=b"der"
    )
    assert session.principals == ("User:alice", "Group:staff")
    assert session.token_authenticated
    assert builder.seen == [
        AuthenticationContext("SASL_SSL", "EXTERNAL", "10.0.0.1", "OAUTHBEARER", identity, b"der")
    ]


@pytest.mark.parametrize(
    "result",
    [RuntimeError("secret reason"), (), [], "alice", "User:", ":alice", ["User:a", "b"], [7], None],
)
def test_whatever_else_a_builder_does_refuses_the_client(result: Any) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        login(Builder(result)).session("127.0.0.1", identity=Identity("alice"))
    assert "secret reason" not in str(caught.value)
    assert "Builder" in caught.value.reason


def test_a_session_lasts_as_long_as_the_shorter_of_its_limits() -> None:
    way = login(DEFAULT, PLAIN=5_000)
    assert way.lifetime_ms("PLAIN", Identity("a")) == 5_000
    assert way.lifetime_ms("GSSAPI", Identity("a")) is None
    assert way.lifetime_ms("GSSAPI", Identity("a", expires_at=1.0)) == 0
    assert way.lifetime_ms("PLAIN", Identity("a", expires_at=1.0)) == 0
    assert way.lifetime_ms("PLAIN", Identity("a", expires_at=1e12)) == 5_000


GROUPS = Groups([("staff", "User:alice"), ("eu", "User:alice"), ("staff", "Role:dev")])


def grouped(builder: PrincipalBuilder) -> Login:
    return Login("EXTERNAL", "SASL_SSL", builder, groups=lambda: GROUPS)


def test_a_session_has_the_groups_of_its_principals_and_those_of_its_token_behind_its_own() -> None:
    identity = Identity("alice", groups=("Group:eu", "Group:claimed"))
    session = grouped(DEFAULT).session("::1", mechanism="OAUTHBEARER", identity=identity)
    assert session.principals == ("User:alice", "Group:claimed", "Group:eu", "Group:staff")
    assert (session.own, session.claimed) == (("User:alice",), ("Group:eu", "Group:claimed"))
    assert session.peer[0] == session.principals


def test_principals_of_a_builder_of_ones_own_have_groups_too() -> None:
    session = grouped(Builder(["User:bob", "Role:dev"])).session("::1", identity=Identity("bob"))
    assert session.principals == ("User:bob", "Role:dev", "Group:staff")


@pytest.mark.parametrize("name", ["Group:staff", "*", "alice\nGroup:staff"])
def test_no_name_of_a_user_is_that_of_a_group(name: str) -> None:
    session = grouped(DEFAULT).session("::1", mechanism="PLAIN", identity=Identity(name))
    assert session.principals == (f"User:{name}",)


def test_a_session_is_the_same_until_its_groups_change() -> None:
    now = GROUPS
    login = Login("EXTERNAL", "SASL_SSL", DEFAULT, groups=lambda: now)
    identity = Identity("alice", groups=("Group:claimed",))
    session = login.session("::1", mechanism="OAUTHBEARER", identity=identity)
    assert login.regrouped(session) is session
    now = Groups([("eu", "User:alice")])
    after = login.regrouped(session)
    assert after.principals == ("User:alice", "Group:claimed", "Group:eu")
    assert after.peer == (after.principals, "::1")
    now = GROUPS
    assert login.regrouped(after) == session
