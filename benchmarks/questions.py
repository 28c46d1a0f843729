"""Questions about all requests: who can, what differs, what can be proved.

Only this product answers such questions. Each round of each number of ACLs has two processes
(`question_work`), so that memory is that of a comparison alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import Final

from benchmarks import question_work
from benchmarks.results import Results
from benchmarks.rows import OURS, Row
from benchmarks.running import Options, progress

SECTION: Final = "Questions about all requests"
ACLS: Final = {10_000: 5, 100_000: 3, 1_000_000: 1}
"""Numbers of ACLs, and the most rounds of each: a round with a million takes minutes."""

QUICK_ACLS: Final = (10_000, 100_000)
TARGETS_AT: Final = 100_000
PROCESSES: Final = (
    ("ask-ready", *question_work.WHO, "ask-prove", *question_work.COMMANDS),
    (*question_work.DIFFS, question_work.MEMORY),
)
"""Which rows share a process."""

_NOTE: Final = "CPU time, with Python's garbage collector off, as the commands have it."
_WARM: Final = "Once the ACLs are made ready, and with the same question asked before."

_row = partial(Row, section=SECTION)
_ROWS: Final = (
    partial(_row, "ask-ready", title="all ACLs made ready, a first who-can", unit="s", note=_NOTE),
    partial(_row, "ask-name", title="who-can on a name", unit="ms", target=50, note=_WARM),
    partial(_row, "ask-area", title="who-can on a team's prefix", unit="ms", target=50, note=_WARM),
    partial(
        _row, "ask-prefix", title="who-can on half of all names", unit="ms", target=50, note=_WARM
    ),
    partial(_row, "ask-any", title="who-can on *", unit="ms", target=50, note=_WARM),
    partial(_row, "ask-prove", title="1,000 statements", unit="s", target=10),
    partial(_row, "ask-command", title="aclbroker who-can, a policy file", unit="s", target=1),
    partial(
        _row,
        "ask-command-listing",
        title="aclbroker who-can, what kafka-acls.sh listed",
        unit="s",
        target=1,
    ),
    partial(_row, "ask-diff", title="two different sets compared", unit="s", target=5),
    partial(
        _row,
        "ask-diff-open",
        title="two different sets compared, allow.everyone.if.no.acl.found",
        unit="s",
        target=5,
    ),
    partial(
        _row,
        question_work.MEMORY,
        title="resident memory of comparing, both sets included",
        unit="MiB",
        target=500,
    ),
)


def rows_of(acls: int) -> list[Row]:
    """Return the rows of so many ACLs; the targets are for 100,000."""
    found = [row(acls=acls) for row in _ROWS]
    return found if acls == TARGETS_AT else [_without_target(row) for row in found]


def _without_target(row: Row) -> Row:
    return Row(row.name, row.section, row.title, row.unit, row.acls, note=row.note)


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for acls in ACLS for row in rows_of(acls)]


def measure(results: Results, options: Options) -> None:
    """Measure all sizes that are wanted."""
    for acls in QUICK_ACLS if options.quick else ACLS:
        wanted = [row for row in rows_of(acls) if options.wants(row)]
        for _ in range(min(options.rounds, ACLS[acls])):
            for names in PROCESSES:
                _play(results, acls, [row for row in wanted if row.name in names])
        for row in wanted:
            progress(f"{row.key}: {results.figures[row.key].median(OURS):.4g} {row.unit}")


def _play(results: Results, acls: int, wanted: list[Row]) -> None:
    """Measure rows once, in a process."""
    if not wanted:
        return
    command = [sys.executable, "-m", question_work.__name__, str(acls)]
    done = subprocess.run(
        [*command, *(row.name for row in wanted)], stdout=subprocess.PIPE, check=True
    )
    found = json.loads(done.stdout)
    results.add(wanted, OURS, [found[row.name] for row in wanted])
