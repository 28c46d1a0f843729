"""What a job found, as data: figures, tables, charts and files, for any report to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that answers a question. ``note`` says what it counts, if that is not plain."""

    label: str
    value: Cell
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for a person to read: the first ones of ``total``.

    ``source`` names the one of `JobResult.outputs` that has all rows, maybe among others, or what
    they sum up. ``matrix`` tells
    that all columns of numbers count the same, so that one can be compared with the other.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    total: int
    note: str = ""
    source: str = ""
    matrix: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Numbers to draw: ``series`` maps the name of each to a value for each of ``labels``.

    ``bars`` are for things with names, longest first; ``columns`` for days, in order, stacked.
    """

    title: str
    kind: Literal["bars", "columns"]
    labels: Sequence[str]
    series: dict[str, Sequence[float]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The outcome of one job.

    ``summary`` is one sentence that answers the job's question. ``warnings`` say why the answer is
    doubtful. ``outputs`` maps the names of the written files, below the output directory, to their
    description. ``alarms`` are the numbers that a CI run may fail on, by their names in
    `pipeline.interface.alarms.ALARMS`; 0 means that the job searched and found none. ``left_out``
    are clusters that the answer does not cover, each with the reason; a warning names them, too.
    With ``is_doubted``, at least one of them is left out because of quarantined lines, or because
    too few hours have allowed events.
    """

    job: str
    title: str
    summary: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    warnings: Sequence[str] = ()
    outputs: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    is_doubted: bool = False
