"""Delegation tokens on the wire: who may have them, see them and log in with them, for how long."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import ALL_ACLS, Client
from tests.support.delegation_tokens import (
    KEY,
    TOKENS,
    Users,
    create,
    describe,
    described,
    expire,
    ids,
    renew,
)
from tests.support.process import wait_for
from tests.support.scram import ScramClient

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DENIED = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
HOUR = 3_600_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), TOKENS)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture
def users(broker: Broker) -> Iterator[Users]:
    users = Users(broker)
    yield users
    for token in described(users["admin"]):
        expire(users[token.principal_name], token)
    users.close()


@pytest.mark.parametrize("version", range(4))
def test_a_token_tells_whose_it_is_and_how_long_it_is_good(users: Users, version: int) -> None:
    token = create(users["alice"], "bob", "carol", lifetime=HOUR, version=version)
    assert token.error_code == 0
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert token.max_timestamp_ms - token.issue_timestamp_ms == HOUR
    assert token.expiry_timestamp_ms == token.max_timestamp_ms
    assert token.hmac == hmac.digest(KEY.encode(), token.token_id.encode(), "sha512")
    [shown] = describe(users["alice"], version=version).tokens
    assert [(each.principal_type, each.principal_name) for each in shown.renewers] == [
        ("User", "bob"),
        ("User", "carol"),
    ]
    assert (shown.principal_name, shown.token_id, shown.hmac, shown.issue_timestamp) == (
        "alice",
        token.token_id,
        token.hmac,
        token.issue_timestamp_ms,
    )
    requester = "alice" if version == 3 else ""
    assert token.token_requester_principal_name == requester
    assert shown.token_requester_principal_name == requester


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_logs_in_with_a_token_may_have_no_tokens(users: Users, mechanism: str) -> None:
    token = create(users["admin"], owner="alice")
    assert token.token_requester_principal_name == "admin"
    client, answer = users.with_token(token, mechanism)
    assert answer.error_code == 0
    assert 0 < answer.session_lifetime_ms <= 24 * HOUR
    refused = create(client)
    assert (refused.error_code, refused.issue_timestamp_ms) == (NOT_ALLOWED, -1)
    for change in (renew(client, token), expire(client, token)):
        assert (change.error_code, change.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
    assert (describe(client).error_code, describe(client).tokens) == (NOT_ALLOWED, [])


def test_who_logs_in_with_a_token_has_the_rights_of_its_owner(users: Users) -> None:
    client, _ = users.with_token(create(users["alice"]))
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == 31
    describe_cluster = AclCreation(4, "kafka-cluster", 3, "User:alice", "*", 8, 3)
    assert users["admin"].create(describe_cluster) == [0]
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == 0


def test_the_password_of_a_token_is_its_hmac_and_nothing_else(users: Users) -> None:
    token, other = create(users["alice"]), create(users["alice"])
    for changed in (
        {"hmac": other.hmac},
        {"hmac": b""},
        {"token_id": "nothing"},
        {"token_id": "alice"},
        {"hmac": hashlib.sha512(token.hmac).digest()},
    ):
        wrong = type(token)(
            **{name: getattr(token, name) for name in ("token_id", "hmac")} | changed
        )
        _, answer = users.with_token(wrong)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "invalid credentials" in answer.error_message


def test_a_token_is_no_user_without_the_extension(users: Users, broker: Broker) -> None:
    token = create(users["alice"])
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        answer = client.login_scram(token.token_id, b64encode(token.hmac).decode())
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_over_plaintext_there_are_no_tokens(broker: Broker, users: Users) -> None:
    token = create(users["alice"])
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert create(client).error_code == NOT_ALLOWED
        assert renew(client, token).error_code == NOT_ALLOWED
        assert expire(client, token).error_code == NOT_ALLOWED
        assert describe(client).error_code == NOT_ALLOWED


def test_a_token_for_somebody_else_needs_the_right_to_create_it(users: Users) -> None:
    refused = create(users["bob"], owner="carol")
    assert (refused.error_code, refused.principal_name) == (DENIED, "carol")
    assert refused.token_id == ""
    assert create(users["bob"], owner="bob").error_code == 0
    create_tokens = AclCreation(7, "User:carol", 3, "User:bob", "*", 13, 3)
    assert users["admin"].create(create_tokens) == [0]
    token = create(users["bob"], owner="carol")
    assert (token.error_code, token.principal_name) == (0, "carol")
    assert ids(users["carol"]) == {token.token_id}
    # Who asked for a token sees it, but is neither its owner nor a renewer.
    assert token.token_id in ids(users["bob"])
    assert renew(users["bob"], token).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(users["bob"], token).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_renewers_are_users(users: Users) -> None:
    refused = create(users["alice"], "staff", renewer_type="Group")
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert ids(users["alice"]) == set()


def test_tokens_of_others_are_seen_with_a_right_to_them_or_to_their_owners(users: Users) -> None:
    alices = create(users["alice"], "bob").token_id
    bobs = create(users["bob"]).token_id
    carols = create(users["carol"]).token_id
    everything = {alices, bobs, carols}
    assert ids(users["admin"]) == everything
    assert ids(users["admin"], ["alice", "carol"]) == {alices, carols}
    assert ids(users["admin"], ["nobody"]) == ids(users["admin"], []) == set()
    assert ids(users["alice"]) == {alices}
    # Bob renews alice's token, so it is among his too.
    assert ids(users["bob"]) == ids(users["admin"], ["bob"]) == {alices, bobs}
    assert ids(users["bob"], ["alice"]) == {alices}
    assert ids(users["carol"]) == {carols}
    to_token = AclCreation(6, alices, 3, "User:carol", "*", 8, 3)
    assert users["admin"].create(to_token) == [0]
    assert ids(users["carol"]) == {alices, carols}
    to_owner = AclCreation(7, "User:bob", 3, "User:carol", "*", 14, 3)
    assert users["admin"].create(to_owner) == [0]
    assert ids(users["carol"]) == everything
    assert ids(users["carol"], ["alice"]) == {alices}


def test_owner_and_renewers_renew_and_expire(users: Users) -> None:
    token = create(users["alice"], "bob", lifetime=HOUR)
    assert renew(users["bob"], token).expiry_timestamp_ms == token.max_timestamp_ms
    sooner = expire(users["bob"], token, 1_000)
    assert sooner.error_code == 0
    assert sooner.expiry_timestamp_ms < token.expiry_timestamp_ms
    [shown] = described(users["alice"])
    assert shown.expiry_timestamp == sooner.expiry_timestamp_ms
    for change in (renew(users["carol"], token), expire(users["carol"], token)):
        assert change.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert change.expiry_timestamp_ms == 0
    assert expire(users["alice"], token).error_code == 0
    assert described(users["alice"]) == []
    for change in (renew(users["alice"], token), expire(users["alice"], token)):
        assert change.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_who_is_logged_in_when_a_token_ends_stays_until_its_time(users: Users) -> None:
    token = create(users["alice"])
    client, answer = users.with_token(token)
    assert answer.error_code == 0
    assert expire(users["alice"], token).error_code == 0
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code in (0, 31)
    assert users.with_token(token)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_session_ends_with_its_token_unless_it_was_renewed(users: Users) -> None:
    token = create(users["alice"])
    assert expire(users["alice"], token, 1_500).error_code == 0
    client, answer = users.with_token(token)
    assert 0 < answer.session_lifetime_ms <= 1_500
    wait_for("the end", lambda: ended(client) or None, 20)
    # A session is told its end in milliseconds, and so may end one before its token.
    refused = wait_for("the token's", lambda: users.with_token(token)[1].error_code or None, 20)
    assert refused == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert renew(users["alice"], token).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


def ended(client: Client) -> bool:
    try:
        client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    except ConnectionError:
        return True
    return False


def test_a_session_goes_on_with_a_token_that_was_renewed(users: Users) -> None:
    token = create(users["alice"], lifetime=HOUR)
    assert expire(users["alice"], token, 60_000).error_code == 0
    client, answer = users.with_token(token)
    assert answer.session_lifetime_ms <= 60_000
    assert renew(users["alice"], token).error_code == 0
    scram = ScramClient(
        "SCRAM-SHA-512",
        token.token_id,
        b64encode(token.hmac).decode(),
        extensions=",tokenauth=true",
    )
    handshake = SaslHandshakeRequest("SCRAM-SHA-512")

    def begins_again() -> Any:
        answer = client.ask(ApiKey.SASL_HANDSHAKE, 1, handshake)
        return answer if answer.error_code == 0 else None

    wait_for("a second authentication", begins_again, 20)
    final = scram.final(client.authenticate(scram.first()).auth_bytes)
    renewed = client.ask(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(final))
    assert renewed.error_code == 0
    assert renewed.session_lifetime_ms > 60_000


def test_neither_keys_nor_secrets_of_tokens_are_in_the_store_or_the_log(
    broker: Broker, users: Users
) -> None:
    token = create(users["alice"])
    assert users.with_token(token)[1].error_code == 0
    with closing(sqlite3.connect(broker.store)) as connection:
        kept = str(connection.execute("SELECT * FROM record").fetchall())
    assert token.token_id in kept
    for text in (kept, broker.log_text()):
        for secret in (KEY, b64encode(token.hmac).decode(), token.hmac.hex(), str(token.hmac)):
            assert secret not in text
