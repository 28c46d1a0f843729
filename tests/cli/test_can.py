"""`aclbroker can` and `explain`: what is missing, as commands, and from where a request comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.cli.acls.script import parse_script
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.acl.examples import DESCRIBE, GROUP, READ, WRITE, allow, deny

ADD = 'aclbroker acls --bootstrap-server "$BOOTSTRAP" --add --allow-principal User:etl'
CONSUME = ("can", "User:etl", "consume", "topic", "orders", "group", "app")

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Ask about a set of ACLs; returns the status and standard output."""
    file = tmp_path / "policy.yaml"

    def run(acls: list[AclBinding], *words: str) -> tuple[int, str]:
        write_policy(Policy(acls), file)
        command = parse_arguments([*words, "--acls", str(file)])
        assert isinstance(command, QuestionCommand)
        status = command.run()
        return status, capsys.readouterr().out

    return run


def test_what_is_missing_is_told_with_the_fewest_acls_as_commands(ask: Ask) -> None:
    assert ask([], *CONSUME) == (
        1,
        "no\n"
        "denied: DESCRIBE on TOPIC orders for METADATA\n"
        "denied: DESCRIBE on TOPIC orders for LIST_OFFSETS\n"
        "denied: READ on TOPIC orders for FETCH\n"
        "denied: DESCRIBE on GROUP app for FIND_COORDINATOR\n"
        "denied: READ on GROUP app for JOIN_GROUP\n"
        "denied: DESCRIBE on GROUP app for OFFSET_FETCH\n"
        "denied: READ on GROUP app for OFFSET_COMMIT\n"
        "would be allowed after:\n"
        f"    {ADD} --operation Read --topic orders\n"
        f"    {ADD} --operation Read --group app\n",
    )


def test_after_the_commands_it_is_allowed_and_nothing_more_is_told(
    ask: Ask, tmp_path: Path
) -> None:
    there = [
        allow("User:etl", DESCRIBE, "orders"),
        deny("User:*", READ, "app", resource_type=GROUP),
    ]
    _, out = ask(there, *CONSUME)
    commands = [line.strip() for line in out.partition("would be allowed after:\n")[2].splitlines()]
    assert len(commands) == 3
    script = tmp_path / "mend.sh"
    before = [
        f"{ADD} --operation Describe --topic orders",
        ADD.replace("--allow-principal User:etl", "--deny-principal 'User:*'")
        + " --operation Read --group app",
    ]
    script.write_text("\n".join([*before, *commands]))
    after = parse_script(script.read_text(), str(script)).acls
    status, out = ask(after, *CONSUME)
    assert (status, out.splitlines()[0]) == (0, "yes")
    assert "would be allowed" not in out


def test_each_missing_right_has_its_commands_in_json(ask: Ask) -> None:
    there = [allow("User:etl", READ, "orders")]
    rows = json.loads(ask(there, *CONSUME, "--output", "json")[1])
    assert [row["fix"] for row in rows] == [
        *[[]] * 3,
        *[[f"{ADD} --operation Read --group app"]] * 4,
    ]
    assert {row["no_fix"] for row in rows} == {None}
    assert rows[0]["request"] == "User:etl from any host: DESCRIBE on TOPIC orders"


def test_what_no_command_can_say_is_told_in_words(ask: Ask) -> None:
    words = ("can", "User:etl", "describe-topic", "topic", " orders")
    out = ask([], *words)[1]
    assert 'would be allowed after: add ALLOW DESCRIBE on TOPIC LITERAL " orders" to' in out
    assert "    no command: aclbroker acls, as Kafka's tool, would take it for another one" in out
    [row] = json.loads(ask([], *words, "--output", "json")[1])
    assert row["fix"] == []
    assert row["no_fix"]


def test_with_a_host_the_commands_are_for_that_host(ask: Ask) -> None:
    words = ("can", "User:etl", "produce", "topic", "orders", "--host", "10.0.0.7")
    out = ask([allow("User:etl", WRITE, "orders", host="10.0.0.8")], *words)[1]
    assert out.endswith(f"    {ADD} --allow-host 10.0.0.7 --operation Write --topic orders\n")
    assert ask([], "can", "User:etl", "list-acls", "cluster", "--host", "laptop") == (2, "")


@pytest.mark.parametrize(
    ("acls", "where"),
    [
        ([], "any host"),
        ([allow("User:etl", READ, "orders", host="10.0.0.8")], "any host but 10.0.0.8"),
        ([allow("User:etl", READ, "other", host="10.0.0.8")], "any host"),
        ([allow("User:bob", READ, "orders", host="10.0.0.8")], "any host"),
    ],
)
def test_explain_says_of_which_hosts_it_speaks_where_none_is_given(
    ask: Ask, acls: list[AclBinding], where: str
) -> None:
    words = ("explain", "User:etl", "READ", "topic", "orders")
    told = f"User:etl from {where}: READ on TOPIC orders"
    assert ask(acls, *words)[1].splitlines()[0] == f"{told}: denied (DefaultDeny)"
    assert json.loads(ask(acls, *words, "--output", "json")[1])[0]["request"] == told
    here = ask(acls, *words, "--host", "10.0.0.9")[1]
    assert here.startswith("User:etl from 10.0.0.9: READ on TOPIC orders: denied")


def test_an_acl_that_nearly_allows_is_told_only_where_no_acl_denies(ask: Ask) -> None:
    words = ("explain", "User:etl", "READ", "topic", "orders")
    nearly = allow("User:etl", WRITE, "orders")
    assert "nearly allows: ALLOW WRITE" in ask([nearly], *words)[1]
    denied = ask([nearly, deny("User:etl", READ, "orders")], *words)[1]
    assert denied.splitlines() == [
        "User:etl from any host: READ on TOPIC orders: denied (MatchingAcl)",
        "decided by: DENY READ on TOPIC LITERAL orders to User:etl from *",
        "would be allowed after: remove DENY READ on TOPIC LITERAL orders to User:etl from *; "
        "add ALLOW READ on TOPIC LITERAL orders to User:etl from *",
    ]
