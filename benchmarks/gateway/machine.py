"""The CPU time of the machine: how much of it other programs use while the benchmark runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Moment(NamedTuple):
    """The seconds of the clock, of all cores while busy, and of this process and those below it."""

    clock: float
    busy: float
    own: float

    @classmethod
    def now(cls) -> Moment:
        """Read all three."""
        own = sum(_seconds(pid, with_ended=True) for pid in tree(os.getpid()))
        return cls(time.monotonic(), _busy_seconds(), own)

    def others_until(self, later: Moment) -> float:
        """Return how many cores other programs, or other machines on the host, used on average."""
        others = (later.busy - self.busy) - (later.own - self.own)
        # The kernel counts the time of a core less exactly than that of a process.
        return max(0.0, others / (later.clock - self.clock))


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the user and system time of processes so far."""
    return sum(map(_seconds, pids))


def tree(pid: int) -> list[int]:
    """Return the ids of a process and of all that it has begun and that still run."""
    pids = [pid]
    for each in pids:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
    return pids


def _seconds(pid: int, with_ended: bool = False) -> float:
    """Return the CPU time of a process, with that of its ended children on request."""
    with suppress(OSError):
        # The name in parentheses may hold spaces; utime is the 14th field.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11 : 15 if with_ended else 13])) / _TICKS
    return 0.0


def _busy_seconds() -> float:
    """Return the time of all cores without idle and waiting time, but with stolen time."""
    with Path("/proc/stat").open() as file:
        times = [int(field) for field in file.readline().split()[1:9]]
    idle, waiting = times[3:5]
    return (sum(times) - idle - waiting) / _TICKS
