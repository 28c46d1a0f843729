"""Kafka's own command-line tools on a cluster in memory, with no more rights than they need."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.memory_cluster.commands import client_properties, run
from tests.support.broker import Broker

CLUSTER, GROUP, TOPIC = 4, 3, 2
ALLOW = 3


class User:
    """Alice with the rights that are given to her here, and no others, and her tools."""

    def __init__(self, broker: Broker, directory: Path, commands: Commands) -> None:
        self._admin = raw.admin(broker)
        self._commands = commands
        everything = DeleteAclsFilter(1, None, 1, "User:alice", None, 1, 1)
        self._admin.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([everything]))
        properties = str(client_properties(directory, "alice"))
        servers = broker.listeners["SASL_PLAINTEXT"]
        self._to_broker = ("--bootstrap-server", servers, "--command-config", properties)

    def may(self, topic: str, *operations: int) -> None:
        """Allow operations on a topic."""
        codes = self._admin.create(*[raw.acl("alice", each, topic) for each in operations])
        assert not any(codes)

    def may_on_cluster(self, operation: int) -> None:
        """Allow an operation on the cluster."""
        self._may(CLUSTER, "kafka-cluster", operation)

    def may_on_group(self, group_id: str, operation: int) -> None:
        """Allow an operation on a group."""
        self._may(GROUP, group_id, operation)

    def _may(self, kind: int, name: str, operation: int) -> None:
        made = AclCreation(kind, name, ALLOW, "User:alice", "*", operation, ALLOW)
        assert self._admin.create(made) == [0]

    def run(self, tool: str, *arguments: Any, given: str = "") -> tuple[int, str, str]:
        """Run a tool; returns its status and what it wrote to both of its outputs."""
        return run(self._commands, tool, *self._to_broker, *map(str, arguments), given=given)

    def runs(self, tool: str, *arguments: Any, given: str = "") -> str:
        """Run a tool that succeeds; returns its standard output."""
        status, output, errors = self.run(tool, *arguments, given=given)
        assert status == 0, output + errors
        return output

    def fails(self, tool: str, *arguments: Any, given: str = "") -> str:
        """Run a tool; returns what it wrote of the error that it met."""
        _, output, errors = self.run(tool, *arguments, given=given)
        assert "Exception" in output + errors, output + errors
        return output + errors


def test_topics_are_created_described_changed_and_deleted(
    broker: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    create = ("--create", "--topic", topic, "--partitions", 2, "--config", "retention.ms=60000")
    assert "AuthorizationException" in alice.fails("topics", *create)
    alice.may(topic, raw.CREATE, raw.DESCRIBE, raw.DESCRIBE_CONFIGS)
    assert f"Created topic {topic}." in alice.runs("topics", *create)
    assert f"Topic '{topic}' already exists." in alice.fails("topics", *create)
    described = alice.runs("topics", "--describe", "--topic", topic)
    assert "PartitionCount: 2" in described
    assert "retention.ms=60000" in described
    assert "AuthorizationException" in alice.fails(
        "topics", "--alter", "--topic", topic, "--partitions", 3
    )
    alice.may(topic, raw.ALTER, raw.DELETE)
    alice.runs("topics", "--alter", "--topic", topic, "--partitions", 3)
    assert "PartitionCount: 3" in alice.runs("topics", "--describe", "--topic", topic)
    alice.runs("topics", "--delete", "--topic", topic)
    assert topic not in alice.runs("topics", "--list")


def test_records_are_written_read_looked_up_and_deleted(
    broker: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.DESCRIBE)
    alice.runs("topics", "--create", "--topic", topic)
    # Without WRITE on any topic it does not even get a producer id.
    assert "ClusterAuthorizationException" in alice.fails(
        "console-producer", "--topic", topic, given="no\n"
    )
    alice.may(topic, raw.WRITE)
    alice.runs("console-producer", "--topic", topic, given="one\ntwo\nthree\n")
    read = ("--topic", topic, "--partition", 0, "--offset", "earliest", "--timeout-ms", 8000)
    assert "TopicAuthorizationException" in alice.fails("console-consumer", *read)
    alice.may(topic, raw.READ)
    output = alice.runs("console-consumer", *read, "--max-messages", 3)
    assert output.split() == ["one", "two", "three"]
    assert alice.runs("get-offsets", "--topic", topic).strip() == f"{topic}:0:3"
    deletions = tmp_path / "delete.json"
    deletions.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]})
    )
    alice.may(topic, raw.DELETE)
    output = alice.runs("delete-records", "--offset-json-file", deletions)
    assert f"partition: {topic}-0\tlow_watermark: 2" in output
    earliest = alice.runs("get-offsets", "--topic", topic, "--time", "earliest")
    assert earliest.strip() == f"{topic}:0:2"


def test_configurations_are_described_and_altered(
    broker: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.DESCRIBE, raw.DESCRIBE_CONFIGS)
    alice.runs("topics", "--create", "--topic", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    assert "retention.bytes=-1" in alice.runs("configs", "--describe", "--all", *of_topic)
    add = ("--alter", "--add-config", "cleanup.policy=[compact,delete],retention.ms=5", *of_topic)
    assert "AuthorizationException" in alice.fails("configs", *add)
    alice.may(topic, raw.ALTER_CONFIGS)
    alice.runs("configs", *add)
    described = alice.runs("configs", "--describe", *of_topic)
    assert "cleanup.policy=compact,delete" in described
    alice.runs("configs", "--alter", "--delete-config", "retention.ms", *of_topic)
    assert "retention.ms" not in alice.runs("configs", "--describe", *of_topic)
    unknown = alice.fails("configs", "--alter", "--add-config", "unknown=1", *of_topic)
    assert "Unknown topic config name: unknown" in unknown


def test_the_verifiable_producer_has_all_of_its_records_acknowledged(
    broker: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.WRITE)
    output = alice.runs("verifiable-producer", "--topic", topic, "--max-messages", 200)
    last = json.loads(output.splitlines()[-1])
    assert (last["name"], last["sent"], last["acked"]) == ("tool_data", 200, 200)


@pytest.mark.parametrize(
    ("broker", "protocol"), [("one_node", "classic"), ("nodes", "consumer")], indirect=["broker"]
)
def test_the_verifiable_consumer_reads_and_commits_each_record_once(
    broker: Broker, protocol: str, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.WRITE)
    alice.runs("verifiable-producer", "--topic", topic, "--max-messages", 100)
    consume = (
        *("--topic", topic, "--group-id", topic, "--group-protocol", protocol),
        *("--reset-policy", "earliest", "--max-messages", 100),
    )
    alice.may(topic, raw.READ)
    assert "GroupAuthorizationException" in alice.fails("verifiable-consumer", *consume)
    alice.may_on_group(topic, raw.READ)
    told = [json.loads(line) for line in alice.runs("verifiable-consumer", *consume).splitlines()]
    read = sum(each["count"] for each in told if each["name"] == "records_consumed")
    [committed] = [each for each in told if each["name"] == "offsets_committed"]
    assert (read, committed["success"]) == (100, True)
    assert [each["offset"] for each in committed["offsets"]] == [100]


@pytest.mark.parametrize(
    ("broker", "protocol"), [("one_node", "classic"), ("nodes", "consumer")], indirect=["broker"]
)
def test_the_console_consumer_reads_on_where_its_group_has_come_to(
    broker: Broker, protocol: str, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.WRITE)
    alice.runs("topics", "--create", "--topic", topic, "--partitions", 2)
    alice.runs("console-producer", "--topic", topic, given="one\ntwo\nthree\n")
    in_group = (
        *("--group", topic, "--command-property", f"group.protocol={protocol}"),
        *("--from-beginning", "--timeout-ms", 20_000, "--max-messages"),
    )
    consume = ("console-consumer", "--topic", topic, *in_group)
    assert "GroupAuthorizationException" in alice.fails(*consume, 3)
    alice.may_on_group(topic, raw.READ)
    assert "TopicAuthorizationException" in alice.fails(*consume, 3)
    alice.may(topic, raw.READ)
    assert sorted(alice.runs(*consume, 3).split()) == ["one", "three", "two"]
    alice.runs("console-producer", "--topic", topic, given="four\n")
    # Of all topics an expression finds those that she may describe.
    found = alice.runs("console-consumer", "--include", "java-.*|plain", *in_group, 1)
    assert found.split() == ["four"]


def test_partitions_stay_where_they_are_and_a_reassignment_says_so(
    nodes: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(nodes, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.DESCRIBE, raw.DESCRIBE_CONFIGS, raw.ALTER_CONFIGS)
    alice.runs("topics", "--create", "--topic", topic, "--replica-assignment", "2,3")
    # The tool first shows where partitions and their directories are now.
    alice.may_on_cluster(raw.DESCRIBE)

    def reassign(action: str, node: int) -> tuple[str, ...]:
        plan = tmp_path / "plan.json"
        moves = [{"topic": topic, "partition": 0, "replicas": [node]}]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))
        return "reassign-partitions", f"--{action}", "--reassignment-json-file", str(plan)

    def refused(node: int) -> str:
        status, output, _ = alice.run(*reassign("execute", node))
        assert status == 1, output
        return output

    assert "Not authorized: ALTER on CLUSTER kafka-cluster is needed." in refused(1)
    alice.may_on_cluster(raw.ALTER)
    assert "All partitions of a cluster in memory stay on their nodes." in refused(1)
    assert "Successfully started partition reassignment" in alice.runs(*reassign("execute", 2))
    assert "No partition reassignments found." in alice.runs("reassign-partitions", "--list")
    # It deletes the throttles of all nodes, whether or not there are any.
    assert "ClusterAuthorizationException" in alice.fails(*reassign("verify", 2))
    alice.may_on_cluster(raw.ALTER_CONFIGS)
    verified = alice.runs(*reassign("verify", 2))
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "Clearing broker-level throttles on brokers 1,2,3" in verified
    cancelled = alice.runs(*reassign("cancel", 2))
    assert "None of the specified partition reassignments are active." in cancelled


def test_the_cluster_tells_of_sizes_producers_and_leaders(
    broker: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(broker, tmp_path, commands), f"java-{uuid.uuid4().hex}"
    alice.may(topic, raw.CREATE, raw.WRITE, raw.READ)
    alice.runs("console-producer", "--topic", topic, given="one\n")
    alice.may_on_cluster(raw.DESCRIBE)
    output = alice.runs("log-dirs", "--describe", "--topic-list", topic)
    told = json.loads(output.splitlines()[-1])
    sizes = [
        partition["size"]
        for node in told["brokers"]
        for place in node["logDirs"]
        for partition in place["partitions"]
    ]
    assert len(sizes) == 1
    assert sizes[0] > 0
    output = alice.runs("transactions", "describe-producers", "--topic", topic, "--partition", 0)
    assert len(output.splitlines()) == 2
    alice.may_on_cluster(raw.ALTER)
    elect = ("--election-type", "preferred", "--topic", topic, "--partition", 0)
    assert "already elected" in alice.runs("leader-election", *elect)
