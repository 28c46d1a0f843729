"""Who used what: effective use by principal, resource, operation and day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import TOP, Job
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class MatrixOptions:
    """``top``: how many rows the tables of the summary show."""

    top: int = 20


def run(inputs: Inputs, options: MatrixOptions | None = None) -> JobResult:
    """Write the table of use, partitioned by cluster and day, and sum it up.

    A row is what one principal (the first one of its sessions) did with one operation on one
    resource of a cluster on a day: ``events``, of them ``allowed_events``, ``denied_events`` and
    ``quiet_events`` (which only filtered an answer), ``reference_count``, ``first_seen`` and
    ``last_seen``. If rules are given, also write what they decide on it, and by which ACLs (see
    `pipeline.jobs.matrix.decisions`).
    """
    from aclbroker.pipeline.interface.coverage import coverage_warnings
    from aclbroker.pipeline.jobs.matrix.find import find
    from aclbroker.pipeline.jobs.matrix.summary import summary

    options = options or MatrixOptions()
    found = summary(find(inputs, options.top), inputs.window)
    silent = coverage_warnings(inputs, inputs.coverage, "Use is incomplete.")
    return replace(found, warnings=[*found.warnings, *silent])


JOB: Final = Job("matrix", "tell who used what, how often and when", MatrixOptions, run, (TOP,))
