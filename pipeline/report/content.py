"""What a report is made of: the answers of the jobs, and what they were asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.interface.result import JobResult, Table


@dataclass(frozen=True, slots=True)
class LoggedCluster:
    """A cluster of the log, and the rules that it was held against; None if not given."""

    name: str
    events: int
    current: Ruleset | None = None
    proposed: Ruleset | None = None
    other: Ruleset | None = None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that one run has to say.

    ``quarantined`` counts the lines that are no events, by reason. ``unanswered`` says by job why
    there is no result. ``warnings`` concern all answers. ``inputs`` are the places that were read,
    with what they are. ``output`` is where the tables lie, ``command`` how the run was started.
    ``is_unread``: of one of the files no line was an event, as ``warnings`` say.
    """

    results: Sequence[JobResult]
    written: datetime
    window: Window | None = None
    clusters: Sequence[LoggedCluster] = ()
    quarantined: Mapping[str, int] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    inputs: Sequence[tuple[str, str]] = ()
    output: str = ""
    command: str = ""
    is_unread: bool = False

    def compact(self, table: Table) -> Table:
        """Return a table without the column of the cluster, if there is but one to name."""
        names = [name.lower() for name in table.columns]
        if "cluster" not in names or len(self.clusters) != 1 or len(names) < 2:
            return table
        at = names.index("cluster")
        if any(row[at] != self.clusters[0].name for row in table.rows):
            return table
        rows = [[*row[:at], *row[at + 1 :]] for row in table.rows]
        columns = [*table.columns[:at], *table.columns[at + 1 :]]
        return replace(table, columns=columns, rows=rows)
