"""Where lines of our own audit log are cut that are as the broker writes them.

They are cut where a comma stands before a quotation mark. So many commas are before each key, and
how many there are tells whether the line names an ACL, and whether it is a roll-up. A line may name
the position of the ACLs that decided, before the ACL; then there is one cut more.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from aclbroker.pipeline.ingest.clocks import Clock
from aclbroker.pipeline.ingest.cuts import Cuts
from aclbroker.pipeline.ingest.memory import Codes, Flags, Lines, Places
from aclbroker.pipeline.ingest.slices import Rows

CUT: Final = b',"'
ACLS_KEY: Final = b',"acls":'
CLOCK: Final = Clock(b'{"timestamp":"', b"T", b'mm:ss.uuuuuuZ"')

# The cuts before these keys, and how many there are in a line.
_AT_LEVEL, _AT_PRINCIPAL, _AT_HOST, _AT_OPERATION, _AT_NAME = 0, 5, 6, 7, 10
_AT_COUNT, _AT_CLIENT, _AT_CORRELATION, _AT_ALLOWED, _AT_ACL = 11, 14, 15, 16, 18
_BEFORE_ACL: Final = (
    *(_AT_LEVEL, _AT_PRINCIPAL, _AT_HOST, _AT_OPERATION, _AT_NAME),
    *(_AT_COUNT, _AT_CLIENT, _AT_CORRELATION, _AT_ALLOWED),
)
_IN_ACL: Final = (19, 20, 21, 22)
_NO_ACL, _WITH_ACL = 19, 25
_OF_ROLL_UP: Final = 2
"""How many cuts more a roll-up has."""


class At(IntEnum):
    """The slices of lines by their numbers.

    Those from `PATTERN` on are empty without an ACL, and `ACLS` is without a position.
    """

    HOUR = 0
    MINUTES = 1
    ORIGIN = 2
    PRINCIPAL = 3
    HOST = 4
    ASKED = 5
    NAME = 6
    REQUEST = 7
    CLIENT = 8
    CORRELATION = 9
    DECISION = 10
    ACLS = 11
    ACL = 12
    ACL_NAME = 13
    PATTERN = 14
    ACL_PRINCIPAL = 15
    PERMISSION = 16


class Tail(NamedTuple):
    """What the number of cuts tells of the end of lines, if it ``is_known``.

    ``has_acls``: the key of a position stands where it may.

    ``how_many`` and ``last``: the last cuts but one and the last ones, which stand before the count
    and the last time of lines that are roll-ups.
    """

    has_acls: Flags
    is_known: Flags
    has_acl: Flags
    is_roll_up: Flags
    how_many: Codes
    last: Codes
    ends: Places


def formed(lines: Lines, cuts: Cuts) -> Rows:
    """Return the lines with as many cuts as the form has at least, and a time so long as its."""
    rows = np.flatnonzero(cuts.counts >= _NO_ACL)
    starts = lines.starts[rows]
    found: Rows = rows[cuts.at(_AT_LEVEL, rows) - starts == CLOCK.size]
    return found


def bounds(lines: Lines, cuts: Cuts, rows: Rows) -> tuple[list[Codes], Tail]:
    """Return where the slices of some lines begin, and at last where they end, and their tails.

    The lines are some of those that are `formed`.
    """
    starts, ends = lines.starts[rows].astype(np.int32), lines.ends[rows].astype(np.int32)
    counts = cuts.counts[rows]
    acls = acl = cuts.at(_AT_ACL, rows)
    # A line that is not as the broker writes it may have no cut behind this one.
    has_acls = lines.have(acls, ACLS_KEY) & (counts > _NO_ACL)
    if has_acls.any():
        acl = cuts.at(_AT_ACL + has_acls, rows)
        counts = counts - has_acls
    has_acl = np.isin(counts, (_WITH_ACL, _WITH_ACL + _OF_ROLL_UP))
    is_roll_up = np.isin(counts, (_NO_ACL + _OF_ROLL_UP, _WITH_ACL + _OF_ROLL_UP))
    is_known = has_acl | is_roll_up | (counts == _NO_ACL)
    behind = cuts.counts[rows]
    how_many, last = cuts.at(behind - _OF_ROLL_UP, rows), cuts.at(behind - 1, rows)
    end = np.where(is_known, np.where(is_roll_up, how_many, ends), acl)
    inner = [end.copy() for _ in _IN_ACL]
    for is_named in (False, True):
        which = np.flatnonzero(has_acl & (has_acls == is_named))
        for places, number in zip(inner, _IN_ACL, strict=True):
            places[which] = cuts.at(number + is_named, rows[which])
    found = [
        *(starts, starts + np.int32(CLOCK.hour_size)),
        *(cuts.at(number, rows) for number in _BEFORE_ACL),
        *(acls, acl, *inner, end),
    ]
    return found, Tail(has_acls, is_known, has_acl, is_roll_up, how_many, last, lines.ends[rows])
