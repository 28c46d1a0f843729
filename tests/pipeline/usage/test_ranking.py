"""The largest groups are those that adding up in Python finds."""

from collections import Counter
from datetime import date, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.usage.ranking import rankings
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIMENSIONS = {"who": ("cluster", "who"), "what": ("cluster", "kind", "what"), "days": ("day",)}
COUNT = 7


def random_rows(random: Random) -> list[tuple[Any, ...]]:
    first = date(2026, 1, 1)
    return [
        (
            random.choice("ab"),
            f"User:{random.randrange(40)}",
            random.choice(["TOPIC", "GROUP"]),
            random.choice([None, "x", "y", "z"]),
            first + timedelta(random.randrange(4)),
            random.randrange(4),
            # Of some groups nothing is above zero.
            random.choice([0, 0, 0, 1]),
        )
        for _ in range(500)
    ]


def test_groups_are_in_order_and_counted(spark: "SparkSession"):
    names = ("cluster", "who", "kind", "what", "day", "events", "denied")
    rows = random_rows(Random(5))
    schema = (
        "cluster string, who string, kind string, what string, day date, events long, denied long"
    )
    found = rankings(
        Usage(spark.createDataFrame(rows, schema).repartition(3)),
        DIMENSIONS,
        ("events", "denied"),
        count=COUNT,
    )
    for name, group in DIMENSIONS.items():
        sums: dict[str, Counter[tuple[Any, ...]]] = {"events": Counter(), "denied": Counter()}
        for row in (dict(zip(names, row, strict=True)) for row in rows):
            for measure, counter in sums.items():
                counter[tuple(row[column] for column in group)] += row[measure]
        # Null is behind all texts.
        expected = sorted(
            sums["events"],
            key=lambda key: (-sums["events"][key], [(value is None, value or "") for value in key]),
        )
        assert [tuple(row[column] for column in group) for row in found[name].rows] == (
            expected[:COUNT]
        )
        assert [row["events"] for row in found[name].rows] == [
            sums["events"][key] for key in expected[:COUNT]
        ]
        assert found[name].total == len(expected)
        assert found[name].above_zero == {
            measure: sum(value > 0 for value in counter.values())
            for measure, counter in sums.items()
        }


def test_nothing_has_no_groups(spark: "SparkSession"):
    nothing = spark.createDataFrame([], "cluster string, who string, events long")
    found = rankings(Usage(nothing), {"who": ("cluster", "who")}, ("events",), count=3)
    assert found["who"] == ([], 0, {"events": 0})
