"""What a report is made of: the answers of the jobs, and what they were asked about."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.coverage import Coverage
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.interface.result import Cell, JobResult, Table

_FOR_PROGRAMS: Final = frozenset(
    ["reference_count", "loud_events", "before_allowed", "after_allowed"]
)
_FLIPPED: Final = (
    *("cluster", "principal", "operation", "resource_type", "resource_name", "host"),
    *("direction", "flipped_events"),
)
"""The first columns of questions that flip."""


class Column(NamedTuple):
    """A column of a table: the value of a row is ``values[codes[row]]``."""

    name: str
    values: Sequence[Cell]
    codes: array[int]


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """Rows of a table that a job wrote: all, or the first ones, of ``total``.

    ``csv`` is the name of the file beside it that has all rows, if there is one.
    """

    columns: Sequence[Column]
    total: int
    csv: str | None = None

    @property
    def count(self) -> int:
        """How many rows are here."""
        return len(self.columns[0].codes) if self.columns else 0

    def rows(self, most: int | None = None) -> Iterator[tuple[Cell, ...]]:
        """Yield the rows, or the first ``most`` of them."""
        for row in range(self.count if most is None else min(most, self.count)):
            yield tuple(values[codes[row]] for _, values, codes in self.columns)

    def records(self) -> Iterator[dict[str, Cell]]:
        """Yield the rows as mappings from the names of columns."""
        names = [column.name for column in self.columns]
        for row in self.rows():
            yield dict(zip(names, row, strict=True))


class Source(NamedTuple):
    """A file, or a broker, that rules came from, and the option that named it."""

    option: str
    place: str
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedCluster:
    """A cluster of the log, with the rules that the user gave; None for rules not given.

    ``coverage`` has the hours with allowed events.
    """

    name: str
    events: int
    current: Ruleset | None = None
    proposed: Ruleset | None = None
    other: Ruleset | None = None
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The report of one run.

    ``quarantined`` counts the lines that are no events, by reason. ``unanswered`` says by job why
    there is no result, and ``refused`` has the alarms that such a job counted nevertheless.
    ``warnings`` concern all answers. ``inputs`` are the places that were read, each with a
    description, and ``sources`` are the inputs with rules. ``output`` is the place of the tables,
    and ``command`` is the command line of the run. ``stored`` has the tables among the outputs of
    the results, by name. With ``is_unread``, a file has lines in quarantine and no event, as
    ``warnings`` say. With ``is_doubted``, a job left out clusters because of quarantined lines, or
    because too few hours have allowed events. ``not_decisions`` counts the lines that cannot be
    decisions, by reason.
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
    stored: Mapping[str, WrittenTable] = field(default_factory=dict)
    sources: Sequence[Source] = ()
    is_unread: bool = False
    is_doubted: bool = False
    refused: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    not_decisions: Mapping[str, int] = field(default_factory=dict)

    @property
    def alarms(self) -> dict[str, Mapping[str, int]]:
        """The alarms of the log itself and of each job, including jobs without a result."""
        of_log = {} if self.window is None else {"quarantined": self.window.quarantined}
        return {"the log": of_log} | self.job_alarms

    @property
    def job_alarms(self) -> dict[str, Mapping[str, int]]:
        """The alarms of each job, including jobs without a result."""
        return {each.job: each.alarms for each in self.results} | dict(self.refused)

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

    def for_people(self, table: WrittenTable) -> WrittenTable:
        """Return a table without columns that tell a person nothing: ids, and empty ones.

        That of the cluster is one of these, if there is but one to name. What flips comes before
        what explains it.
        """
        only = {self.clusters[0].name} if len(self.clusters) == 1 else set()
        columns = [
            each
            for each in table.columns
            if not each.name.endswith(("_id", "_ids"))
            and each.name not in _FOR_PROGRAMS
            and set(each.values) - {None, ""}
            and (each.name != "cluster" or set(each.values) != only)
        ]
        if any(each.name == _FLIPPED[-1] for each in columns):
            places = {name: at for at, name in enumerate(_FLIPPED)}
            columns.sort(key=lambda each: places.get(each.name, len(places)))
        return replace(table, columns=columns or table.columns)
