"""The use that `ingest` counted in tables, read without Spark: what was asked and allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import values

TABLE: Final = "usage_daily"
"""The name of the table below the output of `ingest`."""

_TEXTS: Final = (
    *("listener", "principal", "other_principals", "host"),
    *("operation", "resource_type", "resource_name"),
)
_COUNTS: Final = {"events": "sum", "loud_events": "sum", "day": "max"}
_AT_ONCE: Final = 200_000


class Used(NamedTuple):
    """What somebody was allowed to do, and how many events did.

    ``others`` are the further principals of the session, as a JSON array or None. ``loud_events``
    did not only filter an answer. ``last_day`` is the day of the last of them, in UTC. What is
    equal may come more than once.
    """

    listener: str | None
    principal: str
    others: str | None
    host: str
    operation: str
    resource_type: str
    resource_name: str | None
    events: int
    loud_events: int
    last_day: date


class StoredUsage:
    """The table of usage in a directory of tables, of one cluster and the last ``days`` of it.

    Raises InputError if there is none, or if there are several clusters and ``cluster`` names none
    of them.
    """

    def __init__(self, place: str, days: int, cluster: str | None = None) -> None:
        files = list(_files(Path(place)))
        if not files:
            raise InputError(
                f"{place}: there is no table {TABLE} of aclbroker audit ingest with any rows"
            )
        self.cluster = _chosen(sorted({each.cluster for each in files}), cluster)
        own = [each for each in files if each.cluster == self.cluster]
        self.last_day = max(each.day for each in own)
        self.first_day = self.last_day - timedelta(days=days - 1)
        self._files = [each for each in own if each.day >= self.first_day]
        self._allowed_days: set[date] = set()

    def allowed(self) -> Iterator[Used]:
        """Yield what was asked and allowed. Raises InputError for a file that cannot be read."""
        tables = (table for file in self._files for table in self._read(file))
        for found in counted(tables, _TEXTS, _COUNTS):
            texts = [values(found[name]) for name in _TEXTS]
            numbers = [found[name].to_pylist() for name in _COUNTS]
            yield from map(Used, *texts, *numbers)

    @property
    def silent_days(self) -> list[date]:
        """The days with events but without an allowed one. Read `allowed` to its end first."""
        return sorted({each.day for each in self._files} - self._allowed_days)

    def _read(self, file: _File) -> Iterator[pa.Table]:
        for table in _read(file):
            if table.num_rows:
                self._allowed_days.add(file.day)
            yield table


class _File(NamedTuple):
    path: Path
    cluster: str
    day: date


def _files(place: Path) -> Iterator[_File]:
    """Yield the files of the table; Spark names a directory COLUMN=VALUE."""
    table = place / TABLE
    for path in sorted(table.rglob("*.parquet")):
        parts = path.relative_to(table).parts
        keys = dict(part.split("=", 1) for part in parts if "=" in part)
        # What is being written has such names.
        if "day" in keys and not any(part.startswith(("_", ".")) for part in parts):
            yield _File(path, unquote(keys["cluster"]), date.fromisoformat(keys["day"]))


def _chosen(clusters: Sequence[str], cluster: str | None) -> str:
    if cluster is None and len(clusters) == 1:
        return clusters[0]
    if cluster in clusters:
        return str(cluster)
    there = f"there are {', '.join(clusters)}"
    if cluster is None:
        raise InputError(f"the usage is of several clusters: {there}; name one with --cluster")
    raise InputError(f"there is no usage of cluster {cluster!r}: {there}")


def _read(stored: _File) -> Iterator[pa.Table]:
    """Yield what was allowed in a file."""
    columns = [*_TEXTS, "allowed", "quiet", "events"]
    try:
        with pq.ParquetFile(stored.path, read_dictionary=list(_TEXTS)) as file:
            for batch in file.iter_batches(_AT_ONCE, columns=columns):
                table = pa.Table.from_batches([batch]).filter(pc.field("allowed"))
                loud = pc.if_else(pc.fill_null(table["quiet"], False), 0, table["events"])
                days = pa.repeat(pa.scalar(stored.day), table.num_rows)
                yield table.append_column("loud_events", loud).append_column("day", days)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise InputError(f"{stored.path}: {error}") from error
