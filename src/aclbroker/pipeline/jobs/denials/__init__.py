"""Finds the most frequent denials, and the smallest ACLs that would allow them, proven by a replay.

The job uses the denials in the log. It counts and skips denials that only filtered an answer, as
when a client lists the topics. It groups rare denials by kind of resource, except for denials on
the cluster. For the others it finds ACLs under the current rules (`pipeline.analysis.grant`). These
ACLs name the hosts that were denied, and no ACL implies another one. The report lists the further
rights that they open. Principals that behave like intruders come first
(`pipeline.jobs.denials.suspects`).

A denial is no reason to allow a request: a person must choose among the suggestions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import Job, Option, whole
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class DenialsOptions:
    """The options of the job.

    - ``min_events``: group denials with fewer events
    - ``most``: the number of denials, most frequent first, for which ACLs are suggested
    - ``any_host``: suggest ACLs for all hosts, not for the hosts that were denied
    - ``most_hosts``: suggest no ACLs by host for a denial from more hosts than this
    - ``top``: the number of rows in the tables of the report

    Raises ValueError for a number below 1.
    """

    min_events: int = 2
    most: int = 1000
    any_host: bool = False
    most_hosts: int = 10
    top: int = 20

    def __post_init__(self) -> None:
        for name in ("min_events", "most", "most_hosts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


def run(inputs: Inputs, options: DenialsOptions | None = None) -> JobResult:
    """Return what was denied most, and write all of it, and the ACLs that would allow it."""
    from aclbroker.pipeline.jobs.denials.find import find
    from aclbroker.pipeline.jobs.denials.summary import summary

    options = options or DenialsOptions()
    most_hosts = None if options.any_host else options.most_hosts
    found = find(inputs, min_events=options.min_events, most=options.most, most_hosts=most_hosts)
    return summary(inputs, found, options.top)


JOB: Final = Job(
    "denials",
    "tell what was denied, and the smallest ACLs that would allow it",
    DenialsOptions,
    run,
    (
        Option(
            "min-events",
            "min_events",
            "put together by kind of resource what was denied less often (default: 2)",
            whole,
            "N",
        ),
        Option(
            "any-host", "any_host", "suggest ACLs for all hosts, not for those that were denied"
        ),
        Option(
            "most-hosts",
            "most_hosts",
            "suggest no ACLs by host for what was denied from more hosts (default: 10)",
            whole,
            "N",
        ),
    ),
    needs=("acls",),
)
