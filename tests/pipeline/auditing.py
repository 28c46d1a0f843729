"""Jobs from files to files, as the command `aclbroker audit` runs them, in the session of tests."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING

from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.interface.result import JobResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audited(
    spark: SparkSession,
    job: str,
    log: Path,
    acls: Path,
    output: Path,
    *words: str,
    told: io.StringIO | None = None,
) -> JobResult:
    """Run one job on a log and a policy file, with further ``words`` of the command.

    What standard error would have is written to ``told``.
    """
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    given = [job, "--input", str(log), "--acls", str(acls), "--output", str(output), *words]
    options = audit_options(parser.parse_args(given), given)
    progress = Progress(told or io.StringIO())
    (result,) = answered(spark, options, read_rules(options, None), progress).results
    return result
