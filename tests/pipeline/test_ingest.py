"""From files to the tables of events and quarantined lines."""

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from tests.support import toolchain

toolchain.require_spark()

from pipeline import schemas  # noqa: E402
from pipeline.ingest.kafka_line import Reason, Record, parse  # noqa: E402
from pipeline.ingest.read import Form, Ingested, IngestError, parsed, read, read_lines  # noqa: E402
from tests.pipeline.conftest import WriteLog  # noqa: E402
from tests.pipeline.kafka_lines import NOT_RECORDS, RECORDS, line, mangled  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORD: dict[str, Any] = {
    "timestamp": "2026-11-21T07:48:42.328104Z",
    "level": "debug",
    "event": "authorization",
    "cluster_id": "abc",
    "node_id": 1,
    "listener": "SASL",
    "principal": "User:alice",
    "host": "127.0.0.1",
    "operation": "WRITE",
    "resource_type": "TOPIC",
    "pattern_type": "LITERAL",
    "resource_name": "orders",
    "resource_ref_count": 4,
    "api_name": "Produce",
    "api_version": 9,
    "client_id": "app",
    "correlation_id": 7,
    "allowed": True,
    "rule": "MatchingAcl",
    "acl": {
        "resource_type": "TOPIC",
        "resource_name": "5",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "WRITE",
        "permission_type": "ALLOW",
    },
}


def record(**values: Any) -> str:
    return json.dumps(RECORD | values, separators=(",", ":"))


def without(key: str) -> str:
    return json.dumps({k: v for k, v in RECORD.items() if k != key})


@dataclass
class Reader:
    """Reads lines as a file of its own."""

    spark: "SparkSession"
    write: WriteLog

    def read(self, *lines: str | bytes, **options: Any) -> Ingested:
        return read(self.spark, [self.write(lines)], **{"cluster": "named"} | options)

    def rows(self, lines: Sequence[str | bytes], form: Form, **options: Any) -> list[Any]:
        """The rows of the lines, in their order."""
        text = read_lines(self.spark, [self.write(lines)])
        return parsed(text, cluster="named", form=form, **options).collect()


@pytest.fixture
def reader(spark: "SparkSession", write_log: WriteLog) -> Reader:
    return Reader(spark, write_log)


def test_an_event_of_our_own_log(reader: Reader) -> None:
    events, quarantine = reader.read(record())
    assert events.schema.simpleString() == schemas.events().simpleString()
    assert quarantine.schema.simpleString() == schemas.quarantine().simpleString()
    assert quarantine.count() == 0
    (row,) = events.collect()
    assert row.asDict() == {
        "cluster": "abc",
        "day": date(2026, 11, 21),
        "timestamp": row.timestamp,
        "principal": "User:alice",
        "principals": ["User:alice"],
        "host": "127.0.0.1",
        "operation": "WRITE",
        "resource_type": "TOPIC",
        "pattern_type": "LITERAL",
        "resource_name": "orders",
        "allowed": True,
        "reference_count": 4,
        "api": "Produce",
        "listener": "SASL",
        "client_id": "app",
        "rule": "MatchingAcl",
        "source": "jsonl",
    }
    assert _utc(row.timestamp) == datetime(2026, 11, 21, 7, 48, 42, 328_104, UTC)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
def test_kafkas_lines_mean_what_the_reference_says(reader: Reader, zone: str) -> None:
    randomly = random.Random(20261121)
    honest = [text.encode() for text in (*RECORDS, *NOT_RECORDS)]
    # The hour that occurs twice, and the one that does not, where clocks are set.
    clocks = [
        line(head=f"[{day} {hour:02}:{minute}:00,000] INFO").encode()
        for day in ("2026-03-08", "2026-03-29", "2026-10-25", "2026-11-01")
        for hour in range(4)
        for minute in ("00", "30")
    ]
    lines = [*honest, *clocks, *(mangled(randomly) for _ in range(6_000))]
    rows = reader.rows(lines, Form.KAFKA, zone=ZoneInfo(zone))
    assert len(rows) == len(lines)
    for text, row in zip(lines, rows, strict=True):
        meant = parse(text, ZoneInfo(zone))
        if isinstance(meant, Reason):
            assert row.reason == meant.value, text
            continue
        assert row.reason is None, text
        found = row.asDict() | {"timestamp": _utc(row.timestamp)}
        assert Record(**{key: found[key] for key in Record._fields}) == meant, text
        assert row.day == meant.timestamp.date()


def test_every_line_is_in_one_of_both_tables(reader: Reader) -> None:
    events, quarantine = reader.read(*RECORDS, *NOT_RECORDS, form=Form.KAFKA)
    assert events.count() == len(RECORDS)
    kept = {row.line: row.reason for row in quarantine.collect()}
    assert kept == {text: reason.value for text, reason in NOT_RECORDS.items()}


def test_a_quarantined_line_says_where_it_was(reader: Reader) -> None:
    _, quarantine = reader.read(line(), line(rule=" based on rule Mine"), b"\xff")
    torn, broken = sorted(quarantine.collect(), key=lambda row: row.line, reverse=True)
    assert torn.source_file.endswith("/0.log")
    assert (torn.cluster, torn.line, torn.day) == ("named", "\ufffd", None)
    assert (broken.reason, broken.day) == ("unknown rule", date(2026, 11, 21))


GOOD_JSON = [
    record(),
    record(allowed=False, rule="DefaultDeny", acl=None),
    record(principals=["User:alice", "Group:a,b"]),
    record(resource_name=None, client_id=None),
    record(resource_name="5", client_id="true", listener="{}"),
    record(resource_name='x","allowed":true}{"timestamp":"'),
    record(resource_name='"client_id": 5 } x', client_id='"principals":[5]'),
    record(resource_name="x\n[2026] \u2028\x00\x1b\x7f"),
    record(resource_name="\u00fc\U0001f600"),
    record(api_name="ApiKey99", unknown_key=[1, {"a": None}]),
    json.dumps(RECORD, indent=None, separators=(" , ", " : ")),
    f"  {record()}",
]


def test_our_own_log_keeps_every_text_as_it_was(reader: Reader) -> None:
    rows = reader.rows(GOOD_JSON, Form.JSONL)
    assert [row.reason for row in rows] == [None] * len(rows)
    for text, row in zip(GOOD_JSON, rows, strict=True):
        said = json.loads(text)
        for key in ("principal", "resource_name", "client_id", "listener", "allowed", "rule"):
            assert row[key] == said[key]
        assert row.principals == said.get("principals", [said["principal"]])


BAD_JSON = [
    "",
    "x",
    "5",
    "[]",
    f"[{record()}]",
    "{}",
    "null",
    record()[:-1],
    record()[: len(record()) // 2],
    record().replace('"', "'"),
    f"{record()}{record()}",
    f"{record()},{record()}",
    f"{record()} {record()}",
    f"{record()}}}",
    f"{record()} x",
    f"{record()[:90]}{record()}",
    record(event="request"),
    *(without(key) for key in ("timestamp", "cluster_id", "listener", "principal", "host")),
    *(without(key) for key in ("operation", "resource_type", "pattern_type", "api_name")),
    *(without(key) for key in ("resource_ref_count", "allowed", "rule", "event")),
    record(timestamp="2026-11-21 07:48:42"),
    record(timestamp="2026-02-30T07:48:42.328104Z"),
    record(timestamp="2026-11-21T07:48:42.328104+01:00"),
    record(timestamp=1795247322),
    record(principal="alice"),
    record(principal=5),
    record(principal={"a": "b:c"}),
    record(principals=[]),
    record(principals=["User:bob"]),
    record(principals=["User:alice", None]),
    record(principals=["User:alice", 5]),
    record(principals="User:alice"),
    record(principals=None),
    record(principals=["User:alice", {"a": 1}]),
    record(principals=["User:alice", True]),
    record(host=""),
    record(host=127.5),
    record(operation="Write"),
    record(operation="ALL"),
    record(resource_type="ANY"),
    record(pattern_type="PREFIXED"),
    record(resource_name=5),
    record(resource_name=-5.5),
    record(resource_name=True),
    record(resource_name=["orders"]),
    record(resource_name={"a": 1}),
    record(client_id=5),
    record(client_id=False),
    record(listener=5),
    record(cluster_id=5),
    record(api_name=5),
    record(resource_ref_count=-1),
    record(resource_ref_count="4"),
    record(resource_ref_count=4.5),
    record(resource_ref_count=2**40),
    record(allowed="true"),
    record(allowed=1),
    record(allowed=None),
    record(rule="Mine"),
    record(rule="DefaultDeny"),
    record(rule="SuperUser", allowed=False),
    line(),
]


def test_what_is_no_record_of_ours_is_quarantined(reader: Reader) -> None:
    rows = reader.rows(BAD_JSON, Form.JSONL)
    assert [text for text, row in zip(BAD_JSON, rows, strict=True) if row.reason is None] == []


def test_the_reason_names_the_key(reader: Reader) -> None:
    _, quarantine = reader.read(record(), without("host"), record(allowed="true"))
    reasons = {row.reason for row in quarantine.collect()}
    assert reasons == {"host: missing", "allowed: neither true nor false"}


def test_a_line_of_our_form_in_a_kafkas_log_is_no_event(reader: Reader) -> None:
    events, quarantine = reader.read(line(), record())
    assert (events.count(), quarantine.count()) == (1, 1)


def test_directories_and_compressed_files(reader: Reader, tmp_path: Path) -> None:
    below = tmp_path / "logs" / "cluster=a"
    below.mkdir(parents=True)
    (below / "1.jsonl").write_text(f"{record()}\n")
    (below / "2.jsonl.gz").write_bytes(gzip.compress(f"{record()}\n{record()}".encode()))
    events, quarantine = read(reader.spark, [str(tmp_path / "logs")], cluster="named")
    assert (events.count(), quarantine.count()) == (3, 0)
    assert {row.cluster for row in events.collect()} == {"abc"}


def test_a_path_that_does_not_exist(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="nowhere"):
        read(reader.spark, [str(tmp_path / "nowhere")], cluster="named")


def test_no_path(reader: Reader) -> None:
    with pytest.raises(IngestError, match="no input"):
        read(reader.spark, [], cluster="named")


def test_nothing_to_read(reader: Reader) -> None:
    with pytest.raises(IngestError, match="nothing is in"):
        reader.read()


def _utc(naive: datetime) -> datetime:
    """A timestamp that pyspark returned, which is in this machine's zone."""
    return naive.astimezone(UTC)
