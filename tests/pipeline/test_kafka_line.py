"""What one line of Kafka's log means, and which lines mean nothing for certain."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from pipeline.ingest import kafka_line as kafka
from pipeline.ingest.kafka_line import Dialect, Reason, Record, parse
from protocol.messages import APIS
from tests.pipeline.kafka_lines import (
    NOT_RECORDS,
    RECORDS,
    allowed_line,
    line,
    simple_line,
    zookeeper_line,
)


def read(text: str, **options: ZoneInfo) -> Record:
    record = parse(text.encode(), **options)
    assert isinstance(record, Record), record
    return record


def test_every_field_of_a_record() -> None:
    assert read(line()) == Record(
        timestamp=datetime(2026, 11, 21, 7, 48, 42, 328_000, UTC),
        principal="User:alice",
        host="127.0.0.1",
        operation="DESCRIBE",
        resource_type="TOPIC",
        pattern_type="LITERAL",
        resource_name="orders.eu",
        allowed=False,
        reference_count=1,
        api="Metadata",
        rule="DefaultDeny",
        source=Dialect.ROUND,
    )


@pytest.mark.parametrize("text", RECORDS)
def test_records_are_read(text: str) -> None:
    read(text)


@pytest.mark.parametrize(("text", "reason"), NOT_RECORDS.items())
def test_what_is_no_record_has_a_reason(text: str, reason: Reason) -> None:
    assert parse(text.encode()) is reason


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
    assert (record.api, record.reference_count, record.resource_name) == (None, None, "a:b")


def test_operations_of_zookeepers_time_get_todays_names() -> None:
    assert read(zookeeper_line(operation="IdempotentWrite")).operation == "IDEMPOTENT_WRITE"


@pytest.mark.parametrize(
    "principal", ["User:CN=app one,OU=Dev,O=Acme is Denied", "User:a = b", "Role:x:y", "User:*"]
)
def test_a_principal_is_read_whole(principal: str) -> None:
    assert read(line(principal=principal)).principal == principal


def test_the_clock_is_that_of_the_brokers_zone() -> None:
    record = read(line(), zone=ZoneInfo("Europe/Berlin"))
    assert record.timestamp == datetime(2026, 11, 21, 6, 48, 42, 328_000, UTC)


def test_bytes_that_are_not_utf8_are_no_record() -> None:
    assert parse(line().encode().replace(b"orders", b"ord\xffers")) is Reason.ENCODING


def test_a_replaced_character_is_one_that_kafka_wrote() -> None:
    assert read(line(resource="Group:LITERAL:\ufffd")).resource_name == "\ufffd"


def test_all_requests_that_the_broker_knows_are_known() -> None:
    assert {api.name for api in APIS.values()} <= kafka.APIS
