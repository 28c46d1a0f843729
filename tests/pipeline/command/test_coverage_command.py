"""`aclbroker audit` on logs with allowed events only at some times, or only of some brokers."""

import csv
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.analysis.coverage import LoggedHour, coverages
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.coverage import whole_days
from tests.pipeline import json_lines, silent_brokers
from tests.pipeline.auditing import audited
from tests.pipeline.kafka_lines import line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACLS = """\
version: 1
cluster: c
acls:
- principal: User:alice
  rules:
  - topic: orders
    allow: [READ, WRITE]
- principal: User:billing
  rules:
  - topic: monthly
    allow: [READ]
"""
CLUSTER = ("--cluster", "c")


def allowed(at: str, principal: str = "User:alice", topic: str = "orders") -> str:
    return line(
        head=f"[{at},000] DEBUG",
        principal=principal,
        verdict="is Allowed operation",
        operation="READ",
        resource=f"Topic:LITERAL:{topic}",
        rule=" based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, "
        f"resourceName={topic}, patternType=LITERAL, principal={principal}, host=*, "
        "operation=READ, permissionType=ALLOW])",
    )


def denied(at: str, principal: str = "User:mallory") -> str:
    return line(head=f"[{at},000] INFO", principal=principal, operation="READ")


@pytest.fixture
def acls(tmp_path: Path) -> Path:
    file = tmp_path / "acls.yaml"
    file.write_text(ACLS)
    return file


def written(file: Path, lines: Iterable[str]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{each}\n" for each in lines))
    return file


DAYS = [f"2026-03-{day:02}" for day in range(1, 29)]
SINCE_TODAY = [
    *(denied(f"{day} 20:10:17") for day in DAYS),
    *(allowed(f"2026-03-28 21:10:{second:02}") for second in range(40)),
]


def test_a_level_that_was_raised_a_minute_ago_lets_no_acl_go(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    log = written(tmp_path / "kafka-authorizer.log", SINCE_TODAY)
    for job in ("unused", "recommend"):
        with pytest.raises(InputError) as refused:
            audited(spark, job, log, acls, tmp_path / job, *CLUSTER)
        text = str(refused.value)
        assert "cluster c is left out: only 1 of 29 hours in its log have allowed events" in text
        assert "they are of 2026-03-28 21:10:00 to 21:10:39 UTC (40 seconds)" in text
        assert "--min-coverage asks for 100 of 100" in text
        assert "kafka.authorizer.logger to DEBUG on every broker" in text
        assert not (tmp_path / job / job).exists()

    with pytest.raises(InputError, match="asks for 4 of 100"):
        audited(spark, "unused", log, acls, tmp_path / "out", *CLUSTER, "--min-coverage", "4")
    result = audited(spark, "unused", log, acls, tmp_path / "out", *CLUSTER, "--min-coverage", "3")
    assert result.alarms["unused"] == 2
    assert (
        "Use is known from 2026-03-28 21:10:00 to 21:10:39 UTC (40 seconds) alone: 28 of 29 hours "
        "in the log have no allowed event."
    ) in result.summary
    assert result.warnings[0].startswith("Cluster c: only 1 of 29 hours in its log have")
    assert result.warnings[0].endswith("looks unused.")


@pytest.mark.parametrize("lines", [SINCE_TODAY, SINCE_TODAY[:9]], ids=["some", "none"])
def test_all_jobs_end_with_status_1_if_each_cluster_has_too_few_allowed_events(
    tmp_path: Path, acls: Path, lines: list[str]
) -> None:
    log = written(tmp_path / "kafka-authorizer.log", lines)
    command = [
        *(sys.executable, "-m", "aclbroker", "audit", "all", "--engine", "local", *CLUSTER),
        *("--input", log, "--acls", acls, "--output", tmp_path / "out", "--max-drift", "100"),
    ]
    process = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert process.returncode == 1, process.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_of_tables_that_were_gathered_the_hours_are_known_too(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    log = written(tmp_path / "log" / "kafka-authorizer.log", SINCE_TODAY)
    tables = tmp_path / "tables"
    audited(spark, "ingest", log, acls, tables, *CLUSTER)
    with pytest.raises(InputError, match=r"only 1 of 29 hours .* \(40 seconds\)"):
        audited(spark, "unused", tables, acls, tmp_path / "out", *CLUSTER)
    # The tables of an older version have no hours.
    shutil.rmtree(tables / "hours")
    with pytest.raises(InputError, match=r"only 1 of 28 days in its log have .* 2026-03-28,"):
        audited(spark, "unused", tables, acls, tmp_path / "out", *CLUSTER)


@pytest.mark.engines("local")
def test_a_silent_broker_in_tables_without_hours_is_seen_beside_tables_with_hours(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    places = [tmp_path / "old", tmp_path / "new"]
    for node, place in enumerate(places):
        lines = [event(node, hour, is_allowed=place.name == "new") for hour in range(9)]
        log = written(tmp_path / f"{place.name}.jsonl", lines)
        audited(spark, "ingest", log, acls, place)
    shutil.rmtree(places[0] / "hours")
    both = "--input", str(places[1])
    with pytest.raises(InputError, match=r"9 of 10 hours in its log of 2 brokers"):
        audited(spark, "unused", places[0], acls, tmp_path / "out", *both)


def test_one_of_three_brokers_that_logs_what_it_allows_is_too_few(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    times = [f"2026-03-01 {hour:02}:30:00" for hour in range(24)]
    for broker in range(3):
        # Files with the same lines would be copies of one broker's log.
        lines = [denied(at, f"User:mallory-{broker}") for at in times]
        if broker == 1:
            lines += [allowed(at) for at in times]
        name = tmp_path / "log" / f"kafka-{broker}" / "kafka-authorizer.log"
        written(Path(f"{name}.2026-03-01-00"), lines[:10])
        written(name, lines[10:])
    log = tmp_path / "log"
    with pytest.raises(InputError) as refused:
        audited(spark, "unused", log, acls, tmp_path / "out", *CLUSTER)
    assert "only 24 of 72 hours in its log of 3 brokers have allowed events" in str(refused.value)
    silent = ", ".join(f"{log}/kafka-{broker}/kafka-authorizer.log" for broker in (0, 2))
    assert f"none are of {silent}; they are" in str(refused.value)

    accepted = "--min-coverage", "33"
    audited(spark, "unused", log, acls, tmp_path / "out", *CLUSTER, *accepted)
    with (tmp_path / "out" / "unused" / "coverage.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["broker"][-22:], row["hours"], row["silent_hours"]) for row in rows] == [
        ("0/kafka-authorizer.log", "24", "24"),
        ("1/kafka-authorizer.log", "24", "0"),
        ("2/kafka-authorizer.log", "24", "24"),
    ]
    page = (tmp_path / "out" / "unused.html").read_text()
    assert "Allowed events that tell what was used" in page


@pytest.mark.engines("local")
def test_what_if_none_newly_denied_is_no_answer_where_use_is_not_known(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    log = written(tmp_path / "kafka-authorizer.log", SINCE_TODAY)
    fewer = tmp_path / "fewer.yaml"
    fewer.write_text(ACLS.partition("- principal: User:billing")[0])
    for job, option in (("what-if", "--proposed"), ("diff", "--other")):
        words = *CLUSTER, option, str(fewer)
        result = audited(spark, job, log, acls, tmp_path / "out", *words)
        assert "newly-denied" not in result.alarms
        assert "is not replayed" in result.warnings[0]
        result = audited(spark, job, log, acls, tmp_path / "out", *words, "--min-coverage", "3")
        assert result.alarms["newly-denied"] == 0
        fewer.write_text("version: 1\ncluster: c\nacls: []\n")
        assert audited(spark, job, log, acls, tmp_path / "out", *words).alarms["newly-denied"] == 40
        fewer.write_text(ACLS.partition("- principal: User:billing")[0])


def event(node: int, hour: int, *, is_allowed: bool, cluster: str = "c") -> str:
    """Return a line of our own log."""
    return json_lines.record(
        timestamp=f"2026-03-01T{hour:02}:00:00.000000Z",
        level="debug" if is_allowed else "info",
        cluster_id=cluster,
        node_id=node,
        operation="READ",
        resource_name="orders" if is_allowed else "secret",
        allowed=is_allowed,
        rule="MatchingAcl" if is_allowed else "DefaultDeny",
        acl=None,
    )


@pytest.mark.engines("local")
def test_brokers_of_one_file_are_told_apart_by_their_node(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    every = [event(node, hour, is_allowed=node == 2) for hour in range(9) for node in (1, 2)]
    log = written(tmp_path / "audit.jsonl", every)
    with pytest.raises(InputError, match=r"9 of 18 hours .* of 2 brokers .*; none are of node 1;"):
        audited(spark, "unused", log, acls, tmp_path / "out")


@pytest.mark.engines("local")
@pytest.mark.parametrize("job", ["unused", "recommend"])
def test_one_cluster_that_is_left_out_is_named_and_the_answer_is_no_success(
    spark: "SparkSession", tmp_path: Path, acls: Path, job: str
) -> None:
    lines = [event(1, hour, is_allowed=True) for hour in range(9)]
    lines += [event(1, hour, is_allowed=hour == 8, cluster="d") for hour in range(9)]
    log = written(tmp_path / "audit.jsonl", lines)
    other = tmp_path / "d.yaml"
    other.write_text(ACLS.replace("cluster: c", "cluster: d"))
    both = "--acls", f"d={other}"
    result = audited(spark, job, log, acls, tmp_path / "out", *both)
    assert list(result.left_out) == ["d"]
    assert result.is_doubted
    accepted = audited(spark, job, log, acls, tmp_path / "out", *both, "--min-coverage", "10")
    assert not accepted.is_doubted


@pytest.mark.engines("local")
def test_a_log_with_allowed_events_at_all_times_tells_from_when_to_when(
    spark: "SparkSession", tmp_path: Path, acls: Path
) -> None:
    lines = [
        text for day in DAYS for text in (denied(f"{day} 20:10:17"), allowed(f"{day} 20:30:00"))
    ]
    log = written(tmp_path / "kafka-authorizer.log", lines)
    result = audited(spark, "unused", log, acls, tmp_path / "out", *CLUSTER)
    assert result.alarms["unused"] == 2
    assert result.summary.endswith(
        " Use is known from 2026-03-01 20:30:00 to 2026-03-28 20:30:00 UTC (27 days)."
    )


def test_a_silent_day_without_hours_is_seen_beside_hours_of_a_log_that_names_no_broker() -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    hours = [("c", LoggedHour(None, start, True, 40, start, start))]
    days = {("c", start.date()): (40, 3)}
    (found,) = coverages([*hours, *whole_days(days, hours)]).values()
    assert (found.hours, found.covered) == (2, 1)
    days = {("c", start.date()): (40, 0)}
    assert [*whole_days(days, hours)] == []


def judged(spark: "SparkSession", place: Path, seed: int, *further: str) -> tuple[bool, int]:
    """Return whether removals were proposed for a random company, and how many uses would break."""
    chance = random.Random(seed)
    company = silent_brokers.company(chance)
    place.mkdir(parents=True)
    log, acls = silent_brokers.write(company, place, chance)
    words = "--cluster", silent_brokers.CLUSTER, "--super-user", silent_brokers.SUPER_USER, *further
    try:
        audited(spark, "unused", log, acls, place / "out", *words)
    except InputError:
        return False, 0
    text = (place / "out" / "unused" / "remaining.yaml").read_text()
    return True, len(company.broken_by(parse_policy(text).acls))


@pytest.mark.engines("local")
def test_no_removal_breaks_what_brokers_allowed_and_did_not_log(
    spark: "SparkSession", tmp_path: Path
) -> None:
    found = [judged(spark, tmp_path / str(seed), seed) for seed in range(12)]
    assert [broken for _, broken in found] == [0] * len(found)
    # Companies whose brokers log all use get an answer, and the others get none.
    assert {is_answered for is_answered, _ in found} == {True, False}
