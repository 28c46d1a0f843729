"""SIGHUP: what of a changed configuration is taken over, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS, PLAIN_JAAS, properties_text
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.process import wait_for

USERS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
TAKEN = "configuration reloaded"
NEED_RESTART = "changed settings need a restart"
"""It follows the line of what was taken over."""

REFUSED = "configuration not reloaded; the old one stays"


def reloaded(broker: Broker, event: str = TAKEN, **changes: str | None) -> dict[str, Any]:
    """Change the file, tell the broker, and return what it then says."""
    names = {name.replace("_", "."): value for name, value in changes.items()}
    return reloaded_with(broker, names, event)


def reloaded_with(
    broker: Broker, changes: Mapping[str, str | None], event: str = TAKEN
) -> dict[str, Any]:
    for name, value in changes.items():
        broker.properties[name] = value or ""
        if value is None:
            del broker.properties[name]
    before = said(broker, event)
    (broker.directory / "server.properties").write_text(properties_text(broker.properties))
    broker.hang_up()
    wait_for(event, lambda: len(said(broker, event)) > len(before) or None, 30)
    return said(broker, event)[-1]


def said(broker: Broker, event: str) -> list[dict[str, Any]]:
    return [each for each in broker.events() if each["event"] == event]


def may_log_in(broker: Broker, user: str, password: str) -> bool:
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.handshake("PLAIN")
        answer = client.authenticate(f"\0{user}\0{password}".encode())
        return not answer.error_code


def describes(client: Client) -> bool:
    code = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code
    assert code in (ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return not code


def test_users_are_taken_over_and_who_is_there_stays(broker: Broker):
    with Client(broker.listeners["SASL_PLAINTEXT"]) as admin:
        admin.handshake("PLAIN")
        admin.authenticate(b"\0admin\0admin-secret")
        assert not may_log_in(broker, "carol", "c")
        new = PLAIN_JAAS.replace('user_alice="alice-secret"', 'user_carol="c"')
        assert reloaded_with(broker, {USERS: new})["changed"] == [USERS]
        assert may_log_in(broker, "carol", "c")
        assert not may_log_in(broker, "alice", "alice-secret")
        assert describes(admin)
    assert "admin-secret" not in broker.log_text()


def test_super_users_are_taken_over_by_the_next_decision_of_an_open_connection(broker: Broker):
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert describes(client)
        assert reloaded(broker, super_users="User:admin")["changed"] == ["super.users"]
        assert not describes(client)
        reloaded(broker, super_users="User:admin;User:ANONYMOUS")
        assert describes(client)
        [shown] = client.ask(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest([DescribeConfigsResource(4, "1", ["super.users"])]),
        ).results
        assert [each.value for each in shown.configs] == ["User:admin;User:ANONYMOUS"]


def test_broker_users_and_the_default_without_acls_are_taken_over(start_broker: StartBroker):
    broker = start_broker({"super.users": "User:admin"})
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert not describes(client)
        reloaded(broker, allow_everyone_if_no_acl_found="true")
        assert describes(client)
        reloaded(broker, allow_everyone_if_no_acl_found=None)
        assert not describes(client)
        reloaded(broker, broker_users="User:ANONYMOUS")
        assert describes(client)


@pytest.mark.broker_process
def test_levels_of_both_logs_are_taken_over(start_broker: StartBroker):
    broker = start_broker({"super.users": "User:admin"})
    with Client(broker.listeners["PLAINTEXT"]) as client:
        reloaded_with(broker, {"aclbroker.audit.level": "off"})
        assert not describes(client)
        assert not said(broker, "authorization")
        reloaded_with(broker, {"aclbroker.audit.level": "denied"})
        assert not describes(client)
        assert len(said(broker, "authorization")) == 1
    reloaded_with(
        broker,
        {"aclbroker.log.level": "warning", "max.connections": "7"},
        NEED_RESTART,
    )
    assert len(said(broker, TAKEN)) == 2
    reloaded_with(broker, {"aclbroker.log.level": "info"})


def test_what_needs_a_restart_is_named_until_there_is_one(broker: Broker):
    changes = {"max.connections": "7", "num.io.threads": "3", "my.plugin": "x"}
    told = reloaded_with(broker, changes, NEED_RESTART)
    assert told["settings"] == ["max.connections", "my.plugin"]
    reloaded(broker, NEED_RESTART, super_users="User:admin")
    assert [each["changed"] for each in said(broker, TAKEN)] == [[], ["super.users"]]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"super.users": "admin", USERS: "top-secret"}, "super.users"),
        (
            {"super.users": "User:admin", USERS: 'x required user_a="top-secret"'},
            "sasl.jaas.config",
        ),
    ],
)
def test_a_file_that_is_not_valid_changes_nothing_and_says_so(
    broker: Broker, changes: dict[str, str | None], problem: str
):
    with Client(broker.listeners["PLAINTEXT"]) as client:
        event = reloaded_with(broker, changes, REFUSED)
        assert any(problem in each for each in event["problems"])
        assert describes(client)
    assert may_log_in(broker, "alice", "alice-secret")
    assert "top-secret" not in broker.log_text()
    assert not said(broker, TAKEN)


def test_an_audit_file_that_cannot_be_opened_changes_nothing(start_broker: StartBroker):
    settings = {"aclbroker.audit.level": "off", "aclbroker.audit.file": "/nowhere/audit.log"}
    broker = start_broker(settings)
    changes = {"aclbroker.audit.level": "denied", "super.users": "User:admin"}
    event = reloaded_with(broker, changes, REFUSED)
    assert event["problems"] == ["aclbroker.audit.file: No such file or directory"]
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert describes(client)


def test_an_audit_file_that_is_opened_on_sighup_is_rotated_and_opened_anew(
    start_broker: StartBroker, tmp_path: Path
):
    path = tmp_path / "audit.jsonl"
    settings = {
        "aclbroker.audit.level": "off",
        "aclbroker.audit.file": str(path),
        "aclbroker.audit.file.max.bytes": "1048576",
        "aclbroker.audit.max.bytes.per.second": "0",
        "aclbroker.audit.rollup.seconds": "0",
    }
    broker = start_broker(settings)
    reloaded_with(broker, {"aclbroker.audit.level": "denied"})
    topics = [MetadataRequestTopic(name="x" * 200 + str(number)) for number in range(500)]
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("alice", PASSWORDS["alice"]).error_code == 0
        for _ in range(4):
            client.ask(ApiKey.METADATA, 9, MetadataRequest(topics))
        [rotated] = tmp_path.glob("audit.jsonl.*")
        assert path.stat().st_size <= 1_048_576 >= rotated.stat().st_size
        moved = path.rename(tmp_path / "moved")
        reloaded_with(broker, {})
        size = moved.stat().st_size
        client.ask(ApiKey.METADATA, 9, MetadataRequest(topics))
    lines = [file.read_text().splitlines() for file in (rotated, moved, path)]
    assert sum(map(len, lines)) == 5 * 500
    assert (len(lines[2]), moved.stat().st_size) == (500, size)
