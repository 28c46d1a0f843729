"""No file is half merged, each link leads somewhere, and a test tries each documented command."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_documented import BLOCK, COMMANDS, ROOT
from tests.support.tables import check_each
from tests.support.toolchain import require

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
LINK = re.compile(r"\]\(<?([^\s)>]+)|^\[[^\]]+\]: +(\S+)|\b(?:href|src)=\"([^\"]+)\"", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
URL = re.compile(r"[a-z][a-z0-9+.-]*:")

TYPED = re.compile(
    r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?P<program>[a-z][a-z-]*(?:\.sh)?)(?= |$)"
    r"(?: (?P<word>[a-z][a-z-]*)(?= |$))?"
)
"""A line that is a command: its program, and the first argument if that is a word."""

WITH_SUBCOMMANDS = {
    *("audit", "conformance", "policy", "scram", "store"),
    *("confluent", "docker", "git", "make"),
}

NO_PROGRAMS = {"cat", "export", "lost", "median"}
"""What everybody's shell has, and the first words of indented lines that are no commands."""

TRIED_BY = {
    "aclbroker acls": "tests/clients",
    "aclbroker audit all": "tests/pipeline/command/test_engines.py",
    "aclbroker audit point-in-time": "tests/pipeline/jobs/test_point_in_time.py",
    "aclbroker audit what-if": "tests/pipeline/command/test_run.py",
    "aclbroker can": "tests/cli/test_can.py",
    "aclbroker conformance catalog": "tests/conformance_tool/test_page.py",
    "aclbroker conformance compare": "tests/conformance_tool/test_broker.py",
    "aclbroker conformance record": "tests/conformance_tool/test_kafka.py",
    "aclbroker diff": "tests/cli/test_questions.py",
    "aclbroker explain": "tests/cli/test_questions.py",
    "aclbroker history": "tests/cli/test_history.py",
    "aclbroker lint": "tests/cli/test_lint.py",
    "aclbroker migrate": "tests/migrate",
    "aclbroker policy apply": "tests/cli/test_policy_apply.py",
    "aclbroker prove": "tests/cli/test_prove.py",
    "aclbroker run": "tests/testing/test_run.py",
    "aclbroker scram add": "tests/clients/test_credential_commands.py",
    "aclbroker scram list": "tests/clients/test_credential_commands.py",
    "aclbroker scram remove": "tests/clients/test_credential_commands.py",
    "aclbroker serve": "tests/support/broker.py",
    "aclbroker store accept": "tests/kafka_store",
    "aclbroker store backup": "tests/server/test_store.py",
    "aclbroker store check": "tests/server/test_store.py",
    "aclbroker store repair": "tests/server/test_store.py",
    "aclbroker store restore": "tests/server/test_store.py",
    "aclbroker tokens": "tests/clients/test_credential_commands.py",
    "aclbroker what-can": "tests/cli/test_questions.py",
    "aclbroker who-can": "tests/cli/test_questions.py",
    "curl": "tests/server/test_fault_control.py",
    "kafka-acls.sh": "tests/clients",
    "kafka-configs.sh": "tests/clients/test_scram.py",
    "make release": "tests/packaging/test_release.py",
    "make serve": "tests/packaging/test_readme.py",
    "make test": "tests/packaging/test_fresh_clone.py",
    "openssl": "tests/packaging/test_readme.py",
    "pip": "tests/packaging/test_wheel.py",
    "pytest": "tests/testing/test_plugin.py",
}
"""The module or folder that runs each command. Tutorials are followed by a test of their own."""

NOT_TRIED = {
    "confluent iam": "Confluent's command is not free software; tests/http_api sends its requests",
    "confluent login": "as `confluent iam`",
    "docker run": "tests need no docker; tests/packaging/test_image.py follows the Dockerfile",
    "git push": "publishes the release",
    "make bench": "takes three quarters of an hour; tests/benchmarks measures the same in small",
    "make bench-gateway": "takes half an hour; tests/benchmarks/test_gateway.py tries its parts",
    "make setup-audit": "installs a part of what `make test` installs",
    "make setup-dev": "installs a part of what `make test` installs",
    "make test-all": "is `make test` with other options",
    "make test-fast": "is `make test` with other options",
    "spark-submit": "needs YARN; tests/pipeline/spark/test_cluster.py has a cluster of Spark",
}


def git(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [require("git"), "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def pages() -> list[Path]:
    """All Markdown files that git has, or would take."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "*.md")
    return [ROOT / name for name in listed.stdout.splitlines()]


def prose(page: Path) -> str:
    """What is no code."""
    return SPAN.sub("", FENCED.sub("", page.read_text()))


def anchors(page: Path) -> Iterator[str]:
    """What GitHub calls the headings of a page."""
    seen: dict[str, int] = {}
    for heading in HEADING.findall(FENCED.sub("", page.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", text.strip().lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def links(page: Path) -> list[str]:
    return ["".join(found) for found in LINK.findall(prose(page))]


def is_broken(page: Path, link: str) -> bool:
    """Whether a link leads neither to another site nor to a file and a heading of it."""
    if URL.match(link):
        return False
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return True
    return bool(anchor) and anchor not in anchors(target)


def programs(text: str) -> Iterator[str]:
    """The programs that a page has its reader call, other than ours, with their subcommands."""
    for block in BLOCK.finditer(text):
        if block[2] is not None and block[1] not in ("sh", "console", ""):
            continue
        lines = re.sub(r"\\\n\s*", "", block[2] or block[3]).splitlines()
        prompt = [line for line in lines if line.startswith("$ ")]
        for line in prompt or lines if block[1] != "" else prompt:
            found = TYPED.match(line)
            if found is None or found["program"] in NO_PROGRAMS:
                continue
            has_word = found["program"] in WITH_SUBCOMMANDS and found["word"]
            yield f"{found['program']} {found['word']}" if has_word else found["program"]


def our_commands() -> Iterator[str]:
    """The commands of ours that pages show, such as ``aclbroker scram add``."""
    for _, line in COMMANDS:
        first, second = line.split(maxsplit=2)[:2]
        if first not in WITH_SUBCOMMANDS:
            yield f"aclbroker {first}"
            continue
        for word in second.split("|"):
            yield f"aclbroker {first} {word}"


def documented() -> set[str]:
    found = set(our_commands())
    for page in pages():
        if not page.name.startswith("tutorial-"):
            found |= set(programs(page.read_text())) - {"aclbroker"}
    return found


def test_no_file_has_the_markers_of_a_merge_that_was_left_unfinished():
    marker = r"^(<{7}|>{7}|\|{7})( |$)"
    found = git("grep", "-InE", marker)
    assert (found.returncode, found.stdout) == (1, ""), found.stdout + found.stderr


def test_every_link_leads_to_a_file_and_a_heading():
    def check_page(page: Path) -> None:
        assert [link for link in links(page) if is_broken(page, link)] == []

    check_each(pages(), check_page)
    assert sum(len(links(page)) for page in pages()) > 100


def test_a_link_to_nothing_is_noticed(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One `word`, two\n\n[a](page.md) [b](#one-word-two) [c](https://example.org/)\n"
        "[d](gone.md) ![e](gone.png) [f](page.md#gone)\n`[g](gone.md)`\n\n[h]: gone\n"
    )
    broken = [link for link in links(page) if is_broken(page, link)]
    assert broken == ["gone.md", "gone.png", "page.md#gone", "gone"]


def test_every_documented_command_is_one_that_a_test_tries():
    assert documented() - TRIED_BY.keys() - NOT_TRIED.keys() == set()
    assert len(documented()) > 30


def test_every_documented_target_of_make_exists():
    rules = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    def check_page(page: Path) -> None:
        named = re.findall(r"(?:`|^ {4}|^\$ )make ([a-z-]+)", page.read_text(), re.MULTILINE)
        assert set(named) <= set(rules)

    check_each(pages(), check_page)


def test_the_tests_that_try_documented_commands_exist():
    def check_command(command: str) -> None:
        place = ROOT / TRIED_BY[command]
        modules = [place] if place.is_file() else [*place.rglob("*.py")]
        words = command.removeprefix("aclbroker ").removesuffix(".sh").split()
        assert any(all(word in module.read_text() for word in words) for module in modules)

    check_each(TRIED_BY, check_command)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("    one two\n", ["one"]),
        ("```console\n$ A=1 make it --now\nprinted\n```\n", ["make it"]),
        ("```sh\n.venv/bin/one \\\n  --two\nthree\n```\n", ["one", "three"]),
        ("```yaml\none two\n```\n\n    one=two\n", []),
    ],
)
def test_commands_are_found(text: str, found: list[str]):
    assert list(programs(text)) == found
