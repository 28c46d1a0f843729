"""Makes a release of the last commit: `make release VERSION=1.2.0`.

Writes the version and the changelog's heading, commits both, tags the commit, and builds the wheel
into dist/ and, where docker runs, the image. Nothing is published; what to do for that is printed.
With --dry-run all but the image is done in a clone that is thrown away.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNRELEASED = "## [Unreleased]\n"
VERSION = re.compile(r'^version = "(\d+)\.(\d+)\.(\d+)"$', re.MULTILINE)
DRY_RUN_IDENTITY = ("-c", "user.name=dry run", "-c", "user.email=dry-run@localhost")


class ReleaseError(Exception):
    """Why there can be no such release."""


def main() -> None:
    """Make the release that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="MAJOR.MINOR.PATCH")
    parser.add_argument("--dry-run", action="store_true", help="leave this repository as it is")
    options = parser.parse_args()
    try:
        if options.dry_run:
            try_out(options.version)
        else:
            if git(ROOT, "status", "--porcelain"):
                raise ReleaseError("there are changes that are not committed")
            release(ROOT, options.version)
            build_image(options.version)
            print(f"to publish: git push --follow-tags; upload dist/ of v{options.version}")
    except ReleaseError as error:
        sys.exit(f"no release: {error}")


def try_out(version: str) -> None:
    """Make the release in a clone, and print what it changed."""
    with tempfile.TemporaryDirectory() as directory:
        clone = Path(directory) / "clone"
        git(ROOT, "clone", "--quiet", str(ROOT), str(clone))
        release(clone, version, *DRY_RUN_IDENTITY)
        print(git(clone, "show", "--unified=1", f"v{version}"))
    print("dry run: nothing was changed here")


def release(repository: Path, version: str, *git_options: str) -> None:
    """Commit and tag the release, and build its wheel; ReleaseError if there cannot be one."""
    project, changelog = repository / "pyproject.toml", repository / "CHANGELOG.md"
    texts = {
        project: with_version(project.read_text(), version),
        changelog: with_heading(changelog.read_text(), version, f"{datetime.now(UTC):%Y-%m-%d}"),
    }
    tag = f"v{version}"
    if git(repository, "tag", "--list", tag):
        raise ReleaseError(f"the tag {tag} exists")
    for file, text in texts.items():
        file.write_text(text)
    git(repository, *git_options, "commit", "--quiet", "--all", "--message", f"Release {version}")
    git(repository, *git_options, "tag", "--annotate", "--message", f"aclbroker {version}", tag)
    build_wheel(repository)


def with_version(project: str, version: str) -> str:
    """The text of pyproject.toml with a later version than it has."""
    wanted = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    present = VERSION.search(project)
    if wanted is None or present is None:
        raise ReleaseError(f"{version!r} is not of the form MAJOR.MINOR.PATCH")
    if tuple(map(int, wanted.groups())) <= tuple(map(int, present.groups())):
        raise ReleaseError(f"{version} is not later than {'.'.join(present.groups())}")
    return VERSION.sub(f'version = "{version}"', project)


def with_heading(changelog: str, version: str, date: str) -> str:
    """The text of CHANGELOG.md, in which what was unreleased is of this version."""
    before, heading, after = changelog.partition(UNRELEASED)
    if not heading or not after.partition("\n## ")[0].strip():
        raise ReleaseError("CHANGELOG.md tells of nothing that is unreleased")
    return f"{before}{UNRELEASED}\n## [{version}] - {date}\n{after}"


def build_wheel(repository: Path) -> None:
    """Build the wheel into dist/."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    output = repository / "dist"
    subprocess.run([*pip, "--wheel-dir", str(output), str(repository)], check=True)
    print(f"built {max(output.glob('*.whl'), key=lambda file: file.stat().st_mtime).name}")


def build_image(version: str) -> None:
    """Build the image, if docker runs on this machine."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True).returncode:
        print("no image: docker does not run on this machine")
        return
    subprocess.run([docker, "build", "--tag", f"aclbroker:{version}", str(ROOT)], check=True)


def git(repository: Path, *arguments: str) -> str:
    """What git prints; ReleaseError with its complaint if it fails."""
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(done.stderr.strip())
    return done.stdout.strip()


if __name__ == "__main__":
    main()
