"""What somebody gets who clones the repository, on a machine without Java, Go or Node."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.pythons import ROOT
from tests.support.toolchain import require, run

PROGRAMS = """
    awk basename bash cat chmod cp cut dirname env false find git grep gzip head ln ls make mkdir
    mktemp mv printf pwd readlink realpath rm sed sh sleep sort tail tar test touch tr true uname
    wc xargs
"""
"""All that is on the PATH, besides Python."""

LONGEST = """
    acl fuzz gate memory migrate pipeline/ingest pipeline/jobs protocol
    server/test_turns.py stores tools
"""
"""Tests that take longest, and need none of the programs that are missing."""

NETWORK = ("PIP_", "SSL_", "REQUESTS_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""The beginnings of the variables that say how pip reaches the packages."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of the last commit, with the changes of tracked files that are not committed yet."""
    git = require("git")
    directory = tmp_path / "clone"
    run([git, "clone", "--quiet", str(ROOT), str(directory)], cwd=tmp_path)
    changes = [git, "diff", "--binary", "HEAD"]
    patch = subprocess.run(changes, cwd=ROOT, capture_output=True, check=True).stdout
    if patch:
        subprocess.run([git, "apply"], cwd=directory, input=patch, check=True)
    return directory


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home without anything in it, few programs, and the packages that pip has fetched before."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in PROGRAMS.split():
        (programs / program).symlink_to(require(program))
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    home = tmp_path / "home"
    home.mkdir()
    asked = [sys.executable, "-m", "pip", "cache", "dir"]
    cache = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    network = {n: value for n, value in os.environ.items() if n.upper().startswith(NETWORK)}
    return {**network, "PATH": str(programs), "HOME": str(home), "PIP_CACHE_DIR": cache}


@pytest.mark.timeout(900)
def test_make_test_sets_up_all_it_needs_and_passes(
    clone: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    # All modules are collected; those whose tests take longest are not run, nor are the checks of
    # the source, which the outer `make test` has made.
    left_out = " ".join(f"--deselect tests/{each}" for each in LONGEST.split())
    arguments = f"-m 'not peer and not exhaustive' {left_out}"

    done = subprocess.run(
        [
            shutil.which("make") or "make",
            "--old-file=checked-and-compiled",
            "test",
            "WORKERS=0",
            f"ARGS={arguments}",
        ],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-8000:]
    last = done.stdout.splitlines()[-1]
    assert " passed" in last
    assert "Spark needs Java 17 or newer" in done.stdout
