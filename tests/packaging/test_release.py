"""The recipe of a release, tried out; and what it refuses."""

import subprocess
import sys

import pytest

from tests.packaging.pythons import ROOT
from tests.support.toolchain import require
from tools.release import ReleaseError, with_heading, with_version


def refs() -> str:
    """All branches and tags of this repository, and what is changed in it."""
    shown = [["git", "show-ref"], ["git", "status", "--porcelain"]]
    return "".join(subprocess.check_output(each, cwd=ROOT, text=True) for each in shown)


def test_a_dry_run_makes_the_whole_release_and_leaves_the_repository_as_it_is() -> None:
    require("git")
    before = refs()

    done = subprocess.run(
        [sys.executable, "tools/release.py", "99.0.0", "--dry-run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "built aclbroker-99.0.0-py3-none-any.whl" in done.stdout
    assert "tag v99.0.0" in done.stdout
    assert '+version = "99.0.0"' in done.stdout
    assert "+## [99.0.0] - 20" in done.stdout
    assert refs() == before


def test_what_was_unreleased_gets_a_heading_below_an_empty_one() -> None:
    changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-01-01\n"

    assert with_heading(changelog, "0.2.0", "2026-02-03") == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n\n- A.\n\n"
        "## [0.1.0] - 2026-01-01\n"
    )


@pytest.mark.parametrize(
    "changelog",
    ["# Changelog\n", "## [Unreleased]\n", "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- A.\n"],
)
def test_a_release_of_which_there_is_nothing_to_tell_is_refused(changelog: str) -> None:
    with pytest.raises(ReleaseError, match="nothing that is unreleased"):
        with_heading(changelog, "0.2.0", "2026-02-03")


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9", "1.0", "v1.0.0", "1.0.0rc1", ""])
def test_a_version_that_is_not_later_or_none_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match=r"is not (later|of the form)"):
        with_version('[project]\nversion = "0.1.0"\n', version)
