"""The jobs. Each module or package here is one of them, and its `JOB` declares it.

Importing a job imports nothing of Spark: it does so when it runs. So the command line can read its
arguments, and a server start, where Spark is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclbroker.pipeline.interface.job import Job
from aclbroker.pipeline.jobs import (
    anomalies,
    denials,
    diff,
    ingest,
    matrix,
    point_in_time,
    recommend,
    redundant,
    unused,
    what_if,
)

JOBS: Final[Mapping[str, Job[Any]]] = {
    job.name: job
    for job in (
        ingest.JOB,
        matrix.JOB,
        unused.JOB,
        redundant.JOB,
        denials.JOB,
        what_if.JOB,
        recommend.JOB,
        diff.JOB,
        anomalies.JOB,
        point_in_time.JOB,
    )
}
"""Every job by its name, in the order in which they are listed and run."""
