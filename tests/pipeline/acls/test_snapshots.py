"""The ACLs that are noted beside a gathered log, from which their age becomes known."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.acls.snapshots import earlier, take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rules(*names: str) -> Ruleset:
    return Ruleset().with_acls(
        AclBinding(
            ResourceType.TOPIC,
            name,
            PatternType.LITERAL,
            "User:alice",
            "*",
            AclOperation.READ,
            AclPermission.ALLOW,
        )
        for name in names
    )


def test_the_newest_set_that_is_not_younger_than_a_day_is_found(
    spark: "SparkSession", tmp_path: Path
) -> None:
    place = str(tmp_path)
    first, second = rules("orders"), rules("orders", "bills")
    take(spark, place, {"eu": first, "us": second}, datetime(2026, 11, 1, 12, tzinfo=UTC))
    take(spark, place, {"eu": first}, datetime(2026, 11, 5, tzinfo=UTC))
    take(spark, place, {"eu": second}, datetime(2026, 11, 9, tzinfo=UTC))

    assert earlier(spark, place, date(2026, 10, 31)) == {}
    assert earlier(spark, place, date(2026, 11, 1)) == {"eu": first, "us": second}
    assert earlier(spark, place, date(2026, 11, 9)) == {"eu": second, "us": second}


def test_where_nothing_was_noted_there_is_none(spark: "SparkSession", tmp_path: Path) -> None:
    assert earlier(spark, str(tmp_path), date(2026, 11, 1)) == {}
