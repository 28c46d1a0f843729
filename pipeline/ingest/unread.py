"""Files of which no line was an event though some should have been: of other layouts mostly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.pipeline.frames import functions as F
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
    """A file, as a URL, that is in quarantine as a whole, with how many of its lines and why."""

    source_file: str
    lines: int
    reason: str


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
    return [
        UnreadFile(name, reasons.total(), reasons.most_common(1)[0][0])
        for name, reasons in by_file.items()
    ]


def told(files: Iterable[UnreadFile]) -> list[str]:
    """Return what to say of such files, nothing if there are none."""
    found = sorted(set(files))
    if not found:
        return []
    named = "; ".join(
        f"{path_of(each.source_file)} ({each.lines:,}: {each.reason})" for each in found[:_NAMED]
    )
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return [f"no line is an event, all are in quarantine: {named}{more}; {FORMS}"]
