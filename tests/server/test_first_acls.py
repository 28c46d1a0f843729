"""`aclbroker.acls.file`: a store begins with the ACLs of a policy file, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.conftest import StartBroker
from tests.support.accounts import properties_text
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client, topic_read

POLICY = """\
version: 1
acls:
- principal: User:carol
  rules:
  - topic: orders
    allow: [READ, WRITE]
  - topic: pay.
    pattern: prefixed
    deny: ALL
"""
ALL = DeleteAclsRequest([DeleteAclsFilter(1, None, 1, None, None, 1, 1)])


@pytest.fixture(autouse=True)
def directory_of_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path of a setting begins there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "acls.yaml"
    file.write_text(POLICY)
    return file


def names(broker: Broker) -> list[str]:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        return client.resource_names()


def test_a_new_store_begins_with_the_acls_of_the_file_and_keeps_what_is_changed(
    start_broker: StartBroker, file: Path
):
    broker = start_broker({"aclbroker.acls.file": file.name})
    assert names(broker) == ["orders", "pay."]
    [event] = [each for each in broker.events() if each["event"] == "ACLs created from a file"]
    assert event["count"] == 3
    recorded = [each for each in broker.events() if each["event"] == "change"]
    assert [(each["by"], each["action"], each["error"]) for each in recorded] == [
        ("aclbroker.acls.file", "CREATE_ACL", "NONE")
    ] * 3
    assert {each["acl"]["resource_name"] for each in recorded} == {"orders", "pay."}
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.ask(ApiKey.DELETE_ACLS, 3, ALL)
    file.unlink()
    broker.restart()
    assert names(broker) == []
    assert [each for each in broker.events() if each["event"] == "change"] == []


def test_a_store_with_acls_keeps_its_own(start_broker: StartBroker, file: Path):
    broker = start_broker()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.create(topic_read("mine"))
    broker.terminate()
    broker = start_broker({"aclbroker.acls.file": str(file)})
    assert names(broker) == ["mine"]
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.ask(ApiKey.DELETE_ACLS, 3, ALL)
    broker.restart()
    assert names(broker) == []


def test_a_store_in_memory_begins_anew_each_time(start_broker: StartBroker, file: Path):
    broker = start_broker({"aclbroker.acls.file": str(file), "aclbroker.store": "memory:"})
    assert names(broker) == ["orders", "pay."]
    broker.restart()
    assert names(broker) == ["orders", "pay."]


@pytest.mark.parametrize("audit_file", ["", "audit.jsonl"])
def test_on_a_console_the_first_acls_are_one_line_and_in_an_audit_file_a_line_each(
    tmp_path: Path, file: Path, audit_file: str
):
    overrides = {"aclbroker.acls.file": file.name, "aclbroker.log.format": "console"}
    if audit_file:
        overrides["aclbroker.audit.file"] = audit_file
    broker = Broker(tmp_path, overrides)
    (tmp_path / "server.properties").write_text(properties_text(broker.properties))
    broker.spawn()
    broker.wait_until_ready(lambda: " ready " in broker.new_log_text() or None, 30)
    broker.terminate()
    told = [line for line in broker.new_log_text().splitlines() if "CREATE_ACL" in line]
    assert told == []
    assert "ACLs created from a file file=acls.yaml count=3" in broker.new_log_text()
    if audit_file:
        records = map(json.loads, (tmp_path / audit_file).read_text().splitlines())
        assert [each["action"] for each in records] == ["CREATE_ACL"] * 3


@pytest.mark.parametrize(
    ("overrides", "text", "reason"),
    [
        (
            {},
            POLICY.replace("WRITE", "WRITTEN"),
            "s.file: acls.yaml: line 6, column 19: ",
        ),
        ({}, None, "aclbroker.acls.file=acls.yaml: cannot be read: No such file"),
        ({"aclbroker.acl.limit": "2"}, POLICY, "acls.yaml: it has 3 ACLs, and aclbroker.acl.limit"),
    ],
)
def test_a_file_that_cannot_be_taken_stops_the_start_and_changes_nothing(
    tmp_path: Path, file: Path, overrides: dict[str, str], text: str | None, reason: str
):
    file.unlink() if text is None else file.write_text(text)
    broker = ThreadBroker(tmp_path, {"aclbroker.acls.file": "acls.yaml", **overrides})
    with pytest.raises(RuntimeError):
        broker.start()
    [event] = [each for each in broker.events() if each["event"] == "cannot start"]
    assert reason in event["reason"]
    file.write_text(POLICY)
    broker.properties["aclbroker.acl.limit"] = ""
    broker.start()
    assert names(broker) == ["orders", "pay."]
    broker.terminate()
