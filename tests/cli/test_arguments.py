"""The command line of aclbroker: what is accepted, and what is said of what is not."""

from importlib import metadata

import pytest

from aclbroker.cli.arguments import ServeCommand, parse_arguments
from aclbroker.cli.scram import ScramCommand
from aclbroker.cli.store import StoreCommand


def test_serve_takes_a_file_and_overrides_before_or_after_it():
    command = parse_arguments(
        ["serve", "--override", "node.id=7", "s.properties", "--override", "a= b=c ",
         "--override=authorizer.class.name="]
    )  # fmt: skip
    overrides = {"node.id": "7", "a": " b=c ", "authorizer.class.name": ""}
    assert command == ServeCommand("s.properties", overrides)


def test_serve_needs_no_file():
    assert parse_arguments(["serve"]) == ServeCommand(None, {})


def test_of_two_overrides_of_one_name_the_last_counts():
    command = parse_arguments(["serve", "--override", "node.id=1", "--override", "node.id=2"])
    assert isinstance(command, ServeCommand)
    assert command.overrides == {"node.id": "2"}


def test_version_prints_the_version_and_ends(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        parse_arguments(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"aclbroker {metadata.version('aclbroker')}\n"


def test_scram_add_takes_a_file_a_user_and_how_to_keep_the_password():
    command = parse_arguments(["scram", "add", "s.properties", "alice"])
    assert command == ScramCommand("s.properties", "alice", "SCRAM-SHA-512", 4096)
    options = ["--mechanism", "SCRAM-SHA-256", "--iterations", "16384"]
    command = parse_arguments(["scram", "add", "s.properties", "alice", *options])
    assert command == ScramCommand("s.properties", "alice", "SCRAM-SHA-256", 16384)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["check"], StoreCommand("check")),
        (["backup", "b", "--config", "s"], StoreCommand("backup", config="s", copy="b")),
        (["restore", "b", "--store", "a"], StoreCommand("restore", file="a", copy="b")),
        (
            ["repair", "--output", "o", "--accept-lost-acls"],
            StoreCommand("repair", copy="o", accepts_lost_acls=True),
        ),
    ],
)
def test_store_takes_the_settings_or_the_file(arguments: list[str], expected: StoreCommand):
    assert parse_arguments(["store", *arguments]) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["start"], "choose from"),
        ([], "the following arguments are required: command"),
        (["serve", "a", "b"], "unrecognized arguments: b"),
        (["serve", "--overrid", "a=b"], "unrecognized arguments"),
        (["serve", "--overide", "a=secret", "f"], "--overide f; did you mean --override?"),
        (["serve", "f", "--overide=a=secret"], "--overide=...; did you mean --override?"),
        (
            ["can", "User:a", "produce", "topic", "t", "--principal=x"],
            "arguments: --principal=...\n",
        ),
        (["serve", "f", "--x", "ssl.key.password=secret"], "--x ssl.key.password=..."),
        (
            [
                "audit",
                "denials",
                "--min-event",
                "2",
                "--input",
                "serve",
                "--acls",
                "a",
                "--output",
                "o",
            ],
            "--min-event 2; did you mean --min-events?",
        ),
        (["serve", "--override", "secret"], "expected NAME=VALUE"),
        (["serve", "--override", "-secret"], "hyphen is given as --override=-...)\n"),
        (["serve", "--override", "=secret"], "expected NAME=VALUE"),
        (["store"], "the following arguments are required: action"),
        (["store", "backup"], "the following arguments are required: FILE"),
        (["store", "check", "--store", "a", "--config", "b"], "not allowed with argument"),
        (["scram", "add", "s.properties"], "either FILE or --bootstrap-server is required"),
        (["scram", "add", "s.properties", "User:alice"], "expected a name without 'User:'"),
        (["scram", "add", "s.properties", ""], "expected a name"),
        (["scram", "add", "f", "alice", "--iterations", "4095"], "expected 4096 to 16384"),
        (["scram", "add", "f", "alice", "--iterations", "x"], "expected 4096 to 16384"),
        (["scram", "add", "f", "alice", "--mechanism", "PLAIN"], "choose from"),
    ],
)
def test_wrong_arguments_end_with_status_2_and_what_is_allowed(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    with pytest.raises(SystemExit) as end:
        parse_arguments(arguments)
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("usage: aclbroker ")
    assert said in message
    assert {"scram": "scram add", "store": "store"}.get("".join(arguments[:1]), "serve") in message
    assert "secret" not in message
