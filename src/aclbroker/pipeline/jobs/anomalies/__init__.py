"""Who behaves anew: new principals, new hosts, first-seen grants, and days that stand out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from aclbroker.pipeline.analysis.spikes import SpikeRule
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import TOP, Job, Option, positive, whole
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class AnomaliesOptions:
    """How the log is looked at.

    ``baseline_days``: how many days with events at its beginning are taken for normal; None for
    half of them.
    ``spike``: what is far more than before. ``top``: how many rows the tables show.
    """

    baseline_days: int | None = None
    spike: SpikeRule = field(default_factory=SpikeRule)
    top: int = 20


def run(inputs: Inputs, options: AnomaliesOptions | None = None) -> JobResult:
    """Compare the days after the baseline with the baseline.

    New principals are told apart from known ones that come from new hosts or were allowed something
    new. A principal whose hosts are nearly all new each day is listed once, not with each host, and
    so are names of resources that are new each day (see `pipeline.jobs.anomalies.novelty`). Events
    that only filtered an answer do not count as use. A known principal's days are compared with its
    own before (see `pipeline.analysis.spikes`), back to its first one.

    Raises InputError if the log is too short for the baseline and a day after it.
    """
    from aclbroker.pipeline.jobs.anomalies.find import find
    from aclbroker.pipeline.jobs.anomalies.summary import summary

    options = options or AnomaliesOptions()
    found = find(inputs, options.baseline_days, options.spike)
    return summary(found, options.top)


JOB: Final = Job(
    "anomalies",
    "find new principals and hosts, first uses and sudden peaks",
    AnomaliesOptions,
    run,
    (
        Option(
            "baseline-days",
            "baseline_days",
            "how many days with events at the beginning of the log are taken for normal (default: "
            "half of them)",
            whole,
            "N",
        ),
        Option(
            "spike-minimum",
            "spike.minimum",
            "how many on a day can be a peak at all (default: 10)",
            whole,
            "N",
        ),
        Option(
            "spike-factor",
            "spike.factor",
            "how many deviations above the median a peak lies (default: 6)",
            positive,
            "X",
        ),
        TOP,
    ),
    former_name="sessions",
)
