"""The audit log of a running broker: changes as changes, denials with their reason, roll-ups."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import CREATE, DESCRIBE, PREFIXED, allow, deny
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.delegation_tokens import TOKENS, create, expire, renew
from tests.support.process import wait_for

LISTENER = "SASL_PLAINTEXT"


class Log:
    """A broker that audits into a file, and what is in it."""

    def __init__(
        self,
        start_broker: StartBroker,
        directory: Path,
        broker: Mapping[str, str] = MappingProxyType({}),
        /,
        **settings: str,
    ) -> None:
        self.path = directory / "audit.jsonl"
        found = {"file": str(self.path), **settings}
        audit = {f"aclbroker.audit.{name}": value for name, value in found.items()}
        self.broker: Broker = start_broker({**TOKENS, **audit, **broker})

    def client(self, user: str) -> Client:
        client = Client(self.broker.listeners[LISTENER])
        assert client.login(user, PASSWORDS[user]).error_code == 0
        return client

    def events(self, event: str) -> list[dict[str, Any]]:
        # The last line may be on its way.
        lines = self.path.read_text().split("\n")[:-1]
        found = map(json.loads, lines)
        return [each for each in found if each["event"] == event]


def metadata(*names: str) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(bytes(16), name) for name in names])


@pytest.fixture
def log(start_broker: StartBroker, tmp_path: Path) -> Log:
    return Log(start_broker, tmp_path)


def test_changes_of_acls_are_told_with_who_made_them_and_how_they_ended(log: Log):
    with log.client("admin") as client:
        nameless = AclCreation(2, "", 3, "User:carol", "*", 3, 3)
        client.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([topic_read("orders"), nameless]))
        every = DeleteAclsFilter(2, "orders", 3, None, None, 1, 1)
        unknown = DeleteAclsFilter(99, "orders", 3, None, None, 1, 1)
        client.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([every, unknown, every]))
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:carol",
        "host": "*",
        "operation": "READ",
        "permission_type": "ALLOW",
    }
    created, refused, deleted, failed = log.events("change")
    assert {key: created[key] for key in created.keys() - {"timestamp", "cluster_id"}} == {
        "level": "info",
        "event": "change",
        "node_id": 1,
        "listener": LISTENER,
        "principal": "User:admin",
        "host": "127.0.0.1",
        "api_name": "CreateAcls",
        "api_version": 3,
        "client_id": "test",
        "correlation_id": created["correlation_id"],
        "action": "CREATE_ACL",
        "acl": acl,
        "error": "NONE",
        "error_message": None,
    }
    assert (refused["error"], refused["acl"]["resource_name"]) == ("INVALID_REQUEST", "")
    assert "must not be empty" in refused["error_message"]
    assert (deleted["action"], deleted["acl"], deleted["error"]) == ("DELETE_ACL", acl, "NONE")
    assert (failed["acl_filter"]["resource_type"], failed["error"]) == (
        "UNKNOWN",
        "UNSUPPORTED_VERSION",
    )


def test_changes_of_users_are_told_without_their_secrets(log: Log):
    secret = b"a salted password...."
    with log.client("admin") as client:
        request = AlterUserScramCredentialsRequest(
            [ScramCredentialDeletion("nobody", 1), ScramCredentialDeletion("nobody else", 9)],
            [ScramCredentialUpsertion("carol", 1, 8192, b"some salt.", secret)],
        )
        client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    missing, unknown, made = log.events("change")
    assert (missing["action"], missing["user"], missing["error"]) == (
        "DELETE_SCRAM_CREDENTIAL",
        {"name": "nobody", "mechanism": "SCRAM-SHA-256"},
        "RESOURCE_NOT_FOUND",
    )
    assert (unknown["user"]["mechanism"], unknown["error"]) == (
        "unknown (9)",
        "UNSUPPORTED_SASL_MECHANISM",
    )
    assert (made["action"], made["user"], made["error"]) == (
        "UPSERT_SCRAM_CREDENTIAL",
        {"name": "carol", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        "NONE",
    )
    text = log.path.read_text()
    for each in (secret, b"some salt."):
        assert each.decode() not in text
        assert each.hex() not in text
        assert b64encode(each).decode() not in text


def test_changes_of_tokens_are_told_without_their_hmac(log: Log):
    with log.client("alice") as client:
        token = create(client)
        assert renew(client, token).error_code == 0
        assert expire(client, token).error_code == 0
        assert renew(client, token).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        refused = create(client, "carol", renewer_type="Group")
        assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    changes = log.events("change")
    assert [(each["action"], each["error"], each["token"]["token_id"]) for each in changes] == [
        ("CREATE_DELEGATION_TOKEN", "NONE", token.token_id),
        ("RENEW_DELEGATION_TOKEN", "NONE", token.token_id),
        ("EXPIRE_DELEGATION_TOKEN", "NONE", token.token_id),
        ("RENEW_DELEGATION_TOKEN", "DELEGATION_TOKEN_NOT_FOUND", None),
        ("CREATE_DELEGATION_TOKEN", "INVALID_PRINCIPAL_TYPE", None),
    ]
    assert {each["principal"] for each in changes} == {"User:alice"}
    assert set(changes[0]["token"]) == {
        *("token_id", "owner", "requester", "renewers", "renewers_count"),
        *("expiry_timestamp", "max_timestamp"),
    }
    assert changes[0]["token"]["owner"] == "User:alice"
    text = log.path.read_text()
    assert token.hmac.hex() not in text
    assert b64encode(token.hmac).decode() not in text


def test_a_token_that_is_removed_since_it_has_expired_is_told(
    start_broker: StartBroker, tmp_path: Path
):
    short = {
        "delegation.token.expiry.time.ms": "1",
        "delegation.token.expiry.check.interval.ms": "10",
    }
    log = Log(start_broker, tmp_path, short)
    with log.client("alice") as client:
        token = create(client)

    def removed() -> list[dict[str, Any]] | None:
        return [each for each in log.events("change") if "by" in each] or None

    [change] = wait_for("the removal", removed, 20)
    assert (change["by"], change["action"], change["error"]) == (
        "broker",
        "REMOVE_EXPIRED_DELEGATION_TOKEN",
        "NONE",
    )
    assert (change["token"]["token_id"], change["token"]["owner"]) == (token.token_id, "User:alice")
    assert not change.keys() & {"principal", "host", "api_name", "client_id"}


def test_a_token_of_many_renewers_makes_no_long_line(log: Log):
    with log.client("alice") as client:
        create(client, *(f"renewer-{number}" for number in range(1000)))
    [change] = log.events("change")
    assert change["token"]["renewers_count"] == 1000
    assert change["token"]["renewers"] == [f"User:renewer-{number}" for number in range(10)]


def test_each_of_many_acls_that_go_together_is_told(log: Log):
    names = {f"topic-{number}" for number in range(1500)}
    with log.client("admin") as client:
        creations = [topic_read(name) for name in sorted(names)]
        client.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations))
        every = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
        client.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([every, every]))

    def told(action: str) -> list[str]:
        found = (each for each in log.events("change") if each["action"] == action)
        return [each["acl"]["resource_name"] for each in found]

    wait_for("all lines", lambda: len(told("DELETE_ACL")) == 1500 or None, seconds=30)
    assert set(told("CREATE_ACL")) == set(told("DELETE_ACL")) == names
    assert len(told("CREATE_ACL")) == 1500


def test_a_denial_says_which_acl_nearly_allowed_it(log: Log):
    elsewhere = AclCreation(2, "orders", 3, "User:alice", "10.9.9.9", 3, 3)
    with log.client("admin") as client:
        client.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([elsewhere]))
    with log.client("alice") as client:
        client.ask(ApiKey.METADATA, 12, metadata("orders", "pay"))
    orders, pay = log.events("authorization")
    assert [(acl["host"], acl["operation"]) for acl in orders["nearest"]] == [("10.9.9.9", "READ")]
    assert pay["nearest"] == []


def test_a_denial_says_the_same_as_explain_does_of_its_record(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    acls = [
        allow(host="10.9.9.9"),
        allow("User:*", CREATE),
        deny("User:*", DESCRIBE, "pay", pattern_type=PREFIXED),
        allow(name="pay-x"),
        deny(operation=DESCRIBE, name="pay.eu"),
    ]
    with log.client("admin") as client:
        client.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([AclCreation(*acl) for acl in acls]))
    with log.client("alice") as client:
        for name in ("orders", "pay-x", "pay.eu", "other"):
            client.ask(ApiKey.METADATA, 12, metadata(name))
    lines = [
        line for line in log.path.read_text().splitlines() if '"event":"authorization"' in line
    ]
    policy = tmp_path / "policy.yaml"
    write_policy(Policy(acls), policy)
    near = []
    for line in lines:
        record = json.loads(line)
        words = ("explain", "--line", line, "--acls", str(policy), "--output", "json")
        command = parse_arguments(words)
        assert isinstance(command, QuestionCommand)
        assert command.run() == 0
        [found] = json.loads(capsys.readouterr().out)
        assert (found["decision"], found["rule"]) == ("denied", record["rule"])
        assert found["smallest_change"] == record["smallest_change"]
        near.append([each["why"] for each in record.get("nearest", [])])
        assert [each.rpartition(": ")[2] for each in found["near_misses"]] == near[-1]
    assert near == [["it is for host 10.9.9.9", "it allows CREATE"], [], [], []]


def test_an_idempotent_producer_that_may_not_write_is_told_what_would_do_in_two_lines(log: Log):
    elsewhere = AclCreation(2, "orders", 3, "User:alice", "10.9.9.9", 4, 3)
    with log.client("admin") as client:
        client.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([elsewhere]))
    with log.client("alice") as client:
        for _ in range(26):
            answer = client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000))
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    log.broker.terminate()
    first, rest = log.events("authorization")
    assert (first["operation"], first["resource_name"]) == ("WRITE", "(any)")
    assert first["would_do"] == "WRITE on any one topic, or IDEMPOTENT_WRITE on the cluster"
    [near] = first["nearest"]
    assert (near["resource_name"], near["host"]) == ("orders", "10.9.9.9")
    assert (rest["count"], rest["would_do"]) == (25, first["would_do"])


def test_a_topic_that_is_called_as_any_is_not_taken_for_any(log: Log):
    with log.client("alice") as client:
        client.ask(ApiKey.METADATA, 12, metadata("(any)"))
    [denied] = log.events("authorization")
    assert (denied["resource_name"], "would_do" in denied) == ("(any)", False)


def test_repeats_are_one_line_that_is_written_when_the_log_is_opened_anew(log: Log):
    moved = log.path.with_name("moved")
    with log.client("alice") as client:
        for _ in range(20):
            client.ask(ApiKey.METADATA, 12, metadata("orders"))
        log.path.rename(moved)
        log.broker.hang_up()
        wait_for("a new file", lambda: log.path.exists() or None, seconds=30)
        for _ in range(5):
            client.ask(ApiKey.METADATA, 12, metadata("orders"))
    log.broker.terminate()
    for path, repeats in ((moved, 19), (log.path, 4)):
        first, rest = map(json.loads, path.read_text().splitlines())
        assert ("count" in first, rest["count"]) == (False, repeats)


def test_one_client_cannot_fill_the_disk(start_broker: StartBroker, tmp_path: Path):
    log = Log(start_broker, tmp_path, **{"max.bytes.per.second": "20000"})
    number = 20_000
    with log.client("alice") as client:
        for start in range(0, number, 1000):
            names = (f"topic-{each}" for each in range(start, start + 1000))
            client.ask(ApiKey.METADATA, 12, metadata(*names))
        written = log.path.stat().st_size
    log.broker.terminate()
    assert written < 20 * 20_000  # twenty seconds, if the machine is slow; without a limit 9 MB
    told = log.events("authorization")
    left_out = log.events("left_out")
    assert (
        sum(each.get("count", 1) for each in told) + sum(each["denied"] for each in left_out)
        == number
    )
