"""What one line of Kafka's log means, and which lines mean nothing for certain."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from aclbroker.pipeline.ingest import kafka_apis
from aclbroker.pipeline.ingest.kafka_line import Dialect, KafkaReason, parse
from aclbroker.pipeline.ingest.record import Record
from aclbroker.protocol.messages import APIS
from tests.pipeline.kafka_lines import (
    CLOCK,
    NOT_RECORDS,
    PROBE,
    PROBES,
    RECORDS,
    allowed_line,
    line,
    simple_line,
    zookeeper_line,
)
from tests.support.tables import check_each


def timed(text: str, zone: ZoneInfo | None = None) -> tuple[datetime, Record]:
    found = parse(text.encode(), "eu", zone or UTC)
    assert isinstance(found, tuple), found
    return found


def read(text: str) -> Record:
    return timed(text)[1]


def test_every_field_of_a_record() -> None:
    assert timed(line()) == (
        datetime(2026, 11, 21, 7, 48, 42, 328_000, UTC),
        Record(
            cluster="eu",
            listener=None,
            principal="User:alice",
            other_principals=None,
            host="127.0.0.1",
            operation="DESCRIBE",
            resource_type="TOPIC",
            resource_name="orders.eu",
            api="Metadata",
            allowed=False,
            rule="DefaultDeny",
            quiet=False,
            reference_count=1,
            client_id=None,
            source="kafka-3.3",
        ),
    )


def test_records_are_read() -> None:
    check_each(RECORDS, read)


def test_what_is_no_record_has_a_reason() -> None:
    def check_reason(case: tuple[str, KafkaReason]) -> None:
        text, reason = case
        assert parse(text.encode(), "eu") is reason

    check_each(NOT_RECORDS.items(), check_reason)


@pytest.mark.parametrize(
    ("text", "source", "rule"),
    [
        (allowed_line("[]"), Dialect.SQUARE, "MatchingAcl"),
        (allowed_line("()"), Dialect.ROUND, "MatchingAcl"),
        (zookeeper_line(), Dialect.ZOOKEEPER, None),
        (simple_line(), Dialect.ZOOKEEPER, None),
    ],
)
def test_the_dialects_are_told_apart(text: str, source: Dialect, rule: str | None) -> None:
    record = read(text)
    assert (record.source, record.rule, record.allowed) == (source, rule, True)


def test_logs_before_kafka_2_4_name_no_request() -> None:
    record = read(simple_line(resource="Group:a:b"))
    assert (record.api, record.reference_count, record.resource_name) == (None, 1, "a:b")


def test_references_are_counted() -> None:
    record = read(line(request=" for request = Produce with resourceRefCount = 12"))
    assert (record.api, record.reference_count) == ("Produce", 12)


@pytest.mark.parametrize(("level", "quiet"), [("TRACE", True), ("DEBUG", False), ("WARN", False)])
def test_what_only_filters_an_answer_is_quiet(level: str, quiet: bool) -> None:
    assert read(line(head=f"[{CLOCK}] {level}")).quiet is quiet


def test_operations_of_zookeepers_time_get_todays_names() -> None:
    assert read(zookeeper_line(operation="IdempotentWrite")).operation == "IDEMPOTENT_WRITE"


@pytest.mark.parametrize(
    "principal", ["User:CN=app one,OU=Dev,O=Acme is Denied", "User:a = b", "Role:x:y", "User:*"]
)
def test_a_principal_is_read_whole(principal: str) -> None:
    assert read(line(principal=principal)).principal == principal


@pytest.mark.parametrize(
    ("printed", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1%eth0"),
        ("0:0:0:0:0:ffff:a00:1", "10.0.0.1"),
    ],
)
def test_addresses_have_one_form(printed: str, host: str) -> None:
    assert read(line(host=printed)).host == host


@pytest.mark.parametrize(
    ("zone", "clock", "utc"),
    [
        ("Europe/Berlin", "2026-11-21 07:48:42,328", "2026-11-21 06:48:42.328"),
        ("Asia/Kathmandu", "2026-01-01 05:00:59,999", "2025-12-31 23:15:59.999"),
        # The hour that occurs twice, and the one that does not.
        ("Europe/Berlin", "2026-10-25 02:30:00,000", "2026-10-25 00:30:00"),
        ("Europe/Berlin", "2026-03-29 02:30:00,000", "2026-03-29 01:30:00"),
    ],
)
def test_the_clock_is_that_of_the_brokers_zone(zone: str, clock: str, utc: str) -> None:
    time, _ = timed(line(head=f"[{clock}] INFO"), ZoneInfo(zone))
    assert time == datetime.fromisoformat(f"{utc}+00:00")


def test_bytes_that_are_not_utf8_are_no_record() -> None:
    assert parse(line().encode().replace(b"orders", b"ord\xffers"), "eu") is KafkaReason.ENCODING


def test_a_line_that_is_cut_off_is_one_whatever_its_bytes() -> None:
    text = line(resource="Group:LITERAL:x", request="", rule="", tail="")
    assert parse(text.encode() + b"\xff", "eu") is KafkaReason.CUT_OFF


def test_a_replaced_character_is_one_that_kafka_wrote() -> None:
    assert read(line(resource="Group:LITERAL:\ufffd")).resource_name == "\ufffd"


def test_all_requests_that_the_broker_knows_are_known() -> None:
    assert {api.name for api in APIS.values()} <= kafka_apis.APIS


def test_kafkas_question_for_any_topic_is_no_question_for_the_topic_it_names() -> None:
    asked = read(allowed_line(**PROBE))
    assert (asked.resource_type, asked.resource_name) == ("TOPIC", "(any)")
    assert (asked.allowed, asked.operation, asked.reference_count) == (True, "WRITE", 0)
    old = read(zookeeper_line(**PROBE | {"operation": "Write"}))
    assert old.resource_name == "(any)"


def test_what_is_denied_in_that_question_was_not_denied() -> None:
    """Kafka goes on to look at all ACLs, and logs nothing of that."""
    assert parse(line(head=f"[{CLOCK}] TRACE", **PROBE).encode(), "eu") is None
    late = line(head="[2026-02-30 07:48:42,328] TRACE", **PROBE)
    assert parse(late.encode(), "eu") is KafkaReason.TIME


def test_what_no_acl_could_have_allowed_was_not_decided_by_acls() -> None:
    reserved = " based on rule ReservedTopic"
    assert parse(line(rule=reserved).encode(), "eu") is None
    allowed = line(rule=reserved, verdict="is Allowed operation")
    assert parse(allowed.encode(), "eu") is KafkaReason.CONTRADICTION


@pytest.mark.parametrize("text", PROBES[4:])
def test_a_topic_that_is_called_so_stays(text: str) -> None:
    assert read(text).resource_name in ("hardcode", "hardcoded")
