"""From files to the tables of events and quarantined lines."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.json_line import JsonReason
from aclbroker.pipeline.ingest.kafka_line import TAIL, KafkaReason
from aclbroker.pipeline.ingest.read import (
    LogForm,
    Reading,
    events,
    usage,
)
from aclbroker.pipeline.ingest.sources import IngestError, head, lines
from aclbroker.pipeline.ingest.unread import others_told, told, unread_files
from aclbroker.pipeline.local.session import LocalSession
from tests.pipeline.conftest import WriteLog
from tests.pipeline.ingesting import added_up, usage_of
from tests.pipeline.json_lines import record
from tests.pipeline.kafka_lines import line, zookeeper_line
from tools.audit_data.forgery import VICTIM
from tools.generate_audit import main as generate_audit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

JSONL = Reading(LogForm.JSONL, "named")
KAFKA = Reading(LogForm.KAFKA, "named")


def read(
    spark: "SparkSession", paths: Sequence[str | Path], reading: Reading
) -> tuple[list["Row"], list["Row"]]:
    """The events and the quarantined lines of files."""
    found = events(lines(spark, [str(path) for path in paths]), reading)
    return found.events.collect(), found.quarantine.collect()


def dtypes(schema: "StructType") -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def test_an_event_is_a_row(spark: "SparkSession", write_log: WriteLog) -> None:
    principals = ["User:alice", "Group:a"]
    found = events(lines(spark, [write_log([record(principals=principals)])]), JSONL)
    assert dtypes(found.events.schema) == dtypes(schemas.events())
    assert dtypes(found.quarantine.schema) == dtypes(schemas.quarantine())
    (row,) = found.events.collect()
    assert row.timestamp.astimezone(UTC) == datetime(2026, 11, 21, 7, 48, 42, 328_104, UTC)
    assert row.asDict() == {
        "cluster": "abc",
        "day": date(2026, 11, 21),
        "timestamp": row.timestamp,
        "listener": "SASL",
        "principal": "User:alice",
        "other_principals": '["Group:a"]',
        "host": "127.0.0.1",
        "operation": "WRITE",
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "api": "Produce",
        "allowed": True,
        "rule": "MatchingAcl",
        "quiet": False,
        "reference_count": 4,
        "client_id": "app",
        "source": "jsonl",
        "events": 1,
        "last_timestamp": row.timestamp,
        "acls": None,
        "first_acls": None,
    }


def test_lines_that_are_no_events(spark: "SparkSession", write_log: WriteLog) -> None:
    torn = b"\xff\x00"
    log = write_log([line(), torn, line(rule=" based on rule Mine"), torn, f"{line()}\r", record()])
    found, quarantine = read(spark, [log], KAFKA)
    assert len(found) == 2
    assert {row.source_file.rpartition("/")[2] for row in quarantine} == {Path(log).name}
    said = {(row.cluster, row.line, row.reason, row.day) for row in quarantine}
    assert said == {
        ("named", "\ufffd\x00", KafkaReason.OTHER.value, None),
        ("named", line(rule=" based on rule Mine"), KafkaReason.RULE.value, date(2026, 11, 21)),
        ("named", record(), KafkaReason.HEAD.value, None),
    }
    assert len(quarantine) == 4


def test_usage_is_events_counted(spark: "SparkSession", write_log: WriteLog) -> None:
    hours = [f"2026-11-{day}T{hour:02}:00:00.000001Z" for day in (21, 22) for hour in range(3)]
    log = [
        record(cluster_id=cluster, timestamp=time, client_id=client, allowed=allowed)
        for cluster in ("a", "b")
        for time in hours
        for client in ("x", None)
        for allowed in (True, False)
    ]
    found = lines(spark, [write_log([*log, "x", "x", "x"])])
    counted = usage(found, JSONL)
    assert dtypes(counted.usage.rows.schema) == dtypes(schemas.usage())
    at_once = rows(added_up(counted.usage.rows))
    assert at_once == rows(usage_of(events(found, JSONL).events))
    assert sum(row["events"] for row in at_once) == len(log)
    assert {(row["cluster"], row["day"].day, row["allowed"], row["events"]) for row in at_once} == {
        (cluster, day, allowed, 6)
        for cluster in ("a", "b")
        for day in (21, 22)
        for allowed in (True, False)
    }
    first = {row["first_seen"].astimezone(UTC).hour for row in at_once}
    last = {row["last_seen"].astimezone(UTC).hour for row in at_once}
    assert (first, last) == ({0}, {2})
    assert {row["reference_count"] for row in at_once} == {24}
    assert [row.line for row in counted.quarantine.collect()] == ["x"] * 3


def rows(found: "DataFrame") -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in found.collect()), key=repr)


ODD_NAMES = ("a b [1] {x} *? 100%20 \u00fc.jsonl", "\\.jsonl", "#.jsonl", "x,y;z.jsonl")


def test_files_of_all_kinds(spark: "SparkSession", tmp_path: Path) -> None:
    below = tmp_path / "logs" / "cluster=a" / "day=1"
    below.mkdir(parents=True)
    two = f"{record()}\n{record()}".encode()
    (below / "1.jsonl").write_bytes(two)
    (below / "2.jsonl.gz").write_bytes(gzip.compress(two) + gzip.compress(b"\n" + two))
    (below / "3.jsonl.zst").write_bytes(pa.Codec("zstd").compress(two, asbytes=True))
    (below / "4.jsonl").write_bytes(b"")
    for name in ODD_NAMES:
        (tmp_path / name).write_bytes(two)
    for directory in ("other [1-2]", "more 1"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "a.jsonl").write_bytes(two)
    names = ["logs", *ODD_NAMES, "other [1-2]", "m?r[e] [1-2]/*.jsonl", "more 1"]
    found, quarantine = read(spark, [tmp_path / name for name in names], JSONL)
    assert quarantine == []
    # What two names are of is read once.
    assert len(found) == 8 + 2 * len(ODD_NAMES) + 2 + 2
    assert {row.cluster for row in found} == {"abc"}


def test_a_path_that_does_not_exist(spark: "SparkSession", tmp_path: Path) -> None:
    for name, reason in {
        "nowhere": "nowhere",
        "no*": r"no\*",
        "a[": "Unclosed|no file has such a name",
        "a:b/{": "",
    }.items():
        with pytest.raises(IngestError, match=f"the input cannot be read: .*{reason}"):
            lines(spark, [str(tmp_path / name)])


def test_no_path(spark: "SparkSession") -> None:
    with pytest.raises(IngestError, match="no input was named"):
        lines(spark, [])


BARE = line().removesuffix(TAIL).replace("[", "").replace("]", "")


def test_each_file_has_the_form_of_its_first_line(
    spark: "SparkSession", write_log: WriteLog, tmp_path: Path
) -> None:
    in_json = {
        "@timestamp": "2026-11-21T07:48:42.328Z",
        "level": "INFO",
        "logger_name": "kafka.authorizer.logger",
        "message": BARE.split(" ", 3)[3],
    }
    for log in (
        ["", record(), line()],
        ["{", record()],
        [" ", zookeeper_line(), record()],
        [BARE, line(), BARE],
        [json.dumps(in_json), record()],
    ):
        write_log(log)
    found, quarantine = read(spark, [tmp_path], Reading(None, "named"))
    sources = Counter(row.source for row in found)
    assert sources == {"jsonl": 2, "kafka-zookeeper": 1, "kafka-3.3": 3}
    assert sorted(row.line for row in quarantine if row.line.strip()) == sorted(
        ["{", line(), line(), record(), record()]
    )


def test_one_form_for_all_files(spark: "SparkSession", write_log: WriteLog, tmp_path: Path) -> None:
    write_log([record()])
    write_log([line()])
    write_log([BARE])
    assert len(read(spark, [tmp_path], JSONL)[0]) == 1
    assert len(read(spark, [tmp_path], KAFKA)[0]) == 2
    for form in (None, LogForm.KAFKA):
        reading = Reading(form, "named", pattern="%d %p %m%n")
        found, _ = read(spark, [tmp_path], reading)
        assert Counter(row.source for row in found) == Counter(
            ["kafka-3.3"] + ["jsonl"] * (form is None)
        )


def test_the_beginning_of_a_log(spark: "SparkSession", write_log: WriteLog) -> None:
    empty = write_log(["", " "])
    assert head(spark, [empty, write_log(["x"])]) == b"x\n"
    with pytest.raises(IngestError, match=r"nothing is in .*\.log"):
        head(spark, [empty])


def test_files_without_any_event_are_told(
    spark: "SparkSession", write_log: WriteLog, tmp_path: Path
) -> None:
    write_log([record(), "x"])
    write_log([line(), "x"])
    odd = write_log(["<event>Principal = User:x is Allowed</event>", "x"] * 3)
    other = write_log(["[2026-11-21 07:48:42,328] INFO started (kafka.Log)", "", "\tat x"])
    write_log([record(event="left_out", denied=3, allowed=0)])
    counted = usage(lines(spark, [str(tmp_path)]), Reading(None, "named"))
    found = unread_files(counted.quarantine, counted.read)
    assert set(found) == {
        (Path(odd).as_uri(), 3, KafkaReason.HEAD.value),
        (Path(other).as_uri(), 3, KafkaReason.OTHER.value),
    }
    assert others_told(found) == [
        f"No line of these files is of an authorizer; they were left out: {other}."
    ]
    assert others_told([]) == []
    (said,) = told(found)
    assert said.startswith(f"no line is an event, all are in quarantine: {odd} (3: does not begin")
    assert "[%d] %p %m (%c)%n, " in said
    assert "--pattern" in said
    assert told([]) == []


@pytest.mark.parametrize("text", [record(resource_name="orders"), line()])
def test_a_log_of_a_pod_is_read_in_either_form(
    spark: "SparkSession", write_log: WriteLog, text: str
) -> None:
    in_cri = f"2026-11-21T07:48:42.328104412Z stdout F {text}"
    in_docker = json.dumps({"log": f"{text}\n", "stream": "stdout"})
    for wrapped, broken in ((in_cri, "2026-11-21 F x"), (in_docker, '{"log": "x"}')):
        path = write_log([wrapped, broken, wrapped])
        found, quarantined = read(spark, [path], Reading(None, "named"))
        assert [row["allowed"] for row in found] == [text == record(resource_name="orders")] * 2
        assert [row["source_file"] for row in quarantined] == [Path(path).as_uri()]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_log_of_a_pod_may_begin_with_another_event_or_a_byte_order_mark(
    spark: "SparkSession", write_log: WriteLog, mark: str
) -> None:
    started = '{"timestamp":"2026-11-21T07:48:42.328000Z","level":"info","event":"started"}'
    texts = [record(), record()] if mark else [started, record(), record()]
    in_cri = [f"2026-11-21T07:48:42.328104412Z stdout F {each}" for each in texts]
    in_docker = [json.dumps({"log": f"{each}\n", "stream": "stdout"}) for each in texts]
    for wrapped in (in_cri, in_docker):
        path = write_log([mark + wrapped[0], *wrapped[1:]])
        found, quarantined = read(spark, [path], Reading(None, "named"))
        assert len(found) == 2
        assert [row["reason"] for row in quarantined] == [JsonReason.EVENT.value] * (not mark)


@pytest.fixture
def small_pieces(spark: "SparkSession") -> Iterator[None]:
    """Has files read in pieces of a few hundred lines."""
    if isinstance(spark, LocalSession):
        yield  # it reads all in one piece
        return
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, str(300_000))
    yield
    spark.conf.set(name, before)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("form", LogForm)
def test_what_is_true_of_generated_data_is_found(
    spark: "SparkSession", tmp_path: Path, form: LogForm
) -> None:
    options = "--events 6000 --days 3 --principals 50 --topics 50 --groups 20 --acls 200 --forged 9"
    generate_audit([str(tmp_path), "--files", "2", "--format", form.value, *options.split()])
    truth = json.loads((tmp_path / "truth.json").read_text())
    found = usage(lines(spark, [str(tmp_path / "log")]), Reading(form, "named"))
    by = ["cluster", "day", "principal", "allowed", "rule", "resource_type"]
    counts = found.usage.rows.groupBy(*by).agg(F.sum("events").alias("events")).collect()
    quarantined = found.quarantine.collect()

    def count(*names: str) -> Counter[Any]:
        counted: Counter[Any] = Counter()
        for row in counts:
            counted[tuple(row[name] for name in names)] += row["events"]
        return counted

    assert count("principal")[VICTIM,] == 0
    assert sum(count().values()) == truth["events"]
    assert count("allowed") == {(True,): truth["allowed"], (False,): truth["denied"]}
    assert count("rule") == {(rule,): n for rule, n in truth["by_rule"].items()}
    types = truth["by_resource_type"]
    assert count("resource_type") == {(each,): n for each, n in types.items()}
    days = {(date.fromisoformat(day),): sum(n.values()) for day, n in truth["by_day"].items()}
    assert count("day") == days
    cluster = truth["cluster_id"] if form is LogForm.JSONL else "named"
    assert count("cluster").keys() == {(cluster,)}
    assert len(quarantined) == truth["unreliable_lines"]
    assert any(VICTIM in row.line for row in quarantined) is (form is LogForm.KAFKA)
