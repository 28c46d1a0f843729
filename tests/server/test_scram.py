"""SCRAM on the wire: users in the store, logins with their passwords, and nothing for others."""

from __future__ import annotations

import hashlib
import sqlite3
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import framed
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import ALL_ACLS, Client
from tests.support.scram import ScramClient, attributes

SCRAM = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}
CODES = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
REFUSED = "due to invalid credentials with SASL mechanism SCRAM-SHA-256"


def upsertion(
    user: str, password: str, mechanism: str = "SCRAM-SHA-256", iterations: int = 4096
) -> ScramCredentialUpsertion:
    salt = b"1q2w3e4r5t6y7u8i9o0pazsxd"
    hash_name = mechanism.removeprefix("SCRAM-").replace("-", "")
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    return ScramCredentialUpsertion(user, CODES[mechanism], iterations, salt, salted)


def alter(
    broker: Broker, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> list[int]:
    """Change credentials as a super user."""
    deletions = [each for each in changes if isinstance(each, ScramCredentialDeletion)]
    upsertions = [each for each in changes if isinstance(each, ScramCredentialUpsertion)]
    request = AlterUserScramCredentialsRequest(deletions, upsertions)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        response = client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    return [result.error_code for result in response.results]


def described(broker: Broker, *users: str) -> dict[str, list[tuple[int, int]] | int]:
    """The mechanisms and iterations of users, or an error code."""
    request = DescribeUserScramCredentialsRequest([UserName(user) for user in users])
    with Client(broker.listeners["PLAINTEXT"]) as client:
        response = client.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
    return {
        result.user: result.error_code
        or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in response.results
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), SCRAM)
    broker.start()
    users = [
        upsertion("alice", "alice-scram"),
        upsertion("reader", "x"),
        upsertion("a,b=c", "pencil", "SCRAM-SHA-512", 8192),
    ]
    assert alter(broker, *users) == [0, 0, 0]
    yield broker
    broker.terminate()


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        yield client


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [("reader", "x", "SCRAM-SHA-256"), ("a,b=c", "pencil", "SCRAM-SHA-512")],
)
def test_who_logs_in_has_the_rights_of_the_users_principal(
    broker: Broker, client: Client, user: str, password: str, mechanism: str
) -> None:
    response = client.login_scram(user, password, mechanism)
    assert (response.error_code, response.session_lifetime_ms) == (0, 0)
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == 31
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        describe_cluster = AclCreation(4, "kafka-cluster", 3, f"User:{user}", "*", 8, 3)
        assert admin.create(describe_cluster) == [0]
    assert client.resource_names() == ["kafka-cluster"]


def test_users_of_plain_and_of_scram_are_not_the_same(client: Client) -> None:
    response = client.login_scram("admin", PASSWORDS["admin"])
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.is_closed()


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        ("alice", "alice-secret", "SCRAM-SHA-256"),
        ("alice", "", "SCRAM-SHA-256"),
        ("nobody", "alice-scram", "SCRAM-SHA-256"),
        ("Alice", "alice-scram", "SCRAM-SHA-256"),
        ("alice", "alice-scram", "SCRAM-SHA-512"),
        ("a,b=c", "pencil", "SCRAM-SHA-256"),
    ],
)
def test_who_does_not_get_in_is_told_the_same_at_the_same_point(
    client: Client, user: str, password: str, mechanism: str
) -> None:
    scram = ScramClient(mechanism, user, password)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))
    challenge = client.authenticate(scram.first())
    assert (challenge.error_code, challenge.error_message) == (0, "")
    refused = client.authenticate(scram.final(challenge.auth_bytes))
    assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        f"mechanism {mechanism}"
    )
    assert refused.auth_bytes == b""
    assert client.is_closed()


def challenge_of(broker: Broker, user: str) -> tuple[str, str]:
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
        answer = client.authenticate(ScramClient("SCRAM-SHA-256", user, "x").first())
        fields = attributes(answer.auth_bytes)
        return fields["s"], fields["i"]


def test_who_is_no_user_gets_a_users_challenge_and_the_same_each_time(broker: Broker) -> None:
    real, decoy, other = (challenge_of(broker, user) for user in ("alice", "nobody", "somebody"))
    assert challenge_of(broker, "nobody") == decoy != other
    assert decoy[1] == other[1] == real[1] == "4096"
    assert all(b64decode(salt).isalnum() for salt, _ in (real, decoy, other))


def test_a_login_that_was_overheard_is_good_for_nothing(broker: Broker) -> None:
    address = broker.listeners["SASL_PLAINTEXT"]
    scram = ScramClient("SCRAM-SHA-256", "alice", "alice-scram", nonce="chosen")
    handshake = SaslHandshakeRequest("SCRAM-SHA-256")
    with Client(address) as client, Client(address) as replaying:
        client.ask(ApiKey.SASL_HANDSHAKE, 1, handshake)
        final = scram.final(client.authenticate(scram.first()).auth_bytes)
        assert client.authenticate(final).error_code == 0
        replaying.ask(ApiKey.SASL_HANDSHAKE, 1, handshake)
        assert replaying.authenticate(scram.first()).error_code == 0
        refused = replaying.authenticate(final)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert REFUSED in refused.error_message
        assert replaying.is_closed()


@pytest.mark.parametrize(
    "first", [b"", b"\xff", b"n,,", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"n" * 100_000]
)
def test_a_message_that_is_none_ends_the_login(client: Client, first: bytes) -> None:
    client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
    response = client.authenticate(first)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert REFUSED in response.error_message
    assert client.is_closed()


def test_after_version_0_of_the_handshake_the_messages_come_bare(client: Client) -> None:
    client.ask(ApiKey.SASL_HANDSHAKE, 0, SaslHandshakeRequest("SCRAM-SHA-256"))
    scram = ScramClient("SCRAM-SHA-256", "alice", "alice-scram")
    client.send(framed(scram.first()))
    client.send(framed(scram.final(client.receive())))
    assert scram.is_server(client.receive())
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == 31


def test_a_request_before_the_last_message_is_refused_and_ends_the_connection(
    client: Client,
) -> None:
    client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
    client.authenticate(ScramClient("SCRAM-SHA-256", "alice", "alice-scram").first())
    assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed()


def test_credentials_are_described_without_keys_and_gone_once_deleted(broker: Broker) -> None:
    assert alter(
        broker, upsertion("bob", "x"), upsertion("carol", "x", "SCRAM-SHA-512", 16384)
    ) == [
        0,
        0,
    ]
    assert alter(broker, upsertion("bob", "x", "SCRAM-SHA-512")) == [0]
    assert described(broker, "bob", "carol", "nobody") == {
        "bob": [(1, 4096), (2, 4096)],
        "carol": [(2, 16384)],
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert described(broker).keys() == {"alice", "reader", "a,b=c", "bob", "carol"}
    assert alter(
        broker, ScramCredentialDeletion("bob", 1), ScramCredentialDeletion("carol", 2)
    ) == [
        0,
        0,
    ]
    assert described(broker, "bob", "carol") == {"bob": [(2, 4096)], "carol": 91}
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login_scram("bob", "x").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert alter(broker, ScramCredentialDeletion("bob", 2)) == [0]


def test_a_new_password_replaces_the_old_one_at_once(broker: Broker) -> None:
    codes = []
    for password in ("old", "new"):
        assert alter(broker, upsertion("dave", password)) == [0]
        for tried in ("old", "new"):
            with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
                codes.append(client.login_scram("dave", tried).error_code)
    assert codes == [0, 58, 58, 0]
    assert alter(broker, ScramCredentialDeletion("dave", 1)) == [0]


def test_users_without_rights_may_neither_change_nor_see_credentials(client: Client) -> None:
    client.login_scram("alice", "alice-scram")
    request = AlterUserScramCredentialsRequest([], [upsertion("alice", "x")])
    [result] = client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
    assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    asked = DescribeUserScramCredentialsRequest([UserName("alice")])
    response = client.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, asked)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert not any(result.credential_infos for result in response.results)


def test_no_password_and_no_key_is_in_the_log_or_the_store(broker: Broker) -> None:
    with closing(sqlite3.connect(broker.store)) as connection:
        kept = str(connection.execute("SELECT value FROM record").fetchall())
    assert "iterations" in kept
    salted = upsertion("alice", "alice-scram").salted_password
    for text in (kept, broker.log_text()):
        for secret in ("alice-scram", "pencil", salted.hex(), str(salted)[2:-1]):
            assert secret not in text


@pytest.mark.thorough
@pytest.mark.broker_process
def test_users_are_there_after_a_restart_and_after_kill_9(start_broker: StartBroker) -> None:
    broker = start_broker(SCRAM)
    decoy = challenge_of(broker, "nobody")
    ends: tuple[Callable[[], object], ...] = (broker.terminate, broker.kill)
    for number, end in enumerate(ends):
        assert alter(broker, upsertion(f"user-{number}", "x")) == [0]
        end()
        broker.start()
        assert described(broker).keys() == {f"user-{n}" for n in range(number + 1)}
        with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
            assert client.login_scram(f"user-{number}", "x").error_code == 0
        assert challenge_of(broker, "nobody") == decoy
    assert alter(broker, ScramCredentialDeletion("user-0", 1)) == [0]
    broker.kill()
    broker.start()
    assert described(broker).keys() == {"user-1"}


def test_a_store_that_cannot_be_written_is_an_error_and_then_works_again(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(SCRAM)
    with closing(sqlite3.connect(broker.store, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        assert alter(broker, upsertion("alice", "x")) == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert described(broker) == {}
        shell.execute("ROLLBACK")
    assert alter(broker, upsertion("alice", "x")) == [0]
    assert any(event["event"] == "credentials not changed" for event in broker.events())


AUTHORIZER_OF_ONES_OWN = """
from aclbroker.acl.authorizer import Decision, Rule, RuleKind

YES = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))

class Lenient:
    def configure(self, properties): pass
    async def start(self): pass
    async def close(self): pass
    def authorize(self, context, operation, resource_type, names): return [YES] * len(names)
"""


@pytest.mark.broker_process
@pytest.mark.parametrize("authorizer", ["", "own_authorizer:Lenient"])
def test_users_are_kept_where_the_authorizer_has_no_store(
    start_broker: StartBroker, authorizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_authorizer.py").write_text(AUTHORIZER_OF_ONES_OWN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    broker = start_broker(SCRAM | {"authorizer.class.name": authorizer})
    assert alter(broker, upsertion("alice", "x")) == [0]
    broker.restart()
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login_scram("alice", "x").error_code == 0


def test_nothing_is_kept_or_made_where_nothing_needs_a_store(start_broker: StartBroker) -> None:
    broker = start_broker({"authorizer.class.name": ""})
    assert alter(broker, upsertion("alice", "x")) == [ErrorCode.POLICY_VIOLATION]
    assert described(broker) == {}
    assert described(broker, "alice") == {"alice": ErrorCode.RESOURCE_NOT_FOUND}
    assert not broker.store.exists()
