"""What the audit log says where several stores decide, and that the pipeline reads it."""

from __future__ import annotations

import json
from pathlib import Path

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import DESCRIBE
from tests.conftest import StartBroker
from tests.providers.test_migration import CONFLUENT_AUTHORIZER, PROVIDERS
from tests.support.accounts import PASSWORDS
from tests.support.client import Client, topic_read


def test_a_record_names_the_position_of_each_provider(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    broker = start_broker(
        {
            "authorizer.class.name": CONFLUENT_AUTHORIZER,
            PROVIDERS: "CONFLUENT,KRAFT_ACL",
            "aclbroker.provider.confluent.store": f"sqlite:///{tmp_path}/central.db",
            "aclbroker.audit.file": str(path),
            "aclbroker.audit.level": "all",
            "aclbroker.audit.rollup.seconds": "3600",
        }
    )
    with Client(broker.listeners["SASL_PLAINTEXT"]) as alice:
        alice.login("alice", PASSWORDS["alice"])
        asked = MetadataRequest([MetadataRequestTopic(bytes(16), "orders")])
        for number in range(3):
            alice.ask(ApiKey.METADATA, 12, asked)
            with Client(broker.listeners["PLAINTEXT"]) as admin:
                assert admin.create(topic_read(f"t{number}")) == [0]
    assert broker.terminate() == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    denied = [each for each in lines if each.get("principal") == "User:alice"]
    assert [each["operation"] for each in denied] == [DESCRIBE.name] * 2
    first, rest = denied
    assert "acls" not in first
    assert list(first["acls_by_provider"]) == ["CONFLUENT", "KRAFT_ACL"]
    # What the audit log tells at once is the first decision, and the roll-up the others.
    before = first["acls_by_provider"]["KRAFT_ACL"]
    assert rest["count"] == 2
    assert before < rest["first_acls_by_provider"]["KRAFT_ACL"]
    assert rest["first_acls_by_provider"]["KRAFT_ACL"] < rest["acls_by_provider"]["KRAFT_ACL"]
