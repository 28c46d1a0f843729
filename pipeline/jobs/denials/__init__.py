"""What was denied most, and what would allow it: the smallest ACLs, proven by a replay.

Denials are those that the log records. Left out, and counted, are those that only filtered an
answer, as when somebody lists the topics. What was asked less often than an option says is put
together by kind of resource, unless it is the cluster. What would allow the others is decided
under the current rules (`pipeline.analysis.grant`): ACLs for the hosts that were denied, and none
that another one implies. What these open besides is told. Principals that were denied as an
intruder would be come first (`pipeline.jobs.denials.suspects`).

That something was denied is no reason to allow it: the suggestions are for a person to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import Job, Option, whole
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class DenialsOptions:
    """What is worth telling.

    - ``min_events``: put together what was asked less often
    - ``most``: look for what would allow so many, the most frequent ones
    - ``any_host``: suggest ACLs for all hosts, and not for those that were denied
    - ``most_hosts``: suggest none for what was denied from more hosts, unless for all
    - ``top``: how many rows the tables of the report have

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
