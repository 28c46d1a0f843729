"""Says what a run was made on: the date, the machine, and the versions of everything compared."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

_GO_MOD = Path(__file__).parent / "go" / "go.mod"


def describe(command: str) -> dict[str, str]:
    """Return what is to know about a run, by its name."""
    commit = _told("git", "describe", "--always", "--dirty", "--exclude", "*")
    python = f"Python {platform.python_version()}, uvloop {version('uvloop')}"
    return {
        "command": command,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{os.cpu_count()} cores of {_cpu()}, {_memory_gib():.0f} GiB",
        "load": f"average of {os.getloadavg()[0]:.1f} in the minute before",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "aclbroker": f"{version('aclbroker')}, commit {commit}, {python}",
        "Kafka": f"4.3.0, {_told('java', '-version')}",
        "kfake": f"{_kfake()}, {_told('go', 'version')}",
    }


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.processor() or "an unknown processor"


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _told(program: str, *arguments: str) -> str:
    """Return the first line that a program prints; a dash if there is none."""
    if shutil.which(program) is None:
        return "-"
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, cwd=_GO_MOD.parent
    )
    return (done.stdout or done.stderr or "-").splitlines()[0]


def _kfake() -> str:
    found = re.search(r"pkg/kfake (\S+)", _GO_MOD.read_text())
    return found[1] if found else "-"
