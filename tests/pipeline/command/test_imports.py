"""A small log is decided at once: nothing is loaded that only other work needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pipeline.small_log import small_log
from tests.support import toolchain

toolchain.require_spark()

_NEEDLESS = ("aiokafka", "asyncio", "pandas", "py4j", "pyspark", "structlog", "uvloop")
_RUN = """
import sys
from aclbroker.cli import main
names = sys.argv.pop().split(",")
try:
    main()
finally:
    print("loaded:", *(name for name in names if name in sys.modules))
"""


def test_a_small_log_is_decided_without_what_only_other_commands_need(tmp_path: Path) -> None:
    files = small_log(tmp_path)
    words = ["--input", files.log, "--acls", files.acls, "--output", tmp_path / "out"]
    command = [sys.executable, "-c", _RUN, "audit", "all", *map(str, words), "--engine", "local"]
    process = subprocess.run(
        [*command, ",".join(_NEEDLESS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == "loaded:"
