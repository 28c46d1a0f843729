"""`aclbroker acls --authorizer-properties` acts on ZooKeeper as kafka-acls.sh of 3.9.1 does."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from aclbroker.cli.acls.command import AclsCommand
from aclbroker.cli.acls.script import parse_script
from tests.acl.examples import READ, WRITE, allow, deny
from tests.clients.acl_command import Commands, normalised
from tests.support.kafka import free_ports
from tests.support.zookeeper import acl_command, zookeeper_jars

COMPLAINT = re.compile(r"Warning|Option \"|One |Only |You |The |Missing |Command |Resource")
ERROR = re.compile(r"(Error while (?:adding|executing)[^:]*: )(.*)")
LINES = """
ZK --list
ZK --add --allow-principal User:Bob --allow-principal User:Alice --allow-host 198.51.100.0 \
    --allow-host 198.51.100.1 --operation Read --operation Write --topic Test-topic
ZK --add --allow-principal User:* --allow-host * --deny-principal User:BadBob \
    --deny-host 198.51.100.3 --operation Read --topic Test-topic
ZK --add --allow-principal User:* --allow-host * --deny-principal User:BadBob \
    --deny-host 198.51.100.3 --operation Read --topic Test-topic
ZK --add --allow-principal User:Peter --allow-host 198.51.200.1 --producer --topic *
ZK --add --allow-principal User:Jane --producer --topic Test- --resource-pattern-type prefixed
ZK --add --allow-principal User:Bob --operation Read --group my-app- \
    --resource-pattern-type prefixed
ZK --authorizer kafka.security.authorizer.AclAuthorizer --add --allow-principal User:Bob \
    --consumer --topic Test-topic --group Group-1
ZK --add --allow-principal User:Bob --producer --idempotent --topic t --transactional-id tx
ZK --add --allow-principal User:Carol --operation AlterConfigs --cluster
ZK --add --allow-principal User:Carol --operation Describe --delegation-token token-1
ZK --add --allow-principal User:Carol --operation CreateTokens --user-principal User:Dave
ZK --add --deny-principal User:CN=x,OU=Ünï --topic *
ZK --list
ZK --list --topic Test-topic
ZK --list --topic Test-topic --resource-pattern-type match
ZK --list --topic *
ZK --list --topic Test-topic --resource-pattern-type any --group Group-1
ZK --list --principal User:Bob --principal User:Jane --principal User:nobody
ZK --remove --force --allow-principal User:Bob --allow-principal User:Alice --allow-host \
    198.51.100.0 --allow-host 198.51.100.1 --operation Read --operation Write --topic Test-topic
ZK --remove --force --allow-principal User:Jane --producer --topic Test- \
    --resource-pattern-type Prefixed
ZK --remove --force --topic Test-topic --resource-pattern-type match
ZK --remove --force --group nothing
ZK --remove --force --cluster
ZK --list
ZK --add --allow-principal User:Bob --operation Read --topic a/b --topic fine
ZK --add --topic t
ZK --add --allow-principal Bob --topic t
ZK --add --allow-principal User:Bob --operation Write --group g
ZK --add --allow-principal User:Bob --operation AlterConfigs --group g
ZK --add --allow-principal User:Bob --operation TwoPhaseCommit --transactional-id tx
ZK --list --producer
ZK --list --add
ZK --list --command-config FILE
ZK --list --bootstrap-server x:1
ZK --list --authorizer x --bootstrap-server x:1
ZK --list --authorizer x.Y
--authorizer kafka.security.authorizer.AclAuthorizer --list
--authorizer-properties zookeeper.connect --list
--authorizer-properties zookeeper.session.timeout.ms=1 --list
ZK --authorizer-properties zookeeper.set.acl=maybe --list
ZK --zk-tls-config-file FILE --list
--authorizer-properties zookeeper.connect=NOBODY \
    --authorizer-properties zookeeper.connection.timeout.ms=500 --list
"""
"""Command lines. ZK stands for the option with the address, NOBODY for a closed port."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """The ACL tool of Kafka 3.9.1, in one JVM."""
    commands = Commands(tmp_path_factory.mktemp("acl-commands") / "stderr", zookeeper_jars())
    yield commands
    commands.close()


@pytest.fixture
def ours(capsys: pytest.CaptureFixture[str]) -> Any:
    def ours(*words: str) -> tuple[int, str, str]:
        status = AclsCommand(words).run()
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return ours


def nodes(zk: KazooClient) -> dict[str, Any]:
    """Return the ACLs of each node in Kafka's directories, and the notifications of changes."""
    found: dict[str, Any] = {}
    for root in ("/kafka-acl", "/kafka-acl-extended/prefixed"):
        for kind in zk.get_children(root) if zk.exists(root) else ():
            for name in zk.get_children(f"{root}/{kind}"):
                value = json.loads(zk.get(f"{root}/{kind}/{name}")[0])
                acls = sorted(value.pop("acls"), key=str)
                found[f"{root}/{kind}/{name}"] = sorted(map(sorted_text, acls)), value
    for told in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        found[told] = sorted({zk.get(f"{told}/{each}")[0] for each in children(zk, told)})
    return found


def sorted_text(acl: dict[str, str]) -> str:
    return str(sorted(acl.items()))


def children(zk: KazooClient, path: str) -> list[str]:
    return list(zk.get_children(path)) if zk.exists(path) else []


def comparable(status: int, out: str, err: str) -> Any:
    """Return the output without the order of hash maps, and without Java's stack traces."""
    before, error, rest = out.partition("Error while ")
    errors = [kind for kind, _ in ERROR.findall(f"{error}{rest}")]
    form = sorted(re.sub(r"\([^\n]*\)", "()", before).split("\n"))
    complaints = [
        re.sub(r"operations (.*)", lambda names: str(sorted(names[1].split(", "))), line)
        for line in err.split("\n")
        if COMPLAINT.match(line)
    ]
    return status, form, normalised(before), errors, complaints


def words_of(line: str, place: str, stand_ins: dict[str, str]) -> list[str]:
    line = line.replace("ZK ", f"--authorizer-properties zookeeper.connect={place} ", 1)
    return [stand_ins.get(word, word) for word in shlex.split(line)]


def test_each_line_prints_and_does_what_the_tool_of_3_9_1_does(
    commands: Commands, ours: Any, connect: str, zk: KazooClient, tmp_path: Path
) -> None:
    def theirs(*words: str) -> tuple[int, str, str]:
        answer = commands.run_whole(*words, tool="kafka.admin.AclCommand")
        return answer["status"], answer["out"], answer["err"]

    [nobody] = free_ports(1)
    stand_ins = {"FILE": f"{tmp_path}/none", "NOBODY": f"zookeeper.connect=127.0.0.1:{nobody}"}
    differ, statuses, chroot = [], [], zk.chroot
    for line in LINES.strip().splitlines():
        both = []
        for name, tool in (("theirs", theirs), ("ours", ours)):
            zk.chroot = f"{chroot}/{name}"
            printed = comparable(*tool(*words_of(line, f"{connect}/{name}", stand_ins)))
            both.append((*printed, nodes(zk)))
        statuses.append(both[0][0])
        differ += [(line, *each) for each in zip(*both, strict=True) if each[0] != each[1]]
    # Kafka's tool failed to add an ACL, but ended with status 0.
    [refused] = [line for line in LINES.splitlines() if "a/b" in line]
    assert differ == [(refused, 0, 1)]
    assert statuses.count(0) > 20
    assert statuses.count(1) > 10


def test_a_removal_is_asked_about_in_the_words_of_3_9_1(
    ours: Any, connect: str, java_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("--authorizer-properties", f"zookeeper.connect={connect}")
    who = ("--allow-principal", "User:Bob", "--operation", "Read", "--topic", "t")
    for answer, words in (("n", who[-2:]), ("y", who)):
        ours(*place, "--add", *who)
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{answer}\n"))
        status, out, err = ours(*place, "--remove", *words)
        left = ours(*place, "--list")[1]
        ours(*place, "--add", *who)
        said = acl_command(java_directory, connect, "--remove", *words, answer=answer)
        assert said == out + err
        assert status == 0
        assert ours(*place, "--list")[1] == left
        assert (left == "") == (answer == "y")


def test_a_list_makes_no_node(ours: Any, connect: str, zk: KazooClient) -> None:
    assert ours("--authorizer-properties", f"zookeeper.connect={connect}", "--list")[:2] == (0, "")
    assert zk.get_children("/") == []


def test_a_node_that_cannot_be_read_is_an_error_and_no_empty_list(
    ours: Any, connect: str, zk: KazooClient
) -> None:
    place = ("--authorizer-properties", f"zookeeper.connect={connect}")
    ours(*place, "--add", "--allow-principal", "User:a", "--topic", "bad")
    zk.set("/kafka-acl/Topic/bad", b"{")
    for words in (["--list"], ["--remove", "--force", "--topic", "bad"]):
        status, out, _ = ours(*place, *words)
        assert status == 1
        assert "Error while executing ACL command" in out
        assert "ACLs of TOPIC bad cannot be read" in out
    add = ("--add", "--allow-principal", "User:a", "--topic")
    status, out, _ = ours(*place, *add, "bad")
    assert status == 1
    assert "Error while adding ACLs: The ACLs of /kafka-acl/Topic/bad in ZooKeeper cannot" in out
    assert ours(*place, *add, "good")[0] == 0
    assert zk.exists("/kafka-acl/Topic/good")
    assert zk.get("/kafka-acl/Topic/bad")[0] == b"{"


def test_a_file_of_such_commands_is_read_as_the_acls_that_they_make(tmp_path: Path) -> None:
    file = tmp_path / "acls.sh"
    file.write_text(
        "bin/kafka-acls.sh --authorizer-properties zookeeper.connect=localhost:2181 --add "
        "--allow-principal User:a --operation Read --topic x\n"
        "kafka-acls.sh --authorizer kafka.security.authorizer.AclAuthorizer "
        '--authorizer-properties "zookeeper.connect=$ZOOKEEPER" --zk-tls-config-file "$TLS" --add '
        "--deny-principal User:b --operation Write --topic x --topic y\n"
        "kafka-acls.sh --authorizer-properties zookeeper.connect=$ZOOKEEPER --remove --force "
        "--topic y\n"
    )
    assert parse_script(file.read_text(), str(file)).acls == [
        allow("User:a", READ, "x"),
        deny("User:b", WRITE, "x"),
    ]
