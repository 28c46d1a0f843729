"""A store's file and a controller's metadata log answer questions as a policy file does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.broker.stores import open_store
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.audit import AuditCommand
from aclbroker.cli.migrate.command import MigrateCommand
from aclbroker.cli.policy.command import PolicyCommand
from aclbroker.cli.questions import QuestionCommand
from aclbroker.cli.run import RunCommand
from tests.acl.examples import READ, WRITE, allow, deny
from tests.kraft.log_files import batch, created, framed, write_log
from tests.pipeline.kafka_lines import line
from tests.stores.origins import ORIGIN

ACLS = [
    allow("User:etl", READ, "orders"),
    deny("User:bob", WRITE, "orders"),
    allow("User:bob", WRITE, "orders"),
]


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """The same ACLs in a policy file, a store, and a metadata log."""
    write_policy(Policy(ACLS), tmp_path / "policy.yaml")
    asyncio.run(store(f"sqlite:///{tmp_path}/acls.db", ACLS))
    write_log(tmp_path / "log", (0, [whole_batch()]))
    return [f"{tmp_path}/policy.yaml", f"sqlite:///{tmp_path}/acls.db", f"kraft:///{tmp_path}/log"]


def whole_batch() -> bytes:
    return batch(0, [framed(created(number, acl)) for number, acl in enumerate(ACLS)])


async def store(url: str, acls: list[AclBinding]) -> None:
    opened = open_store(url)
    await opened.open()
    await opened.apply(acls, [], ORIGIN)
    await opened.close()


def status_of(*words: str) -> int:
    command = parse_arguments(words)
    assert isinstance(command, QuestionCommand)
    return command.run()


def test_all_sources_are_compared_with_one_another(
    places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for one in places:
        for other in places:
            assert status_of("diff", one, other) == 0
    assert capsys.readouterr().out == "no difference\n" * 9


def test_all_sources_answer_questions(
    places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for place in places:
        assert status_of("who-can", "READ", "topic", "orders", "--acls", place) == 0
        assert capsys.readouterr().out == "User:etl from any host\n"
        assert status_of("who-can", "WRITE", "topic", "orders", "--acls", place) == 0
        assert capsys.readouterr().out == "nobody\n"


def test_a_log_whose_end_is_being_written_is_read_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log", (0, [whole_batch(), whole_batch()[:-9]]))
    assert status_of("what-can", "User:etl", "--acls", f"kraft:///{log}") == 0
    assert "ends within a batch at offset 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "problem"),
    [("kraft:///none", "none: No such file"), ("sqlite:///none.db", "there is no ACL store")],
)
def test_a_source_that_is_not_there_is_named(
    place: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("what-can", "User:etl", "--acls", place) == 2
    assert problem in capsys.readouterr().err


def test_the_audit_of_a_log_takes_them_as_well(places: list[str], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "kafka.log").write_text(f"{line()}\n")
    _, store_url, log_url = places
    words = ["audit", "diff", "--input", f"{tmp_path}/kafka.log", "--acls", store_url]
    words += ["--other", log_url, "--output", f"{tmp_path}/report"]
    command = parse_arguments(words)
    assert isinstance(command, AuditCommand)
    assert command.run() == 0
    html = (tmp_path / "report" / "diff.html").read_text()
    assert store_url in html
    assert log_url in html


STRIMZI = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: etl}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
    - {resource: {type: topic, name: orders, patternType: prefix}, operations: [Read]}
    - {resource: {type: topic, name: orders.secret}, operations: [Read], type: deny}
"""
TERRAFORM = 'resource "kafka_acl" "test" {\n  acl_principal = "User:etl"\n}\n'


@pytest.fixture
def audited(tmp_path: Path) -> list[str]:
    """The arguments of an audit, without its ACLs."""
    (tmp_path / "kafka.log").write_text(f"{line()}\n")
    return ["audit", "matrix", "--input", f"{tmp_path}/kafka.log", "--output", f"{tmp_path}/report"]


def each_command(path: Path, audited: list[str]) -> list[list[str]]:
    """Return the arguments of one command of each kind that reads a file of ACLs."""
    acls = ["--acls", str(path)]
    statements = path.parent / "statements.yaml"
    statements.write_text("version: 1\ninvariants: [User:etl may READ topic orders.eu]\n")
    return [
        ["who-can", "READ", "topic", "orders.eu", *acls],
        ["what-can", "User:etl", *acls],
        ["explain", "User:etl", "READ", "topic", "orders.eu", *acls],
        ["can", "User:etl", "describe-topic", "topic", "orders.eu", *acls],
        ["lint", *acls],
        ["prove", "-f", str(statements), *acls],
        ["diff", str(path), str(path)],
        ["migrate", "--from", f"file:{path}", "--to", f"file:{path}.json"],
        [*audited, *acls],
    ]


def run(words: list[str]) -> int:
    command = parse_arguments(words)
    assert isinstance(
        command, AuditCommand | MigrateCommand | PolicyCommand | QuestionCommand | RunCommand
    )
    return command.run()


def test_all_commands_read_the_files_of_other_tools(
    tmp_path: Path, audited: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "users.yaml"
    path.write_text(STRIMZI)
    for words in each_command(path, audited):
        assert run(words) == 0, (words, capsys.readouterr().err)
    capsys.readouterr()
    assert status_of("who-can", "READ", "topic", "orders.secret", "--acls", str(path)) == 0
    assert capsys.readouterr().out == "nobody\n"


def test_all_commands_name_the_form_that_they_refuse(
    tmp_path: Path, audited: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "acls.tf"
    path.write_text(TERRAFORM)
    apply = ["policy", "apply", str(path), "--bootstrap-server", "127.0.0.1:1"]
    others = [apply, ["run", "--policy", str(path), "--", "true"]]
    for words in [*each_command(path, audited), *others]:
        assert run(words) != 0
        assert f"{path}: this is Terraform's HCL, which is not read" in capsys.readouterr().err
