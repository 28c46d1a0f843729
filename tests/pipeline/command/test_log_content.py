"""What a log holds is counted, whichever way its rows come."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline import schemas
from aclbroker.pipeline.command.log_content import content
from aclbroker.pipeline.command.log_tables import load
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.usage.table import Usage
from tests.pipeline.json_lines import record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def usage_row(**values: Any) -> dict[str, Any]:
    row = {
        **dict.fromkeys(schemas.usage().fieldNames()),
        **{"cluster": "one", "day": NOON.date(), "principal": "User:a", "host": "10.0.0.1"},
        **{"operation": "READ", "resource_type": "TOPIC", "allowed": True, "quiet": False},
        **{"rule": "SuperUser", "events": 1, "reference_count": 1},
        **{"first_seen": NOON, "last_seen": NOON},
    }
    return row | values


def usage_of(spark: "SparkSession", *rows: dict[str, Any]) -> Usage:
    return Usage(spark.createDataFrame([tuple(row.values()) for row in rows], schemas.usage()))


def quarantine_of(spark: "SparkSession", *reasons: str) -> "DataFrame":
    rows = [(None, None, "file", "line", reason) for reason in reasons]
    return spark.createDataFrame(rows, schemas.quarantine())


def test_days_clusters_lines_and_super_users_are_counted(spark: "SparkSession"):
    usage = usage_of(
        spark,
        usage_row(events=3),
        usage_row(events=4, day=date(2026, 1, 3)),
        usage_row(principal="User:b"),
        usage_row(cluster="two", principal="User:b", events=5),
        # Of these the log does not say that they are super users.
        usage_row(principal="User:c", rule="MatchingAcl"),
        usage_row(principal="User:d", rule=None, allowed=False, events=2),
        usage_row(principal="User:e", other_principals='["Group:e"]'),
    )
    found = content(usage, quarantine_of(spark, "x", "y", "y"))
    window = found.window
    assert (window.first_day, window.last_day) == (date(2026, 1, 1), date(2026, 1, 3))
    assert (window.events, window.allowed, window.denied, window.quarantined) == (17, 15, 2, 3)
    assert found.clusters == {"one": 12, "two": 5}
    assert list(found.quarantined.items()) == [("y", 2), ("x", 1)]
    assert found.super_users == {"one": {"User:a": 7, "User:b": 1}, "two": {"User:b": 5}}
    assert found.unlisted({"one": frozenset({"User:a"})}) == {"User:b": 6}
    assert found.unlisted({"one": frozenset({"User:b"}), "two": frozenset({"User:b"})}) == {
        "User:a": 7
    }


def test_a_thousand_super_users_are_named_and_all_are_counted(spark: "SparkSession"):
    rows = [usage_row(principal=f"User:{number}", events=1 + number) for number in range(1200)]
    table = usage_of(spark, *rows).rows.coalesce(1)
    found = content(Usage(table), quarantine_of(spark))
    assert found.clusters == {"one": 1200 * 1201 // 2}
    # The busiest are.
    assert found.super_users["one"] == {f"User:{n}": 1 + n for n in range(200, 1200)}


def test_a_log_without_events_is_refused(spark: "SparkSession"):
    with pytest.raises(InputError, match="no events in these days, and 2 lines that are none"):
        content(usage_of(spark), quarantine_of(spark, "x", "x"))


TIMES = ("2026-01-01T09:00:00.000000Z", "2026-01-03T10:00:00.000000Z")


@pytest.mark.parametrize(
    ("since", "until"), [(None, None), (date(2026, 1, 2), None), (None, date(2026, 1, 2))]
)
@pytest.mark.parametrize("cluster", [None, "two"])
def test_what_workers_sum_up_is_what_the_tables_hold(
    spark: "SparkSession",
    tmp_path: Path,
    since: date | None,
    until: date | None,
    cluster: str | None,
):
    allowed = {"allowed": True, "rule": "SuperUser", "acl": None}
    for number, time in enumerate(TIMES):
        lines = [
            *(record(timestamp=time, cluster_id=name, **allowed) for name in ("one", "two", "two")),
            record(timestamp=time, principal="User:b", **allowed),
            record(timestamp=time, allowed=False, rule="DefaultDeny", acl=None),
            # In quarantine, of a day and of none.
            *(record(timestamp=time, operation="FLY"), "no record", "no record"),
        ]
        (tmp_path / f"{number}.log").write_text("".join(f"{each}\n" for each in lines))
    options = AuditOptions("matrix", (str(tmp_path / "*.log"),), str(tmp_path / "out"))
    options = replace(options, since=since, until=until, cluster=cluster)
    found = load(spark, options, None)
    assert found.summary is not None
    assert content(found.usage, found.quarantine, found.summary()) == content(
        found.usage, found.quarantine
    )
