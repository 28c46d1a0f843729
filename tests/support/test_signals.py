"""Programs that tests start react to signals that the tests' own process ignores."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, subprocess, sys
from tests.support.signals import handle_ignored_signals

handle_ignored_signals()
number = int(sys.argv[1])
os.kill(os.getpid(), number)
child = subprocess.run(["sh", "-c", f"kill -{number} $$; exit 5"])
print(child.returncode)
"""


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "PIPE"])
def test_a_program_dies_of_a_signal_that_the_tests_ignore(name: str) -> None:
    number = signal.Signals[f"SIG{name}"].value
    shell = f"trap '' {name}; exec \"$@\""
    words = ["sh", "-c", shell, "sh", sys.executable, "-c", PROGRAM, str(number)]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == f"{-number}\n"
