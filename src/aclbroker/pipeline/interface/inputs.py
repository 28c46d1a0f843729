"""What every job is given, and where it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from aclbroker.acl.bindings import ResourceType
from aclbroker.pipeline.acls.history import AclHistory
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.coverage import Coverage
from aclbroker.pipeline.analysis.days import Days, calendar, parted
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.interface.quarantine import Quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aclbroker.pipeline.ingest.positioned import Mark
    from aclbroker.pipeline.usage.table import Usage


@dataclass(frozen=True, slots=True)
class Window:
    """What the log covers: its first and last day (UTC), and how many events of which kind.

    ``quarantined`` counts the lines that are no events. ``by_day`` has the events of each day that
    has some; where it is not given, each day is taken to have as many.
    """

    first_day: date
    last_day: date
    events: int
    allowed: int
    denied: int
    quarantined: int
    by_day: Mapping[date, int] = field(default_factory=dict)

    @property
    def days(self) -> list[date]:
        """All days, in order, also those without events, but for long gaps.

        A clock that was wrong once must not make a log of a week one of seventy years.
        """
        return calendar(self._by_day)

    def parted(self, today: date) -> Days:
        """Return the days that have events, parted by which of them stand apart."""
        return parted(self._by_day, today)

    @property
    def _by_day(self) -> Mapping[date, int]:
        if self.by_day:
            return self.by_day
        count = (self.last_day - self.first_day).days + 1
        return {self.first_day + timedelta(days=number): 1 for number in range(count)}


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True, slots=True)
class Inputs:
    """The log as the table of usage (`pipeline.schemas.usage`), and the rules to compare it with.

    ``current``, ``proposed`` and ``other`` map clusters to their rules; a job that needs missing
    rules raises InputError. ``earlier`` has the ACLs of a cluster at the beginning of the log, if
    they are known. ``names`` are existing resources that the log lacks, by cluster and type.
    ``histories`` are the histories of the ACLs. ``positioned`` returns the log as rows of
    `pipeline.ingest.positioned`, with a mark, for the job that compares it with the histories.
    ``today`` is the day of the run, in UTC. ``coverage`` has the hours with allowed events, by
    cluster; a cluster without an entry is not judged by its coverage. ``quarantine`` has the lines
    that are no events.
    """

    spark: SparkSession
    usage: Usage
    window: Window
    output: Output
    current: Mapping[str, Ruleset] = field(default_factory=dict)
    proposed: Mapping[str, Ruleset] = field(default_factory=dict)
    other: Mapping[str, Ruleset] = field(default_factory=dict)
    earlier: Mapping[str, Ruleset] = field(default_factory=dict)
    names: Mapping[str, Mapping[ResourceType, frozenset[str]]] = field(default_factory=dict)
    histories: Mapping[str, AclHistory] = field(default_factory=dict)
    positioned: Callable[[Mark], Usage] | None = None
    today: date = field(default_factory=_today)
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    quarantine: Quarantine = field(default_factory=Quarantine)
