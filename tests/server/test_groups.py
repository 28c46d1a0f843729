"""Groups of a file: ACLs of a group are those of its members, however they have logged in."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import StartBroker
from tests.server.test_scram import alter, upsertion
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.client import ALL_ACLS, Client, topic_read
from tests.support.delegation_tokens import TOKENS, create, expire, ids, renew
from tests.support.process import wait_for
from tests.support.tls import LISTENERS, client_tls, pem_stores

ORDERS = MetadataRequest([MetadataRequestTopic(name="orders")])
ALLOWED, DENIED = 0, 29
STAFF = {"staff": ["User:alice", "User:bob"]}
RELOADED = "groups reloaded"
REFUSED = "groups not reloaded; the old ones stay"


def deny_read(name: str, principal: str) -> AclCreation:
    return AclCreation(2, name, 3, principal, "*", 3, 2)


class Grouped:
    """A broker with a groups file, and clients of it."""

    def __init__(self, start_broker: StartBroker, directory: Path) -> None:
        self._start = start_broker
        self.file = directory / "groups.yaml"
        self.directory = directory
        self.broker: Broker
        self._clients = ExitStack()

    def start(
        self, groups: Mapping[str, Sequence[str]], overrides: Mapping[str, str] | None = None
    ) -> Broker:
        self.write(groups)
        settings = {
            "aclbroker.groups.file": str(self.file),
            "aclbroker.catalog.topics": "orders:1",
            "aclbroker.audit.file": str(self.directory / "audit.jsonl"),
            "aclbroker.audit.level": "all",
            "aclbroker.audit.rollup.seconds": "0",
        }
        self.broker = self._start({**settings, **(overrides or {})})
        return self.broker

    def write(self, groups: Mapping[str, Sequence[str]] | str) -> None:
        """Replace the file at once."""
        text = groups if isinstance(groups, str) else json.dumps({"version": 1, "groups": groups})
        unfinished = self.file.with_suffix(".new")
        unfinished.write_text(text)
        unfinished.rename(self.file)

    def renew(self, groups: Mapping[str, Sequence[str]] | str, event: str = RELOADED) -> Any:
        """Replace the file, tell the broker, and return what it then says."""
        before = len(self.said(event))
        self.write(groups)
        self.broker.hang_up()
        return self.wait_for(event, before + 1)

    def said(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.broker.events() if each["event"] == event]

    def wait_for(self, event: str, count: int) -> dict[str, Any]:
        wait_for(event, lambda: len(self.said(event)) >= count or None, 30)
        return self.said(event)[-1]

    def client(self, user: str | None, listener: str = "SASL_PLAINTEXT", **options: Any) -> Client:
        """A connection, on which a user has logged in with PLAIN."""
        client = self._clients.enter_context(Client(self.broker.listeners[listener], **options))
        if user is not None:
            assert client.login(user, PASSWORDS[user]).error_code == 0
        return client

    def allow(self, *creations: AclCreation) -> None:
        assert self.client(None, "PLAINTEXT").create(*creations) == [0] * len(creations)

    def audited(self, event: str = "authorization") -> list[dict[str, Any]]:
        lines = (self.directory / "audit.jsonl").read_text().splitlines()
        return [each for each in map(json.loads, lines) if each["event"] == event]

    def close(self) -> None:
        self._clients.close()


@pytest.fixture
def grouped(start_broker: StartBroker, tmp_path: Path):
    grouped = Grouped(start_broker, tmp_path)
    yield grouped
    grouped.close()


def code(client: Client) -> int:
    """What a session is told of the topic orders."""
    [topic] = client.ask(ApiKey.METADATA, 12, ORDERS).topics
    return int(topic.error_code)


def test_an_acl_of_a_group_is_one_of_its_members_and_a_denial_of_one_wins(grouped: Grouped) -> None:
    grouped.start({**STAFF, "out": ["User:bob"]})
    alice, bob = grouped.client("alice"), grouped.client("bob")
    assert (code(alice), code(bob)) == (DENIED, DENIED)
    grouped.allow(topic_read("orders", "Group:staff"), topic_read("orders", "User:bob"))
    assert (code(alice), code(bob)) == (ALLOWED, ALLOWED)
    grouped.allow(deny_read("orders", "Group:out"), AclCreation(2, "*", 3, "Group:out", "*", 8, 2))
    assert (code(alice), code(bob)) == (ALLOWED, DENIED)


def test_records_name_the_user_and_the_acl_of_the_group_that_decided(grouped: Grouped) -> None:
    grouped.start(STAFF)
    grouped.allow(topic_read("other", "Group:staff"), topic_read("orders", "Group:staff"))
    alice = grouped.client("alice")
    assert code(alice) == ALLOWED
    other = MetadataRequest([MetadataRequestTopic(name="othello")])
    alice.ask(ApiKey.METADATA, 12, other)
    allowed, denied = (each for each in grouped.audited() if each["principal"] == "User:alice")
    assert allowed["principals"] == denied["principals"] == ["User:alice", "Group:staff"]
    assert (allowed["rule"], allowed["acl"]["principal"]) == ("MatchingAcl", "Group:staff")
    assert (denied["rule"], denied["nearest"]) == ("DefaultDeny", [])


def test_an_acl_of_a_group_that_nearly_allows_is_told(grouped: Grouped) -> None:
    grouped.start(STAFF)
    grouped.allow(AclCreation(2, "orders", 3, "Group:staff", "10.0.0.1", 3, 3))
    assert code(grouped.client("alice")) == DENIED
    [denied] = [each for each in grouped.audited() if each["principal"] == "User:alice"]
    assert [each["principal"] for each in denied["nearest"]] == ["Group:staff"]


def test_kafkas_text_form_names_the_user_and_the_acl_of_the_group(grouped: Grouped) -> None:
    grouped.start(STAFF, {"aclbroker.audit.format": "kafka"})
    grouped.allow(topic_read("orders", "Group:staff"))
    assert code(grouped.client("alice")) == ALLOWED
    text = (grouped.directory / "audit.jsonl").read_text()
    [line] = [each for each in text.splitlines() if "Principal = User:alice" in each]
    assert "principal=Group:staff" in line


def test_a_group_of_super_users_may_do_everything(grouped: Grouped) -> None:
    grouped.start({"admins": ["User:alice"]}, {"super.users": "User:ANONYMOUS;Group:admins"})
    alice, bob = grouped.client("alice"), grouped.client("bob")
    assert alice.create(topic_read("orders")) == [0]
    assert bob.create(topic_read("orders")) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    grouped.renew({"admins": ["User:bob"]})
    assert alice.create(topic_read("orders")) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert bob.create(topic_read("orders")) == [0]


def test_a_change_of_the_file_counts_for_sessions_that_are_open_and_leaves_nothing_behind(
    grouped: Grouped,
) -> None:
    assert grouped.start(STAFF)
    grouped.allow(topic_read("orders", "Group:staff"))
    alice, bob, third = grouped.client("alice"), grouped.client("bob"), grouped.client("bob")
    assert [code(each) for each in (alice, bob, third)] == [ALLOWED] * 3
    told = grouped.renew({"staff": ["User:alice"], "empty": []})
    assert (told["groups"], told["principals"], told["sessions_changed"]) == (1, 1, 2)
    assert [code(each) for each in (alice, bob, third)] == [ALLOWED, DENIED, DENIED]
    told = grouped.renew(STAFF)
    assert [code(each) for each in (alice, bob, third)] == [ALLOWED] * 3
    # What has not changed is not touched.
    assert grouped.renew(STAFF)["sessions_changed"] == 0


def test_a_change_of_the_file_is_noticed_without_a_signal(grouped: Grouped) -> None:
    grouped.start(STAFF)
    grouped.allow(topic_read("orders", "Group:staff"))
    bob = grouped.client("bob")
    assert code(bob) == ALLOWED
    grouped.write({})
    assert grouped.wait_for(RELOADED, 1)["sessions_changed"] == 1
    assert code(bob) == DENIED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version: 1\ngroups: {a: [bob]}\n", "groups.yaml: line 2, column 14: a member is written"),
        ("version: 1\ngroups: {a: [], a: []}\n", "line 2, column 17: 'a' stands twice"),
        ("", "the file is empty"),
        ("\0", "groups.yaml: "),
    ],
)
def test_a_file_that_is_not_valid_stops_the_start_and_changes_nothing_later(
    grouped: Grouped, text: str, reason: str
) -> None:
    grouped.start(STAFF)
    grouped.allow(topic_read("orders", "Group:staff"))
    bob = grouped.client("bob")
    assert reason in grouped.renew(text, REFUSED)["reason"]
    assert code(bob) == ALLOWED
    assert code(grouped.client("bob")) == ALLOWED
    grouped.broker.terminate()
    with pytest.raises(RuntimeError, match=r"aclbroker\.groups\.file"):
        grouped.broker.start()
    [event] = grouped.said("cannot start")
    assert reason in event["reason"]


def test_a_file_that_is_gone_keeps_the_groups(grouped: Grouped) -> None:
    grouped.start(STAFF)
    grouped.allow(topic_read("orders", "Group:staff"))
    bob = grouped.client("bob")
    grouped.file.unlink()
    grouped.broker.hang_up()
    assert "cannot be read: No such file" in grouped.wait_for(REFUSED, 1)["reason"]
    assert code(bob) == ALLOWED
    grouped.renew({})
    assert code(bob) == DENIED


def test_users_of_scram_and_bearers_of_their_delegation_tokens_have_their_groups(
    grouped: Grouped,
) -> None:
    broker = grouped.start({"staff": ["User:carol"]}, TOKENS)
    assert alter(broker, upsertion("carol", "secret")) == [0]
    grouped.allow(topic_read("orders", "Group:staff"))
    carol, bearer = grouped.client(None), grouped.client(None)
    assert carol.login_scram("carol", "secret").error_code == 0
    token = create(carol)
    password = b64encode(token.hmac).decode()
    login = bearer.login_scram(token.token_id, password, "SCRAM-SHA-512", ",tokenauth=true")
    assert login.error_code == 0
    assert (code(carol), code(bearer)) == (ALLOWED, ALLOWED)
    # The session of a token ends with it, so that it is kept in another way than a lasting one.
    assert grouped.renew({})["sessions_changed"] == 2
    assert (code(carol), code(bearer)) == (DENIED, DENIED)


def test_a_delegation_token_is_its_owners_and_nobodys_who_is_in_a_group_with_them(
    grouped: Grouped,
) -> None:
    grouped.start(STAFF, TOKENS)
    alice, bob = grouped.client("alice"), grouped.client("bob")
    token = create(alice, "carol")
    assert token.error_code == 0
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert (renew(bob, token).error_code, expire(bob, token).error_code) == (mismatch, mismatch)
    assert (ids(alice), ids(bob)) == ({token.token_id}, set())
    # A group is no renewer, and another owner than its members.
    refused = create(alice, "staff", renewer_type="Group")
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    of_staff = CreateDelegationTokenRequest("Group", "staff", [], -1)
    refused = alice.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, of_staff)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    admin = grouped.client("admin")
    staffs = admin.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, of_staff)
    assert staffs.error_code == 0
    assert (renew(bob, staffs).error_code, expire(bob, staffs).error_code) == (mismatch, mismatch)
    assert (ids(alice), ids(bob)) == ({token.token_id}, set())
    assert expire(alice, token).error_code == 0


def test_certificates_and_anonymous_sessions_have_the_groups_of_their_principals(
    grouped: Grouped,
) -> None:
    authority = Authority()
    stores = pem_stores(grouped.directory, authority.issue(), authority)
    settings = {**LISTENERS, **stores, "listener.name.ssl.ssl.client.auth": "requested"}
    grouped.start({"staff": ["User:CN=alice,OU=Shop"], "guests": ["User:ANONYMOUS"]}, settings)
    grouped.allow(topic_read("orders", "Group:staff"))
    shown = client_tls(authority, authority.issue("CN=alice,OU=Shop"))
    alice = grouped.client(None, "SSL", tls=shown)
    assert code(alice) == ALLOWED
    grouped.renew({})
    assert code(alice) == DENIED
    grouped.renew({"staff": ["User:CN=alice,OU=Shop"], "guests": ["User:ANONYMOUS"]})
    assert code(alice) == ALLOWED
    grouped.allow(topic_read("orders", "Group:guests"))
    nobody = grouped.client(None, "SSL", tls=client_tls(authority))
    assert code(nobody) == ALLOWED


def test_a_user_whose_name_looks_like_a_group_is_a_user(grouped: Grouped) -> None:
    broker = grouped.start({}, TOKENS)
    assert alter(broker, upsertion("Group:staff", "secret")) == [0]
    grouped.allow(topic_read("orders", "Group:staff"))
    client = grouped.client(None)
    assert client.login_scram("Group:staff", "secret").error_code == 0
    assert code(client) == DENIED
    grouped.allow(topic_read("orders", "User:Group:staff"))
    assert code(client) == ALLOWED


def test_lists_of_acls_filter_a_group_by_its_exact_principal(grouped: Grouped) -> None:
    grouped.start(STAFF, {"super.users": "User:ANONYMOUS;Group:staff"})
    grouped.allow(topic_read("a", "Group:staff"), topic_read("b", "User:alice"))
    alice = grouped.client("alice")

    def listed(principal: str) -> list[str]:
        request = DescribeAclsRequest(1, None, 1, principal, None, 1, 1)
        return [each.resource_name for each in alice.ask(29, 3, request).resources]

    assert (listed("Group:staff"), listed("User:alice")) == (["a"], ["b"])
    assert listed("Group:Staff") == []
    assert len(alice.ask(29, 3, ALL_ACLS).resources) == 2


def test_authorized_operations_are_those_of_the_groups_too(grouped: Grouped) -> None:
    grouped.start(STAFF)
    grouped.allow(topic_read("orders", "Group:staff"))
    alice = grouped.client("alice")
    asked = MetadataRequest(ORDERS.topics, include_topic_authorized_operations=True)
    [topic] = alice.ask(ApiKey.METADATA, 12, asked).topics
    assert topic.topic_authorized_operations == 1 << 3 | 1 << 8


def test_all_of_many_sessions_have_their_new_groups(grouped: Grouped) -> None:
    grouped.start(STAFF)
    grouped.allow(topic_read("orders", "Group:staff"))
    clients = [grouped.client("bob") for _ in range(250)]
    assert grouped.renew({})["sessions_changed"] == 250
    assert {code(each) for each in clients} == {DENIED}
