"""Accidents of the store in a file, as those of the other stores."""

import shutil
import subprocess
import sys

import pytest

from aclbroker.broker.stores import open_store
from tests.stores import full_tmpfs
from tests.stores.clock import check_clock
from tests.stores.kills import check_kills


def test_nothing_acknowledged_is_lost_by_kills_at_random_points(tmp_path, every_case):
    check_kills(f"sqlite:///{tmp_path}/acls.db", 50 if every_case else 10)


async def test_a_clock_that_jumps_loses_nothing(tmp_path, monkeypatch):
    await check_clock(open_store(f"sqlite:///{tmp_path}/acls.db"), monkeypatch)


def test_a_full_disk_refuses_changes_and_copies_and_loses_nothing(tmp_path):
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("needs unshare")
    words = [unshare, "--map-root-user", "--mount", sys.executable, "-m", full_tmpfs.__name__]
    done = subprocess.run(
        [*words, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    if "no mount" in done.stdout or "unshare" in done.stderr:
        pytest.skip("needs the right to mount")
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "done"
