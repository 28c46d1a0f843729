"""What one line of our own audit log means, and which lines mean nothing."""

import json
from datetime import UTC, date, datetime

from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.json_line import JsonReason, Said, day_of, parse
from aclbroker.pipeline.ingest.record import Record
from tests.pipeline.json_lines import NOT_RECORDS, RECORDS, record, without
from tests.support.tables import check_each


def test_every_field_of_an_event() -> None:
    assert parse(record().encode()) == Said(
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
            broker="node 1",
        ),
        1,
        datetime(2026, 11, 21, 7, 48, 42, 328_104, UTC),
    )


def test_a_roll_up_stands_for_many_events() -> None:
    last = "2026-11-21T23:59:59.999999Z"
    found = parse(record(count=70, resource_ref_count=90, last_timestamp=last).encode())
    assert isinstance(found, Said)
    assert (found.events, found.record.reference_count) == (70, 90)
    assert found.time == datetime(2026, 11, 21, 7, 48, 42, 328_104, UTC)
    assert found.last == datetime(2026, 11, 21, 23, 59, 59, 999_999, UTC)


def test_a_change_is_neither_an_event_nor_quarantined() -> None:
    assert parse(record(event="change").encode()) is None


def test_what_no_acl_could_have_allowed_is_passed_over() -> None:
    denied = {"allowed": False, "rule": "ReservedTopic", "acl": None}
    assert parse(record(**denied).encode()) is None
    assert parse(record(**denied | {"allowed": True}).encode()) is JsonReason.CONTRADICTION
    assert parse(record(**denied, count=2).encode()) is JsonReason.ROLL_UP


def test_texts_stay_as_they_were() -> None:
    def check_record(text: str) -> None:
        found = parse(text.encode())
        assert isinstance(found, Said), found
        said, event = json.loads(text), found.record
        for key in ("listener", "principal", "resource_name", "client_id", "allowed", "rule"):
            assert getattr(event, key) == said[key]
        assert event.quiet is (said["level"] == "trace")
        others = json.loads(event.other_principals or "[]")
        assert [event.principal, *others] == (said.get("principals") or [said["principal"]])

    check_each(RECORDS, check_record)


def test_what_is_no_record() -> None:
    def check_line(text: str) -> None:
        assert isinstance(parse(text.encode()), JsonReason)

    check_each(NOT_RECORDS, check_line)


REASONS = [
    ("x", JsonReason.JSON),
    (f"{record()}{record()}", JsonReason.JSON),
    (record()[:-1] + ',"principal":"User:bob"}', JsonReason.JSON),
    (record().replace('"app"', '"\\ud800"'), JsonReason.ENCODING),
    (record(event="request"), JsonReason.EVENT),
    (without("event"), JsonReason.NO_EVENT),
    (record(event=None), JsonReason.NO_EVENT),
    (json.dumps({"event": record(), "source": "splunk"}), JsonReason.NO_EVENT),
    (json.dumps({"log": record(), "stream": "stdout"}), JsonReason.NO_EVENT),
    (record(event="left_out", denied=5), JsonReason.LEFT_OUT),
    (record(timestamp="2026-02-30T00:00:00.000000Z"), JsonReason.TIMESTAMP),
    (record(level="warn"), JsonReason.LEVEL),
    (without("cluster_id"), JsonReason.CLUSTER),
    (without("listener"), JsonReason.LISTENER),
    (record(principal="alice"), JsonReason.PRINCIPAL),
    (record(principals=["User:bob"]), JsonReason.PRINCIPALS),
    (without("host"), JsonReason.HOST),
    (record(operation="ALL"), JsonReason.OPERATION),
    (record(resource_type="ANY"), JsonReason.RESOURCE_TYPE),
    (record(pattern_type="PREFIXED"), JsonReason.PATTERN_TYPE),
    (without("resource_name"), JsonReason.RESOURCE_NAME),
    (record(resource_ref_count=True), JsonReason.COUNT),
    (without("api_name"), JsonReason.API),
    (record(client_id=5), JsonReason.CLIENT),
    (record(allowed="true"), JsonReason.ALLOWED),
    (record(rule="Mine"), JsonReason.RULE),
    (record(rule="DefaultDeny"), JsonReason.CONTRADICTION),
    (record(count=2), JsonReason.ROLL_UP),
]


def test_the_reason_names_the_key() -> None:
    def check_reason(case: tuple[str, JsonReason]) -> None:
        text, reason = case
        assert parse(text.encode()) is reason

    check_each(REASONS, check_reason)


def test_bytes_that_are_not_utf8() -> None:
    assert parse(record().encode().replace(b"orders", b"\xff")) is JsonReason.ENCODING


def test_a_quarantined_line_has_the_day_that_it_claims() -> None:
    assert day_of(record(event="x").encode()) == date(2026, 11, 21)
    assert day_of(record()[:50].encode()) == date(2026, 11, 21)
    assert day_of(record(timestamp="2026-02-30T00:00:00.000000Z").encode()) is None
    assert day_of(b"\xff") is None


def test_further_principals_are_an_array_of_json() -> None:
    found = json_line.others(["User:a", 'Group:"b"', "Role:c"], "User:a")
    assert json.loads(found or "") == ['Group:"b"', "Role:c"]
    assert json_line.others(None, "User:a") is json_line.others(["User:a"], "User:a") is None
