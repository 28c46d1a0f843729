"""Kafka's own command-line tools, run against a broker as one of its users."""

import subprocess
from pathlib import Path

from tests.clients.acl_command import Commands
from tests.support.accounts import PASSWORDS
from tests.support.packages import java_command, kafka_jars

TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
}

WITHIN = 90


def client_properties(directory: Path, user: str) -> Path:
    """Write the properties with which a client logs in as a user."""
    path = directory / f"{user}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user}" password="{PASSWORDS[user]}";\n'
        "default.api.timeout.ms=20000\nrequest.timeout.ms=10000\n"
    )
    return path


_ITS_CONFIG = {"leader-election": "--admin.config"}
"""How tools call their option with the properties where it is not --command-config."""


_ALONE = frozenset({"verifiable-producer"})
"""Tools that print their result when their JVM ends."""


def run(commands: Commands, tool: str, *arguments: str, given: str = "") -> tuple[int, str, str]:
    """Run a tool; returns its status and what it wrote to both of its outputs."""
    if tool in _ALONE:
        command = java_command(TOOLS[tool], kafka_jars(), minimum=17)
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=WITHIN, check=False
        )
        return done.returncode, done.stdout, done.stderr
    option = _ITS_CONFIG.get(tool, "--command-config")
    words = [option if each == "--command-config" else each for each in arguments]
    told = commands.run_whole(*words, tool=TOOLS[tool], given=given)
    return told["status"], told["out"], told["err"]
