"""The ACLs that are noted beside a gathered log, from which their age becomes known."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import toolchain

toolchain.require_spark()

from pipeline.ruleset import Ruleset  # noqa: E402
from pipeline.snapshots import earlier, take  # noqa: E402
from tests.acl.bindings import binding  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
