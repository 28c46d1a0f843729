"""Jobs over Parquet that somebody else wrote, and tables whose connector is not there."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.command.log_tables import load
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.ingest.columns import columns
from aclbroker.pipeline.ingest.foreign_tables import foreign_rows
from aclbroker.pipeline.ingest.read import Reading, usage
from aclbroker.pipeline.ingest.sources import IngestError
from tests.pipeline.small_log import small_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = columns(
    "timestamp=at,principal=user.name,operation=op,resource_type=kind,resource_name=name,"
    "allowed=outcome,host=ip,cluster=dc"
)


def exported(log: Path, to: Path) -> int:
    """Write a log as a SIEM might, one file for each of its own; return how many lines are none."""
    to.mkdir()
    count = 0
    for path in log.iterdir():
        rows: list[dict[str, object]] = []
        for line in path.read_text().split("\n")[:-1]:
            said = json.loads(line) if line.startswith("{") else None
            if said is None:
                count += 1
                rows.append(rows[0] | {"user": {"name": "nobody"}})
                continue
            at = datetime.fromisoformat(said["timestamp"]).astimezone(UTC)
            outcome = "ALLOWED" if said["allowed"] else "DENIED"
            rows.append(
                {"at": at, "user": {"name": said["principal"]}, "op": said["operation"].title(),
                 "kind": "Topic", "name": said["resource_name"], "outcome": outcome,
                 "ip": said["host"], "dc": said["cluster_id"], "noise": 1}
            )  # fmt: skip
        pq.write_table(pa.Table.from_pylist(rows), to / f"{path.stem}.parquet")
    return count


KEYS = ("cluster", "day", "principal", "host", "operation", "resource_type", "resource_name")


def counted(
    spark: "SparkSession", inputs: Path, named: bool
) -> tuple[set[tuple[object, ...]], int]:
    options = AuditOptions(
        "matrix", (str(inputs),), str(inputs) + "-out", columns=COLUMNS if named else None
    )
    tables = load(spark, options, None)
    rows = tables.usage.by(*KEYS, "allowed").collect()
    return {tuple(row) for row in rows}, tables.quarantine.count()


def test_an_export_of_the_log_holds_what_the_log_does(spark: "SparkSession", tmp_path: Path):
    log = small_log(tmp_path).log
    assert exported(log, tmp_path / "export") == 1
    found = counted(spark, tmp_path / "export", named=True)
    assert found == counted(spark, log, named=False)
    assert found[1] == 1


@pytest.mark.engines("spark")
def test_tables_that_spark_reads_hold_the_same(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As those at URLs, and of Delta and Iceberg, are read."""
    from aclbroker.pipeline.ingest import foreign_tables

    exported(small_log(tmp_path).log, tmp_path / "export")
    expected = counted(spark, tmp_path / "export", named=True)
    monkeypatch.setattr(foreign_tables, "local_files", lambda spark, path: None)
    assert counted(spark, tmp_path / "export", named=True) == expected
    missing = columns(str(COLUMNS).replace("=op", "=none"))
    with pytest.raises(
        IngestError, match=r"there is no column 'none' for operation; .* op \(string"
    ):
        foreign_rows(spark, [str(tmp_path / "export")], missing)
    rows = foreign_rows(spark, [str(tmp_path / "export")] * 2, COLUMNS)
    found = usage(rows, Reading(None, "kafka", columns=COLUMNS))
    assert found.quarantine.count() == 2 * expected[1]


@pytest.mark.engines("spark")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "_delta_log/0.json",
            "a Delta table, for which Spark .* spark.jars.packages=io.delta:delta-",
        ),
        (
            "metadata/v1.metadata.json",
            "an Iceberg table, .*=org.apache.iceberg:iceberg-spark-runtime",
        ),
    ],
)
def test_a_table_whose_connector_is_missing_names_it(
    spark: "SparkSession", tmp_path: Path, entry: str, message: str
):
    path = tmp_path / "table" / entry
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(IngestError, match=message):
        foreign_rows(spark, [str(tmp_path / "table")], COLUMNS)
