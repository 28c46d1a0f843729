"""The table of usage: the same rows, whether Spark has them or workers read them."""

import zlib
from collections import Counter
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest import stored, tables
from aclbroker.pipeline.ingest.read import LogForm, Reading, usage
from aclbroker.pipeline.ingest.sources import lines
from aclbroker.pipeline.usage.table import Usage
from tests.pipeline.json_lines import record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READING = Reading(LogForm.JSONL, "named")
CLUSTERS = ("a", "b/c=1 %\u00fc")
DAYS = (21, 22, 23)
PARTS: dict[str, dict[str, Any]] = {
    "all": {},
    "a cluster": {"clusters": [CLUSTERS[1]]},
    "no cluster": {"clusters": []},
    "from a day on": {"since": date(2026, 11, 22)},
    "a day": {"since": date(2026, 11, 22), "until": date(2026, 11, 22)},
    "what was allowed": {"allowed": True},
    "what is about a name": {"allowed": False, "resource_name": "orders"},
}


@pytest.fixture(scope="module")
def usages(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Usage], "DataFrame"]:
    """One log: as lines, as tables at two places, and as rows of Spark."""
    place = tmp_path_factory.mktemp("usage")
    for number, cluster in enumerate(CLUSTERS):
        log = [
            record(
                cluster_id=cluster,
                timestamp=f"2026-11-{day}T{hour:02}:00:00.000001Z",
                resource_name=name,
                allowed=name == "orders" and hour == 1,
                rule="MatchingAcl",
            )
            for day in DAYS
            for hour in range(3)
            for name in ("orders", "\u00fc", None)
        ]
        directory = place / f"log{number}"
        directory.mkdir()
        (directory / "a.jsonl").write_text("".join(f"{each}\n" for each in log))
        tables.ingest(spark, [str(directory)], READING, str(place / f"tables{number}"))
    logs = usage(lines(spark, [str(place / "log0"), str(place / "log1")]), READING).usage
    one, other = (stored.read_usage(spark, str(place / f"tables{n}")) for n in range(2))
    rows = logs.rows.persist()
    return {"log": logs, "tables": one.and_also(other), "rows": Usage(rows)}, rows


def rows_of(found: "DataFrame") -> Counter[Any]:
    return Counter(tuple(row) for row in found.collect())


@pytest.mark.parametrize("source", ["log", "tables", "rows"])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_the_same_wherever_the_rows_are(
    usages: tuple[dict[str, Usage], "DataFrame"], source: str, part: str
) -> None:
    usages_by_source, rows = usages
    wanted = PARTS[part]
    expected = rows
    if "clusters" in wanted:
        expected = expected.where(expected["cluster"].isin(wanted["clusters"]))
    for name in ("allowed", "resource_name"):
        if name in wanted:
            expected = expected.where(expected[name] == wanted[name])
    if "since" in wanted:
        expected = expected.where(expected["day"] >= wanted["since"])
    if "until" in wanted:
        expected = expected.where(expected["day"] <= wanted["until"])
    found = usages_by_source[source].part(**wanted)
    assert rows_of(found.rows.select(*rows.columns)) == rows_of(expected)
    counts: Counter[Any] = Counter()
    for row in found.by("resource_name", "day").collect():
        counts[row["resource_name"], row["day"]] += row["events"]
    expected_counts: Counter[Any] = Counter()
    for row in expected.collect():
        expected_counts[row["resource_name"], row["day"]] += row["events"]
    assert counts == expected_counts


@pytest.mark.engines("spark")
def test_files_that_only_spark_decompresses_are_read_as_well(
    spark: "SparkSession", tmp_path: Path
) -> None:
    text = f"{record()}\n{record()}\n".encode()
    (tmp_path / "a [1].jsonl.deflate").write_bytes(zlib.compress(text))
    (tmp_path / "b.jsonl").write_bytes(text)
    found = usage(lines(spark, [str(tmp_path)]), READING)
    assert sum(row["events"] for row in found.usage.by("cluster").collect()) == 4
    assert found.quarantine.collect() == []
