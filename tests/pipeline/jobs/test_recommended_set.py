"""From a log as it is written to a recommended set, of which `aclbroker diff` says the same."""

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.bindings import AclPermission
from aclbroker.acl.files.policy import read_policy
from aclbroker.acl.reasoning.lint.removal import Removal
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.opened import rules_of
from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from tests.pipeline.use import figures_of
from tools.generate_audit import main as generate

WORLD = {
    "events": 4000, "days": 2, "files": 2, "principals": 40, "topics": 80, "groups": 20,
    "acls": 600, "group-members": 0.2, "ephemeral-hosts": 0.1, "seed": 5,
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recommended")
    generate([str(place / "in"), *(f"--{name}={value}" for name, value in WORLD.items())])
    return place


@pytest.fixture(scope="module")
def result(spark, place):
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    words = [
        *("recommend", "--input", str(place / "in" / "log"), "--output", str(place / "out")),
        *("--acls", str(place / "in" / "acls.yaml"), "--super-user", "User:admin"),
    ]
    options = audit_options(parser.parse_args(words), words)
    report = answered(spark, options, read_rules(options, None), Progress(io.StringIO()))
    (found,) = report.results
    return found


def recommended(place: Path) -> Ruleset:
    acls = read_policy(place / "out" / "recommend" / "acls.yaml").acls
    return Ruleset(ordered(acls), frozenset({"User:admin"}))


def differences(old: Path, new: Path, capsys) -> list[dict[str, Any]]:
    words = ["diff", str(old), str(new), "--super-user", "User:admin", "--output", "json"]
    command = parse_arguments(words)
    assert isinstance(command, QuestionCommand)
    assert command.run() == 1
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_it_opens_nothing_and_closes_what_the_report_says(place, result, capsys):
    assert figures_of(result)["allowed events that would be denied"] == 0
    assert figures_of(result)["denied events that would be allowed"] == 0
    assert result.alarms["opened"] == 0
    rows = differences(
        place / "in" / "acls.yaml", place / "out" / "recommend" / "acls.yaml", capsys
    )
    assert {row["change"] for row in rows} == {"lost"}
    assert figures_of(result)["rights closed"] >= len(rows)


def test_none_of_its_acls_is_needless(place, result):
    rules = recommended(place)
    kept = {acl.permission for acl in rules.acls}
    assert kept == {AclPermission.ALLOW, AclPermission.DENY}
    assert [each for each in Removal(rules_of(rules)).findings if each.fix is not None] == []
