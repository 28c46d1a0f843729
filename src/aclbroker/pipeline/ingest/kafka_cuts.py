"""Where lines of Kafka's log are cut that have the form in which most of them come.

They are cut where a space stands before an equals sign, which is where all fixed words but one end,
and in the rule, so that what varies of an ACL is in a slice of its own.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.clocks import Clock
from aclbroker.pipeline.ingest.cuts import Cuts
from aclbroker.pipeline.ingest.memory import Codes, Lines
from aclbroker.pipeline.ingest.slices import Rows

CUT: Final = b" ="
APART: Final = 16
"""So many bytes lie between two of them at least."""

CLOCK: Final = Clock(b"[", b" ", b"mm:ss,uuu] ")

_OF_ACL: Final = f"{kafka_line.RULE} {kafka_line.MATCHING_ACL}(acl=StandardAcl[resourceType="
_MOST_OF_SIMPLE: Final = 72
"""So many bytes are behind the last cut at most if the rule names no ACL."""

_HEAD_OF_ACL: Final = len(f" = 123456789{_OF_ACL}")
"""So many bytes of a rule that names an ACL are looked at: what is fixed, and little more."""

_END_OF_ACL: Final = len(f", permissionType=ALLOW]){kafka_line.TAIL}")


class At(IntEnum):
    """The slices of lines by their numbers. `INNER` and `PERMISSION` are empty without an ACL."""

    HOUR = 0
    MINUTES = 1
    LEVEL = 2
    ASKER = 3
    OPERATION = 4
    HOST = 5
    RESOURCE = 6
    REQUEST = 7
    DECIDED = 8
    INNER = 9
    PERMISSION = 10


_CUTS: Final = At.DECIDED - At.LEVEL
"""How many cuts there are in a line."""


def formed(lines: Lines, cuts: Cuts) -> Rows:
    """Return the lines with as many cuts as the form has, and a time before them."""
    rows = np.flatnonzero(cuts.counts == _CUTS)
    found: Rows = rows[cuts.at(0, rows) - lines.starts[rows] >= CLOCK.size]
    return found


def bounds(lines: Lines, cuts: Cuts, rows: Rows) -> list[Codes]:
    """Return where the slices of some lines begin, and at last where they end.

    The lines are some of those that are `formed`.
    """
    starts, ends = lines.starts[rows].astype(np.int32), lines.ends[rows].astype(np.int32)
    behind = cuts.at(_CUTS - 1, rows)
    # Where this is too much for the line, so that a bound would be before another, it has no form.
    head = np.where(ends - behind <= _MOST_OF_SIMPLE, ends, behind + np.int32(_HEAD_OF_ACL))
    head = np.minimum(head, ends)
    end = np.maximum(ends - np.int32(_END_OF_ACL), head)
    return [
        *(starts, starts + np.int32(CLOCK.hour_size), starts + np.int32(CLOCK.size)),
        *(cuts.at(number, rows) for number in range(_CUTS)),
        *(head, end, ends),
    ]
