"""What one line of our own audit log means, and which lines mean nothing."""

import json
from datetime import UTC, date, datetime

import pytest

from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.json_line import Reason, day_of, parse
from aclbroker.pipeline.ingest.record import Record
from tests.pipeline.json_lines import NOT_RECORDS, RECORDS, record, without


def test_every_field_of_an_event() -> None:
    assert parse(record().encode()) == (
        datetime(2026, 11, 21, 7, 48, 42, 328_104, UTC),
        Record(
            cluster="abc",
            listener="SASL",
            principal="User:alice",
            other_principals=None,
            host="127.0.0.1",
            operation="WRITE",
            resource_type="TOPIC",
            resource_name="orders",
            api="Produce",
            allowed=True,
            rule="MatchingAcl",
            quiet=False,
            reference_count=4,
            client_id="app",
            source="jsonl",
        ),
    )


@pytest.mark.parametrize("text", RECORDS)
def test_texts_stay_as_they_were(text: str) -> None:
    found = parse(text.encode())
    assert not isinstance(found, Reason), found
    said, event = json.loads(text), found[1]
    for key in ("listener", "principal", "resource_name", "client_id", "allowed", "rule"):
        assert getattr(event, key) == said[key]
    assert event.quiet is (said["level"] == "trace")
    others = json.loads(event.other_principals or "[]")
    assert [event.principal, *others] == (said.get("principals") or [said["principal"]])


@pytest.mark.parametrize("text", NOT_RECORDS)
def test_what_is_no_record(text: str) -> None:
    assert isinstance(parse(text.encode()), Reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", Reason.JSON),
        (f"{record()}{record()}", Reason.JSON),
        (record()[:-1] + ',"principal":"User:bob"}', Reason.JSON),
        (record().replace('"app"', '"\\ud800"'), Reason.ENCODING),
        (record(event="request"), Reason.EVENT),
        (record(timestamp="2026-02-30T00:00:00.000000Z"), Reason.TIMESTAMP),
        (record(level="warn"), Reason.LEVEL),
        (without("cluster_id"), Reason.CLUSTER),
        (without("listener"), Reason.LISTENER),
        (record(principal="alice"), Reason.PRINCIPAL),
        (record(principals=["User:bob"]), Reason.PRINCIPALS),
        (without("host"), Reason.HOST),
        (record(operation="ALL"), Reason.OPERATION),
        (record(resource_type="ANY"), Reason.RESOURCE_TYPE),
        (record(pattern_type="PREFIXED"), Reason.PATTERN_TYPE),
        (without("resource_name"), Reason.RESOURCE_NAME),
        (record(resource_ref_count=True), Reason.COUNT),
        (without("api_name"), Reason.API),
        (record(client_id=5), Reason.CLIENT),
        (record(allowed="true"), Reason.ALLOWED),
        (record(rule="Mine"), Reason.RULE),
        (record(rule="DefaultDeny"), Reason.CONTRADICTION),
    ],
)
def test_the_reason_names_the_key(text: str, reason: Reason) -> None:
    assert parse(text.encode()) is reason


def test_bytes_that_are_not_utf8() -> None:
    assert parse(record().encode().replace(b"orders", b"\xff")) is Reason.ENCODING


def test_a_quarantined_line_has_the_day_that_it_claims() -> None:
    assert day_of(record(event="x").encode()) == date(2026, 11, 21)
    assert day_of(record()[:50].encode()) == date(2026, 11, 21)
    assert day_of(record(timestamp="2026-02-30T00:00:00.000000Z").encode()) is None
    assert day_of(b"\xff") is None


def test_further_principals_are_an_array_of_json() -> None:
    found = json_line.others(["User:a", 'Group:"b"', "Role:c"], "User:a")
    assert json.loads(found or "") == ['Group:"b"', "Role:c"]
    assert json_line.others(None, "User:a") is json_line.others(["User:a"], "User:a") is None
