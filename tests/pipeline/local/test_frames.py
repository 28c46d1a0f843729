"""What jobs ask of data frames means the same with Spark and without it."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.frames import Window, new_observation
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.local.tables import table_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = date(2026, 1, 2)
LATE = datetime(2026, 1, 2, 23, 59, 59, 999_999, UTC)


def frame(spark: "SparkSession", **columns: Any) -> "DataFrame":
    found: DataFrame = spark.createDataFrame(pa.table(columns))
    return found


def values(rows: "DataFrame", name: str = "x") -> list[Any]:
    found: list[Any] = rows.toArrow()[name].to_pylist()
    return found


@pytest.fixture
def letters(spark: "SparkSession") -> "DataFrame":
    names = pa.array(["b", None, "B", "é", "a"], pa.string())
    return frame(spark, x=names, n=[2, 1, 1, 3, 1])


def test_nulls_come_first_or_last_in_descending_order_and_texts_by_their_bytes(letters):
    assert values(letters.orderBy("x")) == [None, "B", "a", "b", "é"]
    assert values(letters.orderBy(F.desc("x"))) == ["é", "b", "a", "B", None]
    assert values(letters.orderBy("x", ascending=False).limit(2)) == ["é", "b"]
    in_parts = F.row_number().over(Window.partitionBy("n").orderBy("x"))
    assert values(letters.withColumn("x", in_parts).orderBy("n", "x")) == [1, 2, 3, 1, 1]
    assert [row["x"] for row in letters.orderBy("n", F.asc("x")).take(2)] == [None, "B"]


def test_null_is_neither_equal_nor_other_but_safely_equal_to_null(letters):
    assert values(letters.where(F.col("x") != "b").orderBy("x")) == ["B", "a", "é"]
    assert values(letters.where(~F.col("x").isin(["a", "b"])).orderBy("x")) == ["B", "é"]
    assert values(letters.where(F.col("x").isin([]))) == []
    assert values(letters.where(F.col("x").eqNullSafe(None))) == [None]
    assert values(letters.where(~F.col("x").eqNullSafe("b")).orderBy("x")) == [None, "B", "a", "é"]
    assert values(letters.where((F.col("x") > "a") | (F.col("n") == 1)).orderBy("x")) == [
        None, "B", "a", "b", "é",
    ]  # fmt: skip


def test_groups_know_null_as_a_value_and_sets_do_not(letters):
    by_number = letters.groupBy("n").agg(
        F.sort_array(F.collect_set("x")).alias("set"),
        F.sort_array(F.collect_list("x")).alias("list"),
        F.count("x").alias("some"),
        F.count("*").alias("all"),
        F.count_if(F.col("x") == "a").alias("a"),
        F.min("x").alias("least"),
        F.sum(F.when(F.col("x") == "b", F.col("n"))).alias("sum"),
    )
    assert by_number.orderBy("n").toArrow().to_pylist() == [
        {"n": 1, "set": ["B", "a"], "list": ["B", "a"], "some": 2, "all": 3, "a": 1, "least": "B",
         "sum": None},
        {"n": 2, "set": ["b"], "list": ["b"], "some": 1, "all": 1, "a": 0, "least": "b", "sum": 2},
        {"n": 3, "set": ["é"], "list": ["é"], "some": 1, "all": 1, "a": 0, "least": "é",
         "sum": None},
    ]  # fmt: skip
    assert sorted(map(str, values(letters.select("x").distinct()))) == ["B", "None", "a", "b", "é"]
    nobody = letters.where(F.lit(False))
    assert nobody.agg(F.sum("n"), F.count("*"), F.collect_set("x")).collect()[0][:3] == (
        None, 0, [],
    )  # fmt: skip


def test_types_are_those_of_spark(letters):
    typed = letters.groupBy("x").agg(
        F.sum("n").alias("sum"),
        F.count("*").alias("count"),
        F.size(F.collect_set("n")).alias("size"),
        F.sum(F.when(F.col("n") > 1, 1).otherwise(0)).alias("ones"),
        F.coalesce(F.max("n"), F.lit(0)).alias("most"),
        (F.max("n") / 2).alias("half"),
        F.lit(7).alias("seven"),
    )
    kinds = {each.name: each.dataType.simpleString() for each in typed.schema.fields}
    assert kinds == {
        **{"x": "string", "sum": "bigint", "count": "bigint", "size": "int", "ones": "bigint"},
        **{"most": "bigint", "half": "double", "seven": "int"},
    }


def test_a_sum_beyond_64_bits_is_an_error_and_no_other_number(spark):
    rows = frame(spark, n=[2**62, 2**62])
    with pytest.raises(Exception, match=r"(?i)overflow|out of range"):
        rows.agg(F.sum("n")).collect()


def test_lists(spark):
    lists = pa.array([["b", None, "a"], [], None], pa.list_(pa.string()))
    rows = frame(spark, k=[1, 2, 3], x=lists)

    def found(column: Any) -> list[Any]:
        return values(rows.select("k", column.alias("x")).orderBy("k"))

    assert found(F.size("x")) == [3, 0, None]
    assert found(F.sort_array("x")) == [[None, "a", "b"], [], None]
    assert found(F.array_sort("x")) == [["a", "b", None], [], None]
    assert found(F.slice("x", 1, 2)) == [["b", None], [], None]
    assert found(F.concat("x", "x")) == [["b", None, "a"] * 2, [], None]
    assert found(F.coalesce("x", F.array().cast("array<string>"))) == [["b", None, "a"], [], []]
    assert found(F.when(F.size("x") == 3, F.col("x")[0])) == ["b", None, None]
    assert values(rows.select("k", F.explode("x").alias("x")), "k") == [1, 1, 1]
    assert values(rows.select("k", F.explode_outer("x")).orderBy("k", "col"), "col") == [
        None, "a", "b", None, None,
    ]  # fmt: skip
    marked = F.transform("x", lambda each: F.struct(F.lit("m").alias("mark"), each.alias("what")))
    by_mark = rows.withColumn("each", F.explode(marked)).groupBy("each.mark").count()
    assert [tuple(row) for row in by_mark.collect()] == [("m", 3)]


def test_days_and_times_are_in_utc(spark):
    moment = pa.array([LATE, None], pa.timestamp("us", tz="UTC"))
    rows = frame(spark, x=moment, k=[1, 2]).orderBy("k")
    assert values(rows) == [LATE, None]
    assert values(rows.select(F.to_date("x").alias("x"))) == [DAY, None]
    assert values(rows.select(F.date_format("x", "yyyy-MM-dd HH:mm:ss").alias("x"))) == [
        "2026-01-02 23:59:59", None,
    ]  # fmt: skip
    assert values(rows.where(F.to_date("x") <= F.lit(DAY))) == [LATE]


def test_the_value_beside_the_least_may_be_null(spark):
    rows = frame(spark, x=pa.array([None, "b"], pa.string()), n=[1, 2])
    found = rows.agg(F.min_by("x", "n"), F.max_by("x", "n"), F.greatest(F.min("n"), F.max("n")))
    assert tuple(found.collect()[0]) == (None, "b", 2)


def test_joins(letters, spark):
    others = frame(spark, x=pa.array(["a", None, "q"], pa.string()), m=[10, 20, 30])
    assert [tuple(row) for row in letters.join(others, ["x"]).collect()] == [("a", 1, 10)]
    left = letters.join(others, "x", "left").orderBy("x")
    assert [row["m"] for row in left.collect()] == [None, None, 10, None, None]
    assert left.columns == ["x", "n", "m"]
    assert values(letters.join(others, "x", "left_semi")) == ["a"]
    assert values(letters.join(others, "x", "left_anti").orderBy("x")) == [None, "B", "b", "é"]
    named = F.broadcast(others).alias("wanted")
    safely = [letters["x"].eqNullSafe(F.col("wanted.x"))]
    assert values(letters.join(named, safely, "left_semi").orderBy("x")) == [None, "a"]
    both = letters.select("x").unionByName(others.select("m", "x").drop("m"))
    assert both.count() == 8


def test_what_is_observed_is_of_all_rows(letters):
    seen = new_observation()
    largest = F.struct(F.max("n").alias("n"), F.count("*").alias("rows")).alias("largest")
    kept = letters.observe(seen, F.sum("n").alias("sum"), largest).where(F.col("n") > 2)
    assert values(kept) == ["é"]
    assert seen.get["sum"] == 8
    assert seen.get["largest"].asDict() == {"n": 3, "rows": 5}


ODD = "a'b\"c;--\x00\\%_\n"


def test_texts_of_clients_are_texts_and_no_queries(spark):
    rows = frame(spark, x=[ODD, "x"])
    assert values(rows.where(F.col("x") == ODD)) == [ODD]
    assert values(rows.where(F.col("x").isin([ODD]))) == [ODD]
    assert values(rows.where(F.col("x").startswith("a'b"))) == [ODD]
    assert values(rows.where(F.col("x").startswith("_"))) == []
    assert values(rows.withColumn("x", F.lit(ODD)).distinct()) == [ODD]


def test_tables_are_parted_by_directories_and_read_back(spark, tmp_path: Path):
    place = str(tmp_path / "table")
    clusters = pa.array(["007", "a/b=%", None, "007"], pa.string())
    moment = pa.array([LATE] * 4, pa.timestamp("us", tz="UTC"))
    rows = frame(spark, x=[1, 2, 3, 4], cluster=clusters, day=[DAY] * 4, moment=moment)
    rows.write.mode("overwrite").partitionBy("cluster", "day").parquet(place)
    assert {str(each.parent.relative_to(place)) for each in table_files(Path(place))} == {
        "cluster=007/day=2026-01-02",
        "cluster=a%2Fb%3D%25/day=2026-01-02",
        "cluster=__HIVE_DEFAULT_PARTITION__/day=2026-01-02",
    }
    again = spark.read.schema(rows.schema).parquet(place).select(*rows.columns)
    assert again.orderBy("x").toArrow().to_pylist() == rows.orderBy("x").toArrow().to_pylist()
    # What is written anew takes the place of its directory, or of all.
    one = rows.where(F.col("x") == 4)
    one.write.mode("overwrite").partitionBy("cluster", "day").parquet(place)
    assert sorted(values(spark.read.parquet(place))) == [2, 3, 4]
    static = one.write.mode("overwrite").option("partitionOverwriteMode", "static")
    static.partitionBy("cluster", "day").parquet(place)
    assert values(spark.read.parquet(place)) == [4]
    rows.where(F.col("x") > 9).write.mode("overwrite").parquet(place)
    assert values(spark.read.parquet(place)) == []
