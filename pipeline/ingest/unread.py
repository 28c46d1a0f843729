"""Files of which no line was an event though some should have been: of other layouts mostly."""

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
    """A file, as a URL, of which no line was an event, with how many lines it has and why."""

    source_file: str
    lines: int
    reason: str

    @property
    def is_other(self) -> bool:
        """Whether it has nothing of an authorizer, such as ``server.log``."""
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
    """Return what to say of files that are in quarantine as a whole, nothing if there are none."""
    found = sorted({each for each in files if not each.is_other})
    if not found:
        return []
    named = [f"{path_of(each.source_file)} ({each.lines:,}: {each.reason})" for each in found]
    return [f"no line is an event, all are in quarantine: {_in_short(named, '; ')}; {FORMS}"]


def others_told(files: Iterable[UnreadFile]) -> list[str]:
    """Return what to say of files that have nothing of an authorizer, nothing if there are none."""
    found = sorted({path_of(each.source_file) for each in files if each.is_other})
    if not found:
        return []
    return [f"No line of these files is of an authorizer; they were left out: {_in_short(found)}."]


def _in_short(named: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    return f"{between.join(named[:_NAMED])}{more}"
