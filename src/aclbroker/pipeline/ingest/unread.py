"""Finds the files without any event, which mostly have another layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.doubts import NOT_DECISIONS
from aclbroker.pipeline.ingest.json_line import JsonReason
from aclbroker.pipeline.ingest.layouts import LAYOUTS
from aclbroker.pipeline.spark.files import path_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST: Final = 1000
_NAMED: Final = 3

FORMS: Final = (
    f"logs are read in the JSON Lines of aclbroker, and those of Kafka's authorizer in {LAYOUTS}"
)
"""What can be read, for messages."""


class UnreadFile(NamedTuple):
    """A file without any event, as a URL, with the number of its lines and the usual reason."""

    source_file: str
    lines: int
    reason: str

    @property
    def is_other(self) -> bool:
        """Whether no line is from an authorizer, as in ``server.log``."""
        return self.reason in NOT_DECISIONS


def unread_files(quarantine: DataFrame, read: DataFrame) -> list[UnreadFile]:
    """Return the files with lines in quarantine and none among those of which events were ``read``.

    A thousand at most. That the broker left decisions out is no sign of a wrong layout.
    """
    lines = quarantine.where(F.col("reason") != JsonReason.LEFT_OUT.value)
    rows = (
        lines.join(read.distinct(), "source_file", "left_anti")
        .groupBy("source_file", "reason")
        .count()
        .orderBy("source_file", "reason")
        .limit(_MOST)
        .collect()
    )
    by_file: dict[str, Counter[str]] = {}
    for row in rows:
        by_file.setdefault(row["source_file"], Counter())[row["reason"]] = row["count"]
    return [_unread(name, reasons) for name, reasons in by_file.items()]


def _unread(name: str, reasons: Counter[str]) -> UnreadFile:
    doubtful = Counter({each: reasons[each] for each in reasons if each not in NOT_DECISIONS})
    counted = doubtful or reasons
    return UnreadFile(name, counted.total(), counted.most_common(1)[0][0])


def told(files: Iterable[UnreadFile]) -> list[str]:
    """Return the warning about files of which every line is in quarantine, if there are any."""
    found = sorted({each for each in files if not each.is_other})
    if not found:
        return []
    named = [f"{path_of(each.source_file)} ({each.lines:,}: {each.reason})" for each in found]
    return [f"no line is an event, all are in quarantine: {_in_short(named, '; ')}; {FORMS}"]


def others_told(files: Iterable[UnreadFile]) -> list[str]:
    """Return the note about files without any line of an authorizer, if there are any."""
    found = sorted({path_of(each.source_file) for each in files if each.is_other})
    if not found:
        return []
    return [f"No line of these files is of an authorizer; they were left out: {_in_short(found)}."]


def _in_short(named: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    return f"{between.join(named[:_NAMED])}{more}"
