"""`aclbroker acls` prints and does what kafka-acls.sh of Kafka 4.3.0 prints and does."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.cli.acls.command import AclsCommand
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from tests.clients.acl_command import Commands, Printed, command_config, normalised, run_in_terminal
from tests.clients.command_lines import LINES
from tests.support.broker import COMMAND, Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.kafka import Kafka, free_ports
from tests.support.process import wait_for

ERROR = "Error while executing ACL command: "
NOBODY_ANSWERS = re.compile(r".*java\.lang\.System\.console\(\).*|nobody answers .*")
LOGGED = re.compile(r"\[.*\] (WARN|ERROR) ")
REQUEST = re.compile(r"Request Request\(.*\) needs")
OF_THE_NETWORK = re.compile(r"(org\.apache\.kafka\.common\.errors\.TimeoutException): .*")
FENCE = AclCreation(6, "fence", 3, "User:nobody", "*", 8, 3)


Acls = frozenset[tuple[Any, ...]]


class Outcome(NamedTuple):
    """What a command line came to: its status, what it printed, and what became of the ACLs."""

    status: int
    out: Any
    complaint: str
    added: Acls
    removed: Acls


Tool = Callable[[list[str]], tuple[int, str, str]]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("acl-commands") / "stderr")
    yield commands
    commands.close()


def test_the_lines_are_many_and_three_are_there_again() -> None:
    lines = LINES.strip().splitlines()
    assert len(lines) >= 80
    # A list of what has changed, and an ACL that is there already.
    assert len(lines) - len(set(lines)) == 3


@pytest.mark.parametrize(
    "server", ["broker", pytest.param("bare_kafka", marks=pytest.mark.thorough)]
)
def test_each_command_line_prints_and_does_what_kafkas_tool_does(
    server: str,
    request: pytest.FixtureRequest,
    commands: Commands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    target: Broker | Kafka = request.getfixturevalue(server)
    words = _stand_ins(target, tmp_path)

    def kafkas(arguments: list[str]) -> tuple[int, str, str]:
        answer = commands.run_whole(*arguments)
        return answer["status"], answer["out"], answer["err"]

    def ours(arguments: list[str]) -> tuple[int, str, str]:
        status = AclsCommand(arguments).run()
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    lines = [shlex.split(line) for line in LINES.strip().splitlines()]
    expected = _played(kafkas, lines, words, target)
    found = _played(ours, lines, words, target)
    different = {
        shlex.join(line): [each for each in zip(theirs, mine, strict=True) if each[0] != each[1]]
        for line, theirs, mine in zip(lines, expected, found, strict=True)
        if theirs != mine
    }
    assert not different, "\n".join(f"{line}: {each}" for line, each in different.items())
    assert {each.status for each in expected} == {0, 1}
    assert sum(bool(each.added) for each in expected) > 20
    assert sum(bool(each.removed) for each in expected) > 5


def _stand_ins(target: Broker | Kafka, directory: Path) -> dict[str, str]:
    guessed = directory / "guessed"
    guessed.mkdir()
    [nobody] = free_ports(1)
    return {
        "BROKER": target.listeners["PLAINTEXT"],
        "PLAIN": target.listeners["SASL_PLAINTEXT"],
        "NOBODY": f"127.0.0.1:{nobody}",
        "ADMIN": command_config(directory, "admin"),
        "ALICE": command_config(directory, "alice"),
        "GUESSED": command_config(guessed, "alice", "guessed"),
        "MISSING": str(directory / "missing.properties"),
    }


def _played(
    tool: Tool, lines: list[list[str]], words: Mapping[str, str], target: Broker | Kafka
) -> list[Outcome]:
    """Run the lines on a cluster without ACLs, one after the other."""
    stands_for = re.compile("|".join(words))
    outcomes = []
    with Client(target.listeners["PLAINTEXT"]) as client:
        everything = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
        client.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([everything]))
        _settle(client)
        before = _acls(client)
        for line in lines:
            arguments = [stands_for.sub(lambda name: words[name[0]], word) for word in line]
            status, out, err = tool(arguments)
            _settle(client)
            after = _acls(client)
            changes = after - before, before - after
            outcomes.append(Outcome(status, _comparable(out), _complaint(err), *changes))
            before = after
    return outcomes


def _settle(client: Client) -> None:
    """Wait until all changes are listed: a Kafka broker lists them in order, a little later."""
    name = DeleteAclsFilter(6, "fence", 3, None, None, 1, 1)
    client.create(FENCE)
    wait_for("the fence", lambda: _fenced(client) or None, seconds=20)
    client.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([name]))
    wait_for("no fence", lambda: not _fenced(client) or None, seconds=20)


def _fenced(client: Client) -> bool:
    request = DescribeAclsRequest(6, "fence", 3, None, None, 1, 1)
    return bool(client.ask(ApiKey.DESCRIBE_ACLS, 3, request).resources)


def _acls(client: Client) -> Acls:
    answer = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    return frozenset(
        (
            *(each.resource_type, each.resource_name, each.pattern_type),
            *(acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for each in answer.resources
        for acl in each.acls
    )


def _comparable(out: str) -> Any:
    """What was printed, without the order of hash maps and without Java's stack trace."""
    before, found, rest = out.partition(ERROR)
    form = sorted(re.sub(r"\([^\n]*\)", "()", before).splitlines())
    error = OF_THE_NETWORK.sub(r"\1", rest.partition("\n")[0]) if found else None
    if error is not None:
        error = REQUEST.sub("Request needs", NOBODY_ANSWERS.sub("nobody answers", error))
    return form, normalised(before), error


def _complaint(err: str) -> str:
    """The first line of the error output: what is wrong; how to use the tool comes behind it."""
    first = err.partition("\n")[0]
    if first.startswith("aclbroker:") or LOGGED.match(first):
        return ""
    return re.sub(r"\[(.*)\]", lambda names: str(sorted(names[1].split(", "))), first)


@pytest.mark.parametrize("answer", ["n", "y", "Y", "yes", ""])
def test_a_removal_is_asked_about_and_done_for_a_y_alone(
    broker: Broker, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ["--bootstrap-server", broker.listeners["PLAINTEXT"]]
    who = ["--allow-principal", "User:Bob", "--topic", "t"]
    assert AclsCommand([*bootstrap, "--add", *who]).run() == 0
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{answer}\n"))
    assert AclsCommand([*bootstrap, "--remove", *who]).run() == 0
    assert capsys.readouterr().out == (
        "Are you sure you want to remove ACLs: \n"
        " \t(principal=User:Bob, host=*, operation=ALL, permissionType=ALLOW)\n"
        " from resource filter `ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`?"
        " (y/n)\n"
    )
    AclsCommand([*bootstrap, "--list"]).run()
    is_gone = answer.lower() == "y"
    assert (capsys.readouterr().out == "") == is_gone


def test_a_line_break_in_a_principal_forges_no_line_of_a_dialogue(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ["--bootstrap-server", broker.listeners["PLAINTEXT"]]
    forged = "User:a\n\t(principal=User:evil, host=*, operation=ALL, permissionType=ALLOW)\x1b[2J"
    who = ["--allow-principal", forged, "--topic", "t\rt", "--operation", "Read"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    for words in (["--add", *who], ["--add", *who], ["--remove", *who], ["--list"]):
        assert AclsCommand([*bootstrap, *words]).run() == 0
    out = capsys.readouterr().out
    assert not {"\r", "\x1b"}.intersection(out)
    lines = [line.strip() for line in out.split("\n") if "User:evil" in line]
    assert len(lines) == 4
    assert not [line for line in lines if line.startswith("(principal=User:evil")]
    assert len([line for line in lines if line.endswith(" (escaped)")]) == 4


def test_a_removal_that_nobody_answers_fails_and_removes_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ["--bootstrap-server", broker.listeners["PLAINTEXT"]]
    AclsCommand([*bootstrap, "--add", "--allow-principal", "User:Bob", "--topic", "t"]).run()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert AclsCommand([*bootstrap, "--remove", "--topic", "t"]).run() == 1
    assert f"{ERROR}nobody answers on standard input" in capsys.readouterr().out
    AclsCommand([*bootstrap, "--list"]).run()
    assert "User:Bob" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["n", "y"])
def test_in_a_terminal_the_dialogue_is_that_of_kafkas_tool(
    broker: Broker, commands: Commands, answer: str
) -> None:
    bootstrap = ("--bootstrap-server", broker.listeners["PLAINTEXT"])
    removal = ["--remove", "--topic", "Test-", "--resource-pattern-type", "prefixed"]
    added = [
        *("--add", "--allow-principal", "User:Bob", "--topic", "Test-"),
        *("--resource-pattern-type", "prefixed"),
    ]
    told = []
    for command in ([], [str(COMMAND), "acls"]):
        commands.run(*bootstrap, *added)
        printed = run_in_terminal(answer, *bootstrap, *removal, command=command)
        told.append((printed, commands.run(*bootstrap, "--list")))
    assert told[0] == told[1]


def test_a_controller_says_who_the_active_one_is_and_that_one_is_asked(
    bare_kafka: Kafka, commands: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    controller = ("--bootstrap-controller", bare_kafka._all_listeners["CONTROLLER"])
    added = ["--add", "--allow-principal", "User:Bob", "--topic", "by-controller"]
    assert AclsCommand([*controller, *added]).run() == 0
    ours = capsys.readouterr().out
    assert "Adding ACLs for resource" in ours
    with Client(bare_kafka.listeners["PLAINTEXT"]) as client:
        _settle(client)
    theirs = commands.run(*controller, "--list", "--topic", "by-controller")
    assert AclsCommand([*controller, "--list", "--topic", "by-controller"]).run() == 0
    assert theirs == Printed(capsys.readouterr().out, 0)


def test_a_broker_that_knows_version_zero_alone_is_asked_what_that_can_say(broker: Broker) -> None:
    oldest: dict[int, range] = {
        key: range(1) for key in (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
    }
    acl = AclBinding(
        *(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*"),
        *(AclOperation.READ, AclPermission.ALLOW),
    )
    addresses = read_addresses(broker.listeners["PLAINTEXT"])
    with open_session(addresses, read_settings(None)) as session:
        session._offered = oldest
        create_acls(session, [acl])
        assert describe_acls(session) == [acl]
        prefixed = acl._replace(pattern_type=PatternType.PREFIXED)
        with pytest.raises(RequestRefused, match=r"literal resource pattern types, not PREFIXED"):
            create_acls(session, [prefixed])
        with pytest.raises(RequestRefused, match=r"not PREFIXED"):
            delete_acls(session, [exactly(prefixed)])
        assert delete_acls(session, [exactly(acl)]) == [acl]
        session._offered = {}
        with pytest.raises(RequestRefused, match=r"offers of DescribeAcls the versions none"):
            describe_acls(session)


@pytest.mark.thorough
def test_very_many_acls_are_listed_to_whoever_reads_them(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = ["--bootstrap-server", broker.listeners["PLAINTEXT"]]
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for start in range(0, 120_000, 20_000):
            names = (f"t-{number}" for number in range(start, start + 20_000))
            client.create(*(AclCreation(2, name, 3, "User:a", "*", 3, 3) for name in names))
    assert AclsCommand([*bootstrap, "--list"]).run() == 0
    assert capsys.readouterr().out.count("principal=User:a") == 120_000

    # As `aclbroker acls ... --list | head -1`.
    with subprocess.Popen(
        [COMMAND, "acls", *bootstrap, "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"Current ACLs for resource")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
