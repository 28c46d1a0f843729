"""What is measured of questions about all requests, in processes of their own.

    python -m benchmarks.question_work ACLS ROW ...

prints the figures of these rows as JSON: seconds and milliseconds of CPU time, MiB of memory. As in
the commands that answer questions, Python's garbage collector is off.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Set
from pathlib import Path
from typing import Final

from aclbroker.acl.bindings import AclBinding, AclOperation, ResourceType
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.invariants import counterexample
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT, Key
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.acl.reasoning.sentences import parse_sentence
from benchmarks import question_sets

STATEMENTS: Final = 1_000
TIMES: Final = 5
"""How often a question is asked; the figure is the fastest, since all others waited for more."""

WHO: Final[dict[str, Key]] = {
    "ask-name": ("team-7.7.topic-7", LITERAL),
    "ask-area": ("team-7.", PREFIX),
    "ask-prefix": ("team-1", PREFIX),
    "ask-any": ROOT,
}
"""Rows that ask who can READ topics, and the names that they ask about."""

DIFFS: Final = {"ask-diff": False, "ask-diff-open": True}
"""Rows that compare two sets, and whether resources without an ACL are open to everyone."""

MEMORY: Final = "ask-memory"
COMMANDS: Final = ("ask-command", "ask-command-listing")


def measured(count: int, wanted: Set[str]) -> dict[str, float]:
    """Return the figures of rows of so many ACLs, by their names."""
    found: dict[str, float] = {}
    first = question_sets.acls(count, seed=1)
    if wanted & set(COMMANDS):
        found.update(_commands(first, wanted))
    diffs = [row for row in DIFFS if row in wanted] or (list(DIFFS) if MEMORY in wanted else [])
    if diffs:
        second = question_sets.acls(count, seed=2)
        for row in diffs:
            found[row] = _diff(first, second, is_open=DIFFS[row])
        # Beside the two sets themselves, it is what the larger of the two comparisons takes.
        found[MEMORY] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if wanted & {"ask-ready", "ask-prove", *WHO}:
        found.update(_answers(Rules(first), wanted))
    return {row: value for row, value in found.items() if row in wanted}


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _diff(first: list[AclBinding], second: list[AclBinding], *, is_open: bool) -> float:
    old, new = (Rules(of, allow_everyone_if_no_acl_found=is_open) for of in (first, second))
    return _seconds(lambda: compare(old, new))


def _answers(rules: Rules, wanted: Set[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    reasoners: list[Reasoner] = []

    def ready() -> None:
        reasoners.append(Reasoner(rules))
        list(reasoners[0].who_can(AclOperation.READ, ResourceType.TOPIC, ROOT))

    found["ask-ready"] = _seconds(ready)
    reasoner = reasoners[0]
    for row in WHO.keys() & wanted:
        found[row] = min(_milliseconds_of_who_can(reasoner, WHO[row]) for _ in range(TIMES))
    if "ask-prove" in wanted:
        found["ask-prove"] = _seconds(lambda: _prove(rules))
    return found


def _milliseconds_of_who_can(reasoner: Reasoner, key: Key) -> float:
    question = AclOperation.READ, ResourceType.TOPIC, key
    return 1000 * _seconds(lambda: list(reasoner.who_can(*question)))


def _prove(rules: Rules) -> None:
    """Check statements, with nothing known of the rules beforehand."""
    reasoner = Reasoner(rules)
    for sentence in question_sets.sentences(STATEMENTS, seed=3):
        counterexample(reasoner, parse_sentence(sentence))


def _commands(acls: list[AclBinding], wanted: Set[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        policy, listing = Path(directory, "policy.yaml"), Path(directory, "listing.txt")
        files = {"ask-command": policy, "ask-command-listing": listing}
        if "ask-command" in wanted:
            write_policy(Policy(acls), policy)
        if "ask-command-listing" in wanted:
            with listing.open("w") as file:
                question_sets.write_listing(acls, file)
        return {row: _command(files[row]) for row in files.keys() & wanted}


def _command(acls: Path) -> float:
    """Return the CPU seconds of a whole process that answers one question from a file."""
    words = ["who-can", "READ", "topic", WHO["ask-name"][0], "--acls", str(acls)]
    process = subprocess.Popen([sys.executable, "-m", "aclbroker", *words], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not answer:
        raise RuntimeError(f"aclbroker {' '.join(words)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    gc.disable()
    json.dump(measured(int(sys.argv[1]), frozenset(sys.argv[2:])), sys.stdout)
