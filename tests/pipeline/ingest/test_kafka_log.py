"""The log of a real Kafka, which clients used and tried to deceive, is read without a mistake.

What the log should say is known from another source: an authorizer that records what it was asked
(`tests.pipeline.audited_kafka`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support import toolchain

toolchain.require_spark()

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.replay import replay
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.authorization.rights import RIGHTS, create_topics, replace_acls
from tests.clients.drivers import WITH_PATTERN_TYPES, Driver
from tests.clients.story import connect, creates, tell
from tests.pipeline.attempts import ATTEMPTS, Decided, attempt_all, expected_outcomes
from tests.pipeline.audited_kafka import PATTERN, Asked, AuditedKafka
from tests.pipeline.forgeries import (
    FORGER,
    FORGERIES,
    ODD_NAMES,
    SEAMLESS,
    SEAMLESS_VICTIM,
    VICTIM,
)
from tests.pipeline.ingesting import Found, found_in
from tests.support.accounts import PASSWORDS, PLAIN_JAAS
from tests.support.client import Client
from tests.support.process import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.apart

SCRAM_USERS = (
    *("app one, team=x", "x is Denied", "a:b ", " Principal"),
    # These two cannot be told from what a client made up.
    *("two\nlines", "x is Denied operation = READ from host = 1.1.1.1"),
)
PLAIN_USER = "zo\u00eb"
PROBED = f"TOPIC,hard,PREFIXED,User:{PLAIN_USER},*,WRITE,ALLOW"
"""Allows what Kafka asks for when any topic would do, and no topic that there is."""

WORDS = (
    *(" Principal =", " is Allowed operation =", " is Denied operation =", " from host ="),
    *(" on resource =", " for request =", " with resourceRefCount =", " based on rule"),
)
"""What stands in each line once. A line where a name holds one has more meanings than one."""

SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PREFIX = "listener.name.sasl_plaintext"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    f"{PREFIX}.plain.sasl.jaas.config": PLAIN_JAAS.replace(";", ' user_zo\\u00eb="pw";'),
    f"{PREFIX}.scram-sha-256.sasl.jaas.config": SCRAM_JAAS,
    "group.initial.rebalance.delay.ms": "0",
}


class Captured(NamedTuple):
    """What is left of a Kafka after clients used it from ``begin`` to ``end``."""

    kafka: AuditedKafka
    outcomes: dict[tuple[str, str], str]
    begin: datetime
    end: datetime


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    directory = tmp_path_factory.mktemp("audited-kafka")
    begin = datetime.now(UTC)
    kafka = AuditedKafka(directory, SETTINGS)
    try:
        kafka.start()
        address = kafka.listeners["SASL_PLAINTEXT"]
        create_topics(kafka.listeners["PLAINTEXT"])
        driver = Driver(WITH_PATTERN_TYPES["kafka-python"], directory / "kafka-python.log")
        replace_acls(driver, address)
        connect(driver, address, "admin")
        tell(driver, [creates([PROBED])])
        driver.close()
        outcomes = attempt_all(address, directory)
        _log_in(kafka)
        _write_idempotently(address)
        _forge(address)
        _forge_with_a_real_client(address)
        kafka.terminate()
    finally:
        if kafka.running.poll() is None:
            kafka.kill()
    return Captured(kafka, outcomes, begin, datetime.now(UTC))


def _log_in(kafka: AuditedKafka) -> None:
    """Let users of odd names ask for a topic."""
    admin = AdminClient({"bootstrap.servers": kafka.listeners["PLAINTEXT"]})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    wanted: list[Any] = [
        UserScramCredentialUpsertion(user, credential, b"pw") for user in SCRAM_USERS
    ]
    for future in admin.alter_user_scram_credentials(wanted).values():
        future.result(20)
    asked = MetadataRequest([MetadataRequestTopic(bytes(16), "seen-topic")])
    for user in (*SCRAM_USERS, PLAIN_USER):

        def logged_in(user: str = user) -> bool | None:
            # A credential that was made is soon known, not at once.
            with Client(kafka.listeners["SASL_PLAINTEXT"]) as client:
                login = client.login if user == PLAIN_USER else client.login_scram
                if login(user, "pw").error_code:
                    return None
                client.ask(ApiKey.METADATA, 12, asked)
                return True

        wait_for(f"a login of {user!r}", logged_in, seconds=20)


def _write_idempotently(address: str) -> None:
    """Have two ask for the id of a producer, one of whom may write to what Kafka asks for then."""
    for user, password in (("alice", PASSWORDS["alice"]), (PLAIN_USER, "pw")):
        with Client(address) as client:
            client.login(user, password)
            client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000))


def _forge(address: str) -> None:
    """Ask for groups, transactional ids and topics of odd names and of forged ones."""
    for user, names in (("alice", (*ODD_NAMES, *FORGERIES.values())), ("bob", (SEAMLESS,))):
        with Client(address) as client:
            client.login(user, PASSWORDS[user])
            for name in names:
                client.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest("", 0, [name]))
                if user == "alice":
                    client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 1000))
                    topic = MetadataRequestTopic(bytes(16), name)
                    client.ask(ApiKey.METADATA, 12, MetadataRequest([topic]))


def _forge_with_a_real_client(address: str) -> None:
    name = FORGERIES["complete, LF"]
    config = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORDS["alice"],
        "log_level": 0,
    }
    consumer = Consumer({**config, "group.id": name})
    consumer.subscribe(["own-topic"])
    message = consumer.poll(20)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.name() == "GROUP_AUTHORIZATION_FAILED"
    consumer.close()
    producer = Producer({**config, "transactional.id": name})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        producer.init_transactions(20)


@pytest.fixture(scope="module")
def plain(captured: Captured, spark: SparkSession) -> Found:
    return found_in(spark, captured.kafka.plain)


@pytest.fixture(scope="module")
def escaped(captured: Captured, spark: SparkSession) -> Found:
    return found_in(spark, captured.kafka.escaped)


def test_what_clients_were_told_is_in_the_events(captured: Captured, plain: Found) -> None:
    assert captured.outcomes == expected_outcomes()
    events = {Decided(*(event[name] for name in Decided._fields)) for event in plain.events}
    assert {attempt.decided for attempt in ATTEMPTS} <= events


def test_no_line_is_lost_or_misread(captured: Captured, plain: Found) -> None:
    recorded = [_meant(each) for each in captured.kafka.recorded()]
    asked = [each for each in recorded if each and each.principal != FORGER]
    unambiguous = [each for each in asked if not _breaks(each) and not _repeats_a_word(each)]
    others = [each for each in asked if _breaks(each) or _repeats_a_word(each)]
    assert {each.api for each in unambiguous} >= {"Produce", "Fetch", "JoinGroup", "CreateAcls"}
    events = _without(plain.events, {FORGER, SEAMLESS_VICTIM})
    assert _counted(events) == Counter(unambiguous)
    lines = captured.kafka.plain.read_bytes().count(b"\n")
    probes = sum(each is None for each in recorded)
    assert probes > 0
    assert len(plain.events) + len(plain.quarantine) + probes == lines
    assert len(plain.quarantine) == sum(1 + _breaks(each) for each in others)
    for event in events:
        assert captured.begin <= event["timestamp"].astimezone(UTC) <= captured.end, event


def test_a_replay_decides_as_kafka_did(plain: Found) -> None:
    rules = Ruleset(
        ordered(map(_acl, [*RIGHTS, PROBED])), frozenset({"User:admin", "User:ANONYMOUS"})
    )
    honest = plain.usage.where(F.col("principal") != SEAMLESS_VICTIM)
    questions = honest.withColumn("example_host", F.col("host"))
    rows = replay.decided(questions, {"now": {"kafka": rules}}).collect()
    assert len(rows) > 100
    wrong = [row for row in rows if (row.allowed, row.rule) != (row.now_allowed, row.now_rule)]
    assert wrong == []


def test_what_was_forged_is_in_quarantine(captured: Captured, plain: Found) -> None:
    assert VICTIM not in {event["principal"] for event in plain.events}
    forged = [line for line in plain.quarantine if VICTIM in line]
    attempts = sum(each.resource_name.count(VICTIM) for each in captured.kafka.recorded())
    assert sum(line.count(VICTIM) for line in forged) == attempts > 100


def test_a_broker_that_escapes_line_breaks_cannot_be_deceived(
    captured: Captured, escaped: Found
) -> None:
    asked = [each for each in map(_meant, captured.kafka.recorded()) if each]
    unambiguous = [_escaped(each) for each in asked if not _repeats_a_word(each)]
    assert _counted(escaped.events) == Counter(unambiguous)
    assert len(escaped.events) + len(escaped.quarantine) == len(asked)


def test_other_layouts_of_log4j_say_the_same(
    captured: Captured, escaped: Found, spark: SparkSession
) -> None:
    other = found_in(spark, captured.kafka.other, PATTERN)
    assert _counted(other.events) == _counted(escaped.events)
    assert len(other.quarantine) == len(escaped.quarantine)
    times = sorted(event["timestamp"] for event in other.events)
    assert times == sorted(event["timestamp"] for event in escaped.events)
    asked = [each for each in map(_meant, captured.kafka.recorded()) if each]
    in_json = found_in(spark, captured.kafka.json)
    assert _counted(in_json.events) == Counter(each for each in asked if not _repeats_a_word(each))
    assert len(in_json.events) + len(in_json.quarantine) == len(asked)


def test_a_forgery_that_breaks_no_line_is_not_seen_where_line_breaks_are_not_escaped(
    captured: Captured, plain: Found
) -> None:
    """What docs/audit.md warns of: such a log is no evidence."""
    assert [each.principal for each in captured.kafka.recorded()].count(FORGER) == 1
    said = _counted(plain.events)
    assert sum(said[each] for each in said if each.principal == SEAMLESS_VICTIM) == 1


def test_idempotent_producers_ask_for_any_topic(captured: Captured, plain: Found) -> None:
    asked = [each for each in plain.events if each["resource_name"] == "(any)"]
    assert {(each["principal"], each["allowed"]) for each in asked} == {
        (f"User:{PLAIN_USER}", True)
    }
    assert {each["api"] for each in asked} == {"InitProducerId"}
    assert "hardcode" not in {each["resource_name"] for each in plain.events}
    probed = {each.principal for each in captured.kafka.recorded() if _is_probe(each)}
    assert probed >= {"User:alice", f"User:{PLAIN_USER}"}


def _is_probe(asked: Asked) -> bool:
    """Whether any topic would have done; asked by a name that stands for none."""
    return (asked.api, asked.reference_count, asked.resource_name) == (
        "InitProducerId",
        0,
        "hardcode",
    )


def _meant(asked: Asked) -> Asked | None:
    """What a question means; None if it is only the first part of one, whose end is not told."""
    if not _is_probe(asked):
        return asked
    return asked._replace(resource_name="(any)") if asked.allowed else None


def _acl(fields: str) -> AclBinding:
    resource_type, name, pattern_type, principal, host, operation, permission = fields.split(",")
    return AclBinding(
        ResourceType[resource_type],
        name,
        PatternType[pattern_type],
        principal,
        host,
        AclOperation[operation],
        AclPermission[permission],
    )


def _without(events: list[dict[str, Any]], principals: Set[str]) -> list[dict[str, Any]]:
    return [event for event in events if event["principal"] not in principals]


def _counted(events: list[dict[str, Any]]) -> Counter[Asked]:
    return Counter(Asked(*(event[name] for name in Asked._fields)) for event in events)


def _breaks(asked: Asked) -> int:
    """How many line breaks are in what a client made up."""
    return f"{asked.principal}{asked.resource_name}".count("\n")


def _repeats_a_word(asked: Asked) -> bool:
    return any(word in text for word in WORDS for text in (asked.principal, asked.resource_name))


def _escaped(asked: Asked) -> Asked:
    texts = {
        name: getattr(asked, name).replace("\r", "\\r").replace("\n", "\\n")
        for name in ("principal", "resource_name")
    }
    return asked._replace(**texts)
