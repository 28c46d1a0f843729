"""What stands behind ``"acl":`` in lines of our own audit log, besides the ACL itself.

The counts and times of roll-ups are read of all lines at once; what else there is, of each
different text.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.clocks import DAY, Clock
from aclbroker.pipeline.ingest.memory import Codes, Flags, Lines, Places, Spans
from aclbroker.pipeline.ingest.parsed import microseconds_of
from aclbroker.pipeline.ingest.record import MOST_REFERENCES

_COUNT: Final = b',"count":'
_LAST_CLOCK: Final = Clock(b',"last_timestamp":"', b"T", b'mm:ss.uuuuuuZ"}')


class RollUp(NamedTuple):
    """How many decisions each line stands for, and where the time of the last one begins."""

    is_roll_up: Flags
    decisions: Spans
    last: Places

    def of(self, rows: NDArray[np.int64]) -> RollUp:
        """Return those of some of the lines."""
        return RollUp(self.is_roll_up[rows], self.decisions.of(rows), self.last[rows])


class Tails(NamedTuple):
    """What stands behind ``"acl":``; ``has_more`` where that is more than an ACL and a roll-up."""

    texts: Spans
    has_more: Flags
    roll_up: RollUp | None

    def of(self, rows: NDArray[np.int64]) -> Tails:
        """Return those of some of the lines."""
        roll_up = self.roll_up and self.roll_up.of(rows)
        return Tails(self.texts.of(rows), self.has_more[rows], roll_up)


class More(NamedTuple):
    """What lines say in their tails. ``others_of`` has of each line which of ``others`` it has.

    ``last`` is None if all stand for one decision. ``first_acls`` is below 0 where there is none.
    """

    is_read: Flags
    others: list[str | None]
    others_of: Codes
    decisions: NDArray[np.int64]
    last: NDArray[np.int64] | None
    first_acls: NDArray[np.int64]

    def of(self, rows: NDArray[np.int64]) -> More:
        """Return what some of the lines say."""
        last = None if self.last is None else self.last[rows]
        others_of, decisions = self.others_of[rows], self.decisions[rows]
        first_acls = self.first_acls[rows]
        return More(self.is_read[rows], self.others, others_of, decisions, last, first_acls)


def more_of(
    lines: Lines,
    tails: Tails,
    is_read: Flags,
    time: NDArray[np.int64],
    principals: pa.DictionaryArray,
) -> More:
    """Return what tails say in lines of some times and principals, so far as these are read."""
    is_read = is_read.copy()
    decisions = np.ones(len(is_read), np.int64)
    first_acls = np.full(len(is_read), -1, np.int64)
    others_of = np.zeros(len(is_read), np.int32)
    others: dict[str | None, int] = {None: 0}
    last: NDArray[np.int64] | None = None
    has_more, texts = tails.has_more, tails.texts
    if tails.roll_up is not None:
        last = time.copy()
        rows = np.flatnonzero(is_read & ~has_more & tails.roll_up.is_roll_up)
        decisions[rows], last[rows], is_right = _rolled_up(lines, tails.roll_up.of(rows))
        is_right &= (time[rows] <= last[rows]) & (time[rows] // DAY == last[rows] // DAY)
        is_read[rows] = is_right
    rows = np.flatnonzero(is_read & has_more)
    if len(rows) > _FEW:
        different = lines.texts(texts.starts[rows], texts.ends[rows]).dictionary_encode().dictionary
        if len(different) > len(rows) // 2:
            is_read[rows], rows = False, rows[:0]
    for row in rows.tolist():
        text = lines.codes[texts.starts[row] : texts.ends[row]].tobytes()
        said = _said_by(text, principals[row].as_py())
        if said is None:
            is_read[row] = False
            continue
        others_of[row] = others.setdefault(said.others, len(others))
        first_acls[row] = -1 if said.first_acls is None else said.first_acls
        if said.decisions is None:
            continue
        last = time.copy() if last is None else last
        decisions[row], last[row] = said.decisions, said.last
        is_read[row] = time[row] <= said.last and time[row] // DAY == said.last // DAY
    return More(is_read, list(others), others_of, decisions, last, first_acls)


def taken_roll_up(
    lines: Lines, where: Flags, count: Codes, last: Codes, ends: Places
) -> RollUp | None:
    """Take how many decisions lines stand for, and when the last one was; None if none has that.

    ``count`` and ``last``: where these keys stand, if they do, in the lines ``where`` they may.
    """
    if not where.any():
        return None
    rows = np.flatnonzero(where)
    is_roll_up = np.zeros(len(where), bool)
    is_roll_up[rows] = lines.have_number(count[rows], last[rows], _COUNT)
    is_roll_up &= ends - last == _LAST_CLOCK.size
    return RollUp(is_roll_up, Spans(count + len(_COUNT), last), last)


def _rolled_up(lines: Lines, found: RollUp) -> tuple[NDArray[np.int64], NDArray[np.int64], Flags]:
    """Return the counts of decisions, the times of the last ones, and which lines have both."""
    texts = lines.texts(found.decisions.starts, found.decisions.ends).cast(pa.string())
    count = texts.cast(pa.int64()).to_numpy()
    last, is_right = _LAST_CLOCK.read(lines, found.last)
    return count, last, is_right & (count >= 1) & (count <= MOST_REFERENCES)


class _Tail(NamedTuple):
    """What stands behind ``"acl":`` in a line that says more there than an ACL."""

    others: str | None
    decisions: int | None
    last: int
    first_acls: int | None


@lru_cache(maxsize=10_000)
def _said_by(text: bytes, principal: str) -> _Tail | None:
    """Return what a tail says in a line of a principal; None if it is for `json_line` to say."""
    if len(text) > _LONGEST_TAIL or text.count(b"[") + text.count(b"{") > _DEEPEST:
        return None
    if _NOT_PLAIN.search(text):
        return None
    keys: list[list[str]] = []
    try:
        whole = '{"acl":' + text.decode()
        found = json.loads(whole, object_pairs_hook=lambda each: _noted(keys, each))
    except ValueError:
        return None
    # Objects are made from the inside out.
    if len(keys[-1]) != len(set(keys[-1])) or not _ELSEWHERE.isdisjoint(keys[-1]):
        return None
    try:
        others = json_line.others(found.get("principals"), principal)
    except ValueError:
        return None
    count, last, first = (found.get(key) for key in ("count", "last_timestamp", "first_acls"))
    if not json_line.is_position(first):
        return None
    if count is None and last is None:
        return _Tail(others, None, 0, first)
    time = json_line.time_of(last)
    if time is None or type(count) is not int or not 1 <= count <= MOST_REFERENCES:
        return None
    return _Tail(others, count, microseconds_of(time), first)


_FEW: Final = 256
"""If more tails than this are mostly different ones, lines are sooner read by `json_log`."""

_NOT_PLAIN: Final = re.compile(rb"[\x00-\x1f\\]")
"""Escapes, and what JSON must escape."""

_LONGEST_TAIL: Final = 4_000
_DEEPEST: Final = 64
"""Of deeply nested values it depends on the depth of the stack whether they are read."""

_ELSEWHERE: Final = json_line.KEYS - {"principals", "count", "last_timestamp", "first_acls"}
"""The keys that stand before the tail."""


def _noted(keys: list[list[str]], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys.append([key for key, _ in pairs if key in json_line.KEYS])
    return dict(pairs)
