"""A process that uses a store is killed at random points; what it was told is there afterwards."""

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.stores import killed_stores
from tests.stores.killed_stores import KEPT

START_S = 0.25
"""A fifth of the kills come so soon that it may not even have read the store."""

CHANGE_S = 0.01


class Story:
    """What was acknowledged by the processes so far, and what the next one found."""

    def __init__(self) -> None:
        self.acl_change = self.record_change = -1
        self.starts = 0

    def take(self, line: Mapping[str, Any]) -> None:
        """Take what a process said."""
        self.acl_change = line.get("acl_change", self.acl_change)
        self.record_change = line.get("record_change", self.record_change)
        if "acls" in line:
            self.starts += 1
            self._check(line["acls"], line["records"])

    def _check(self, acls: list[int], records: Mapping[str, str]) -> None:
        last = max(acls, default=-1)
        whole = [each for each in range(max(0, last + 1 - KEPT), last + 1) for _ in range(2)]
        assert acls == whole
        assert last - self.acl_change in (0, 1)
        values = {int(value) for value in records.values()} or {-1}
        assert len(records) in (0, 2)
        assert len(values) == 1
        assert values.pop() - self.record_change in (0, 1)
        # What was not acknowledged and is there stays.
        self.acl_change = last
        self.record_change = max(map(int, records.values()), default=-1)


def check_kills(url: str, kills: int) -> None:
    """Kill a process again and again that changes the store at a URL."""
    seed = secrets.randbits(32)
    try:
        story = _killed(url, kills, random.Random(seed))
    except BaseException as error:
        error.add_note(f"the kills came as Random({seed}) says")
        raise
    assert story.starts > kills // 2


def _killed(url: str, kills: int, chance: random.Random) -> Story:
    story = Story()
    command = [sys.executable, "-m", killed_stores.__name__, url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for kill in range(kills + 1):
            program.stdin.write("go\n")
            program.stdin.flush()
            child = json.loads(program.stdout.readline())["began"]
            # The last one comes to a change in any case, so that what is there was looked at.
            count = 10 if kill == kills else chance.choice([0, *range(8)])
            for _ in range(count):
                story.take(json.loads(program.stdout.readline()))
            time.sleep(chance.uniform(0, CHANGE_S if count else START_S))
            os.kill(child, signal.SIGKILL)
            while "ended" not in (line := json.loads(program.stdout.readline())):
                story.take(line)
        program.stdin.close()
    return story
