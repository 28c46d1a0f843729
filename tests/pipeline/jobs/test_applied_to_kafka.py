"""What is proposed from a real Kafka's log is applied to it, and its clients go on as before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support import toolchain

toolchain.require_spark()

from confluent_kafka.admin import AdminClient, NewTopic

from aclbroker.acl.bindings import AclBinding, AclOperation, PatternType, ResourceType
from aclbroker.acl.files.policy import Policy, read_policy, write_policy
from aclbroker.broker.client.acls import create_acls, describe_acls
from aclbroker.broker.client.cluster_info import cluster_id
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.cli.arguments import ServeCommand, parse_arguments
from aclbroker.pipeline.acls.acl_text import acl_text
from tests import model
from tests.acl.examples import (
    ALL,
    ALTER,
    CLUSTER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    PREFIXED,
    READ,
    WRITE,
    allow,
    deny,
)
from tests.pipeline.audited_kafka import ZONE, AuditedKafka
from tests.pipeline.auditing import audited
from tests.pipeline.kafka_clients import LEAST, TOPICS, USERS, work_done
from tests.support.accounts import PLAIN_JAAS
from tests.support.process import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.timeout(600), pytest.mark.apart]

SETTINGS = {
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_JAAS.replace(
        ";", "".join(f' user_{user}="pw"' for user in USERS) + ";"
    ),
    "group.initial.rebalance.delay.ms": "0",
}

PROTECTS = deny("User:*", ALL, "hr.", pattern_type=PREFIXED)
"""What the operator must not see, who may see all other topics."""

WIDER = [
    allow("User:billing", ALL, "orders"),
    allow("User:operator", ALTER, "kafka-cluster", resource_type=CLUSTER),
    allow("User:payments", ALL, "pay", resource_type=GROUP, pattern_type=PREFIXED),
]
"""Each allows what an ACL that says less allows as well."""

WITHIN_WIDER = [
    allow("User:billing", READ, "orders"),
    allow("User:operator", DESCRIBE, "kafka-cluster", resource_type=CLUSTER),
    allow("User:payments", READ, "payments", resource_type=GROUP),
]
"""Those that say less, which say nothing of their own beside the wider ones."""

LISTED = allow("User:operator", DESCRIBE, "*")
SHOWN = [
    allow("User:operator", DESCRIBE, name)
    for name in ("__consumer_offsets", "__transaction_state", "invoices", "old", "orders")
]
"""The topics that the operator was shown by `LISTED`."""

UNUSED = [
    allow("User:shop", READ, "old"),
    allow("User:*", WRITE, "ord", pattern_type=PREFIXED, host="10.9.9.9"),
    deny("User:nobody", READ, "orders"),
    deny("User:billing", WRITE, "orders"),
]
"""The last one takes back from what goes as well."""

COVERED = [
    allow("User:billing", DESCRIBE, "orders"),
    allow("User:operator", DESCRIBE_CONFIGS, "orders"),
]
"""Others imply it; the second one is one of those that the clients need."""

GIVEN = [*LEAST, PROTECTS, *WIDER, *UNUSED, COVERED[0]]


class Used(NamedTuple):
    """A Kafka that its clients have used, what they were told, and its log and ACLs of then."""

    kafka: AuditedKafka
    cluster: str
    told: dict[str, object]
    log: Path
    acls: Path


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Used]:
    directory = tmp_path_factory.mktemp("used-kafka")
    kafka = AuditedKafka(directory, SETTINGS)
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.listeners["PLAINTEXT"]})
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
            future.result(20)
        with open_session(read_addresses(kafka.listeners["PLAINTEXT"]), read_settings(None)) as to:
            create_acls(to, GIVEN)
            cluster = str(cluster_id(to))
        wait_for_acls(kafka, set(GIVEN))
        told = work_done(kafka.listeners["SASL_PLAINTEXT"])
        log, acls = directory / "then.log", directory / "acls.yaml"
        log.write_bytes(kafka.plain.read_bytes())
        write_policy(Policy(GIVEN), acls)
        yield Used(kafka, cluster, told, log, acls)
    finally:
        if kafka.process is not None:
            kafka.kill()


def wait_for_acls(kafka: AuditedKafka, acls: set[AclBinding]) -> None:
    """Wait until a Kafka decides by these ACLs."""
    with open_session(read_addresses(kafka.listeners["PLAINTEXT"]), read_settings(None)) as session:
        wait_for("the ACLs", lambda: set(describe_acls(session)) == acls or None, seconds=20)


def proposed(spark: SparkSession, used: Used, job: str, place: Path) -> Path:
    """Run a job on the log; return the policy file that it proposes."""
    words = ["--cluster", used.cluster, "--zone", ZONE.key]
    words += ["--super-user", "User:admin", "--super-user", "User:ANONYMOUS"]
    audited(spark, job, used.log, used.acls, place, *words)
    (found,) = (place / job).glob("*.yaml")
    return found


def apply(kafka: AuditedKafka, file: Path) -> None:
    """Make the file's ACLs the only ones of a Kafka, as its user would."""
    words = ["policy", "apply", str(file), "--prune", "--force", "--may-lock-out"]
    command = parse_arguments([*words, "--bootstrap-server", kafka.listeners["PLAINTEXT"]])
    assert not isinstance(command, ServeCommand)
    assert command.run() == 0
    wait_for_acls(kafka, set(read_policy(file).acls))


def test_all_clients_could_do_their_work(used: Used) -> None:
    assert used.told == {
        "shop": 3 * ["written"],
        "billing": ["order 0", "order 1", "order 2"],
        "payments": ["order 0", "order 1", "order 2"],
        "operator": {
            "topics": ["__consumer_offsets", "__transaction_state", "invoices", "old", "orders"],
            "setting": "done",
            "settings": True,
            "acls": True,
            "group": "billing",
            "made": "done",
            "gone": "done",
        },
    }


@pytest.mark.parametrize(
    ("job", "gone", "made"),
    [
        ("unused", [*WIDER, *UNUSED, *COVERED], []),
        ("redundant", [*WITHIN_WIDER, *COVERED], []),
        ("recommend", [*WIDER, *UNUSED, *COVERED, LISTED, PROTECTS], SHOWN),
    ],
)
def test_what_is_proposed_is_applied_and_all_clients_go_on(
    spark: SparkSession,
    used: Used,
    tmp_path: Path,
    job: str,
    gone: list[AclBinding],
    made: list[AclBinding],
) -> None:
    file = proposed(spark, used, job, tmp_path)
    found = set(read_policy(file).acls)
    assert texts(set(GIVEN) - found) == texts(gone)
    assert texts(found - set(GIVEN)) == texts(made)
    named = named_acls(used.log.read_bytes())
    assert len(named) > 15
    assert [each for each in named if not is_allowed(found, each)] == []
    apply(used.kafka, file)
    before = used.kafka.plain.stat().st_size
    assert work_done(used.kafka.listeners["SASL_PLAINTEXT"]) == used.told
    log = used.kafka.plain.read_bytes()
    assert denials(log[before:]) <= denials(used.log.read_bytes())


def test_kafka_names_an_acl_that_can_go_for_one_that_says_less(used: Used) -> None:
    """So `unused` goes by what allows an event, and not by what the log names."""
    wide, least = WIDER[2], WITHIN_WIDER[2]
    named = named_acls(used.log.read_bytes())
    asked = {each for each in named if each.resource_name == "payments"}
    assert {each.operation for each in asked} == {"READ", "DESCRIBE"}
    assert {named[each] for each in asked} == {wide}
    assert all(is_allowed([least], each) for each in asked)


class Question(NamedTuple):
    """What a log says was allowed."""

    principal: str
    operation: str
    host: str
    resource_type: str
    resource_name: str


ALLOWED = re.compile(
    r"Principal = (\S+) is Allowed operation = (\w+) from host = (\S+) on resource = (\w+):LITERAL:"
    r"(\S+) for request = .* based on rule MatchingAcl\(acl=StandardAcl\[resourceType=(\w+), "
    r"resourceName=(.+), patternType=(\w+), principal=(.+), host=(.+), operation=(\w+), "
    r"permissionType=ALLOW\]\)"
)


def named_acls(log: bytes) -> dict[Question, AclBinding]:
    """The ACL that a log names for each question; it is always the same."""
    found: dict[Question, AclBinding] = {}
    for asked in ALLOWED.finditer(log.decode()):
        kind, name, pattern, principal, host, operation = asked.groups()[5:]
        acl = allow(
            principal,
            AclOperation[operation],
            name,
            resource_type=ResourceType[kind],
            pattern_type=PatternType[pattern],
            host=host,
        )
        question = Question(*asked.groups()[:5])._replace(resource_type=kind)
        assert found.setdefault(question, acl) == acl
    return found


def is_allowed(acls: Iterable[AclBinding], asked: Question) -> bool:
    """Whether the plain model of Kafka's rules allows what was asked."""
    return model.authorize(
        acls,
        {asked.principal},
        asked.host,
        AclOperation[asked.operation],
        ResourceType[asked.resource_type],
        asked.resource_name,
    )


def texts(acls: Iterable[AclBinding]) -> list[str]:
    """ACLs as a person reads them."""
    return sorted(map(acl_text, acls))


def denials(log: bytes) -> set[str]:
    """What a log says was denied, without when."""
    return set(re.findall(r"Principal = .* is Denied .* for request = \w+", log.decode()))
