"""What real clients were allowed on a running broker is what a replay of its log says, and after a
change of the ACLs they are allowed what a replay of the old log under the new ACLs has foretold.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.read import LogForm, Reading, usage
from aclbroker.pipeline.ingest.sources import lines
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.usage.table import Usage
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.authorization.drivers import ATTEMPTING, AttemptDriver
from tests.clients.authorization.rights import TOPICS, replace_acls
from tests.clients.drivers import WITH_PATTERN_TYPES, Driver
from tests.clients.story import connect, creates, deletes, tell
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.process import wait_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import StartBroker

Row = tuple[Any, ...]

PATIENCE = 5.0
ATTEMPTS = {
    "alice produce own-topic": ("POLICY_VIOLATION", "TOPIC_AUTHORIZATION_FAILED"),
    "alice produce hidden-topic": ("TOPIC_AUTHORIZATION_FAILED", "POLICY_VIOLATION"),
    "alice produce seen-topic": 2 * ("TOPIC_AUTHORIZATION_FAILED",),
    "alice assign own-topic own-group": ("done", "GROUP_AUTHORIZATION_FAILED"),
    "alice list-offsets-of-group hidden-group": 2 * ("GROUP_AUTHORIZATION_FAILED",),
    "alice describe-group own-group": ("done", "GROUP_AUTHORIZATION_FAILED"),
    "alice delete-group seen-group": ("GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND"),
    "alice create-topic new-topic": 2 * ("TOPIC_AUTHORIZATION_FAILED",),
    "alice delete-topic seen-topic": 2 * ("TOPIC_AUTHORIZATION_FAILED",),
    "alice describe-broker-config 1": ("CLUSTER_AUTHORIZATION_FAILED", "done"),
    "bob produce-idempotently seen-topic": 2 * ("CLUSTER_AUTHORIZATION_FAILED",),
    "admin describe-broker-config 1": 2 * ("done",),
}
"""What is attempted, and how it ends before and after the change."""

REMOVED = "TOPIC,own-topic,LITERAL,User:alice,*,WRITE,ALLOW"
ADDED = [
    "TOPIC,hidden-,PREFIXED,User:alice,127.0.0.1,WRITE,ALLOW",
    "GROUP,own-,PREFIXED,User:*,*,DESCRIBE,DENY",
    "GROUP,seen-group,LITERAL,User:alice,*,DELETE,ALLOW",
    "CLUSTER,kafka-cluster,LITERAL,User:alice,*,DESCRIBE_CONFIGS,ALLOW",
]
KEY = ("principal", "host", "operation", "resource_type", "resource_name")


class Log(NamedTuple):
    """What a broker recorded for one run of the clients, and its rules meanwhile."""

    usage: DataFrame
    rules: Ruleset

    def recorded(self) -> dict[Row, bool]:
        """Return by `KEY` whether it was allowed; each was decided once, or always the same."""
        rows = self.usage.select(*KEY, "allowed").distinct().collect()
        found = {row[:-1]: row.allowed for row in rows}
        assert len(found) == len(rows)
        return found

    def decided(self, rules: Ruleset) -> list[Any]:
        """Return each row of the usage with what the rules decide now."""
        questions = self.usage.withColumn("example_host", F.col("host"))
        decided = replay.decided(questions, {"now": _of_each_cluster(self.usage, rules)})
        return list(decided.collect())

    def foretold(self, rules: Ruleset) -> dict[Row, bool]:
        """Return by `KEY` what other rules decide of what was asked, each question once."""
        sets = {"now": _of_each_cluster(self.usage, rules)}
        rows = replay.replayed(Usage(self.usage), sets).collect()
        return {
            tuple(row["example_host" if name == "host" else name] for name in KEY): row.now_allowed
            for row in rows
        }


def test_a_replay_says_what_clients_were_and_will_be_allowed(
    spark: SparkSession, start_broker: StartBroker, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    settings = {
        "aclbroker.audit.level": "trace",
        "aclbroker.audit.file": str(log),
        "aclbroker.audit.rollup.seconds": "0",
        "aclbroker.catalog.topics": ",".join(f"{name}:1" for name in TOPICS),
        "aclbroker.catalog.groups": "own-group",
    }
    broker = start_broker(settings)
    address = broker.listeners["SASL_PLAINTEXT"]
    with (
        closing(Driver(WITH_PATTERN_TYPES["kafka-python"], tmp_path / "admin.log")) as admin,
        closing(AttemptDriver(ATTEMPTING["confluent-kafka"], tmp_path / "clients.log")) as clients,
    ):

        def attempted() -> list[str]:
            return [clients.attempt(address, each, PATIENCE).outcome for each in ATTEMPTS]

        replace_acls(admin, address)
        first = attempted()
        before = _log(spark, broker, log, "before")
        connect(admin, address, "admin")
        tell(admin, [deletes({REMOVED: [REMOVED]}), creates(ADDED)])
        second = attempted()
        after = _log(spark, broker, log, "after")
    assert list(zip(first, second, strict=True)) == list(ATTEMPTS.values())
    for run in (before, after):
        rows = run.decided(run.rules)
        assert [(row.allowed, row.rule) for row in rows] == [
            (row.now_allowed, row.now_rule) for row in rows
        ]
    was, foretold, became = before.recorded(), before.foretold(after.rules), after.recorded()
    flips = {key for key in was if was[key] != foretold[key]}
    assert flips == {key for key in was if key in became and was[key] != became[key]}
    assert {was[key] for key in flips} == {True, False}
    assert {key: foretold[key] for key in was if key in became} == {
        key: became[key] for key in was if key in became
    }


def _of_each_cluster(usage: DataFrame, rules: Ruleset) -> dict[str, Ruleset]:
    return {row.cluster: rules for row in usage.select("cluster").distinct().collect()}


def _log(spark: SparkSession, broker: Broker, log: Path, name: str) -> Log:
    found = usage(lines(spark, [str(_cut_off(broker, log, name))]), Reading(LogForm.JSONL, "ours"))
    assert found.quarantine.count() == 0
    return Log(found.usage.rows.persist(), _rules(broker))


def _cut_off(broker: Broker, log: Path, name: str) -> Path:
    """Return a file with all that was recorded since the last time."""
    with Client(broker.listeners["PLAINTEXT"]) as client:
        topic = MetadataRequestTopic(bytes(16), name)
        client.ask(ApiKey.METADATA, 12, MetadataRequest([topic]))
    # It is the last that was asked, so all that was asked before it is recorded before it.
    wait_for(f"a record of {name}", lambda: name in log.read_text() or None, seconds=10)
    known = sum(file.stat().st_size for file in log.parent.glob("*.part"))
    part = log.with_name(f"{name}.part")
    part.write_bytes(log.read_bytes()[known:])
    return part


def _rules(broker: Broker) -> Ruleset:
    """Return the rules of a broker, as it describes its ACLs."""
    with Client(broker.listeners["PLAINTEXT"]) as client:
        described = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    acls = (
        AclBinding(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            AclPermission(acl.permission_type),
        )
        for resource in described.resources
        for acl in resource.acls
    )
    return Ruleset(ordered(acls), frozenset({"User:admin", "User:ANONYMOUS"}), cidr=True)
