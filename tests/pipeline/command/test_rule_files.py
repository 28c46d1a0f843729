"""The files that options name are read before Spark is started."""

from pathlib import Path

import pytest

from aclbroker.acl.files.policy import Policy, PolicyError
from aclbroker.pipeline.command.options import AuditOptions, Given
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.errors import InputError


def options(**given: object) -> AuditOptions:
    return AuditOptions("what-if", ("log",), "out", **given)  # type: ignore[arg-type]


@pytest.fixture
def acls(tmp_path: Path) -> str:
    path = tmp_path / "acls.yaml"
    path.write_text(
        "version: 1\ncluster: eu\nacls:\n"
        '- {principal: "User:a", rules: [{topic: x, allow: READ}, {topic: y, allow: READ}]}\n'
    )
    return str(path)


def test_a_kafkas_log_is_of_the_cluster_that_its_acls_name(acls: str):
    assert read_rules(options(acls=(Given(None, acls),)), None).named_cluster == "eu"
    assert read_rules(options(acls=(Given("us", acls),)), None).named_cluster == "us"
    two = (Given("us", acls), Given(None, acls))
    assert read_rules(options(acls=two), None).named_cluster is None
    assert read_rules(options(proposed=(Given(None, acls),)), None).named_cluster is None


def test_what_was_read_is_told(acls: str):
    found = read_rules(options(acls=(Given(None, acls),), other=(Given(None, acls),)), None)
    assert list(found.read) == [(acls, "2 ACLs, --acls"), (acls, "2 ACLs, --other")]
    rules = found.by_cluster(["eu"])
    assert rules.current["eu"].acls == rules.other["eu"].acls
    assert rules.proposed == {}


def test_a_broker_is_asked_with_the_command_config_where_that_is_possible():
    asked = []

    def describe(url: str, config: str | None) -> Policy:
        asked.append((url, config))
        return Policy([], "eu")

    given = options(acls=(Given(None, "kafka://h:1"),), command_config="c")
    assert read_rules(given, describe).named_cluster == "eu"
    assert asked == [("kafka://h:1", "c")]
    with pytest.raises(InputError, match="kafka://h:1: only the command aclbroker asks brokers"):
        read_rules(given, None)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_rules(options(acls=(Given(None, str(tmp_path / "nothing")),)), None)
    (tmp_path / "bad").write_text("version: 2\nacls: []\n")
    with pytest.raises(PolicyError, match="bad: line 1, column 10: version 2"):
        read_rules(options(acls=(Given(None, str(tmp_path / "bad")),)), None)
