"""What is wrong with a move is told, and changes nothing that it need not."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclPermission
from aclbroker.broker.client.acls import describe_acls, exactly
from aclbroker.cli.arguments import parse_arguments
from tests.acl.examples import READ, WRITE, allow, deny
from tests.conftest import StartBroker
from tests.migrate.running import contents, described, fill, migrate, migrating, session_with
from tests.server.test_fault_control import OPEN, asked, url
from tests.support.broker import COMMAND, Broker
from tests.support.kafka import free_ports
from tests.support.process import wait_for
from tests.support.random_acls import random_acls

OURS, DENIED = allow("User:alice", READ), deny("User:bob", WRITE)
ACLS = random_acls(Random(9), 500)


@pytest.fixture
def source(tmp_path: Path) -> str:
    return fill(f"file:{tmp_path}/source.yaml", [OURS, DENIED])


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ("kafka-acls://me:secret@host:9092", "'kafka-acls:'"),
        ("sqlite://a.db", "'sqlite:'"),
        ("sqlite:///", "'sqlite:'"),
        ("acls.yaml", "'acls.yaml'"),
    ],
)
def test_a_url_with_a_typo_is_answered_with_all_that_there_are(
    source: str, wrong: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = (
        "file:PATH.yaml, .yml, .json, .csv or .txt, sqlite:///PATH, "
        "zookeeper://HOST:PORT[,HOST:PORT][/CHROOT], kafka://HOST:PORT[,HOST:PORT]/TOPIC, "
        "kafka+acls://HOST:PORT[,HOST:PORT], mds+https://HOST:PORT/CLUSTER_ID or "
        "mds+http://HOST:PORT/CLUSTER_ID"
    )
    assert migrate(source, wrong) == 1
    told = capsys.readouterr().err
    assert f"{shown} is no place of ACLs; expected {targets}" in told
    assert "kraft:///" not in told
    assert migrate(wrong, source) == 1
    told = capsys.readouterr().err
    assert "mds+http://HOST:PORT/CLUSTER_ID or kraft:///DIR" in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("file:{}/none.yaml", "file:{}/b.yaml"), "No such file or directory"),
        (("file:{}/source.yaml", "file:{}/none/b.yaml"), "No such file or directory"),
        (("file:{}/source.yaml", "file:{}/b.yaml.bak"), "ends with .yaml, .yml, .json, .csv, .txt"),
        (("file:{}/source.yaml", "file://host/b.yaml"), "without a host"),
        (("file:{}/source.yaml", "kraft:///{}"), "it can only be read"),
        (("file:{}/source.yaml", "file:{}/source.yaml"), "are the same place"),
        (("sqlite:///{}/none.db", "file:{}/b.yaml"), "there is no ACL store"),
        (("kraft:///{}", "file:{}/b.yaml"), "no metadata log"),
        (("file:{}/source.yaml", "kafka+acls://here"), "'here' is not HOST:PORT"),
        (("file:{}/source.yaml", "file:{}/b.yaml", "--to-config", "x"), "--to-config is for"),
        (("file:{}/source.yaml", "kafka+acls://me:secret@h:1"), "no login stands in a URL"),
        (("file:{}/source.yaml", "zookeeper://me:secret@h:1"), "no login stands in the URL"),
        (("file:{}/source.yaml", "kafka://h:1"), "names no topic"),
        (
            ("file:{}/source.yaml", "kafka+acls://127.0.0.1:9", "--to-config", "none.properties"),
            "none.properties",
        ),
    ],
)
def test_a_place_that_cannot_be_used_is_told(
    source: str,
    tmp_path: Path,
    options: tuple[str, ...],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert migrate(*(each.format(tmp_path) for each in options)) == 1
    told = capsys.readouterr().err
    assert problem in told
    assert "secret" not in told
    assert contents(source) == {OURS, DENIED}


@pytest.mark.parametrize("interval", ["0", "-1", "soon", "nan", "1e9"])
def test_an_interval_that_is_none_is_refused(
    interval: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["migrate", "--from", "a", "--to", "b", f"--interval={interval}"]
    with pytest.raises(SystemExit) as ended:
        parse_arguments(words)
    assert ended.value.code == 2
    assert "is no number of seconds" in capsys.readouterr().err


def test_a_cluster_that_cannot_be_reached_is_told(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [port] = free_ports(1)
    nobody = f"kafka+acls://127.0.0.1:{port}"
    for ends in ((source, nobody), (nobody, f"file:{tmp_path}/b.yaml")):
        assert migrate(*ends) == 1
        assert f"{nobody}: 127.0.0.1:{port}: Connection refused" in capsys.readouterr().err
    assert not (tmp_path / "b.yaml").exists()


@pytest.mark.parametrize("end", ["yaml", "json", "csv", "txt"])
def test_a_file_that_is_cut_off_within_an_acl_moves_nothing(
    tmp_path: Path, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"a.{end}"
    source, target = f"file:{path}", f"file:{tmp_path}/target.json"
    fill(source, random_acls(Random(4), 50, awkward=False))
    fill(target, [OURS])
    whole = path.read_bytes()
    middle = whole.index(b"\n", len(whole) // 2) - 4
    path.write_bytes(whole[:middle])
    assert migrate(source, target, "--prune") == 1
    assert str(path) in capsys.readouterr().err
    assert contents(target) == {OURS}
    path.write_bytes(b"")
    assert migrate(source, target, "--prune") == 1
    assert "it is empty" in capsys.readouterr().err
    assert contents(target) == {OURS}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "[]", 'expected {"version": 1, "acls": [...]}'),
        ("a.json", '{"version": 2, "acls": []}', "version must be 1, not 2"),
        ("a.json", '{"version": 1, "acls": {}}', "acls must be a list of objects"),
        ("a.json", '{"version": 1, "acls": [{}]}', "entry 1: expected exactly resource_type,"),
        ("a.json", '{"version": 1, "cluster": 1, "acls": []}', "cluster must be a text"),
        ("a.json", '{"version": 1, "acls": [], "acls": []}', 'key "acls" more than once'),
        ("a.csv", b"\xef\xbb\xbf", "the first line must name the columns"),
        ("a.csv", "a,b\n", "the first line must name the columns: resource_type,resource_name,"),
        ("a.csv", "{}TOPIC,x\n", "line 2: it has 2 values for 7 columns"),
        ("a.csv", '{}TOPIC,"x\n', "line 2: unexpected end of data"),
        (
            "a.csv",
            "{}TOPIC,x,LITERAL,User:a,*,REED,ALLOW\n",
            "line 2: operation must be one of",
        ),
        ("a.csv", "{}ANY,x,LITERAL,User:a,*,READ,ALLOW\n", "The resource type of a new ACL"),
        ("a.txt", "hello", "line 1: neither"),
        ("a.yaml", "acls: []", "version"),
        ("a.csv", b"\xfe", "line 1: 'utf-8' codec can't decode"),
    ],
)
def test_a_file_with_a_mistake_is_told_where(
    tmp_path: Path, name: str, text: str | bytes, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "resource_type,resource_name,pattern_type,principal,host,operation,permission\n"
    if isinstance(text, str):
        text = text.replace("{}", head, 1).encode() if name == "a.csv" else text.encode()
    (tmp_path / name).write_bytes(text)
    assert migrate(f"file:{tmp_path}/{name}", f"file:{tmp_path}/b.json") == 1
    assert problem in capsys.readouterr().err


def test_a_store_that_a_broker_uses_is_read_and_written(
    broker: Broker, source: str, tmp_path: Path
) -> None:
    store = f"sqlite:///{broker.store}"
    assert migrate(source, store) == 0
    wait_for(
        "the ACLs", lambda: described(broker.listeners["PLAINTEXT"]) == {OURS, DENIED} or None, 10
    )
    assert migrate(store, f"file:{tmp_path}/b.json") == 0
    assert contents(f"file:{tmp_path}/b.json") == {OURS, DENIED}


def test_a_cluster_without_an_authorizer_is_told(
    start_broker: StartBroker, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_broker({"authorizer.class.name": ""})
    assert migrate(source, f"kafka+acls://{broker.listeners['PLAINTEXT']}") == 1
    assert "cannot be described: SECURITY_DISABLED" in capsys.readouterr().err


def test_what_no_request_can_hold_is_lost(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/a.json", [OURS, allow("User:a", READ, "x" * 40_000)])
    assert migrate(source, f"kafka+acls://{broker.listeners['PLAINTEXT']}") == 1
    assert "requests take texts of 32767 bytes at most" in capsys.readouterr().err
    assert described(broker.listeners["PLAINTEXT"]) == {OURS}


def test_acls_of_long_names_are_divided_among_requests(broker: Broker, tmp_path: Path) -> None:
    acls = [allow("User:a", READ, f"{n}".rjust(32_767, "é")[-16_000:]) for n in range(200)]
    source = fill(f"file:{tmp_path}/a.json", acls)
    assert migrate(source, f"kafka+acls://{broker.listeners['PLAINTEXT']}") == 0
    assert described(broker.listeners["PLAINTEXT"]) == set(acls)


@pytest.mark.parametrize("accepts", [False, True])
def test_denys_that_a_cluster_refuses_end_the_move_before_any_allow(
    start_broker: StartBroker, tmp_path: Path, accepts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_broker(OPEN)
    address = broker.listeners["PLAINTEXT"]
    source = fill(f"file:{tmp_path}/a.json", [OURS, DENIED])
    status, _ = asked(url(broker), "POST", request="CreateAcls", error="INVALID_REQUEST", count="1")
    assert status == 201
    options = ["--accept-lost-denies"] if accepts else []
    assert migrate(source, f"kafka+acls://{address}", *options) == 1
    told = capsys.readouterr()
    assert "DENY WRITE on TOPIC LITERAL orders to User:bob from *: INVALID_REQUEST" in told.err
    assert described(address) == ({OURS} if accepts else set())
    assert ("Verified: the target has 1 of the 2 ACLs of the source." in told.out) is accepts
    assert migrate(source, f"kafka+acls://{address}") == 0
    assert described(address) == {OURS, DENIED}


def test_a_move_that_was_killed_is_finished_by_the_next_one(broker: Broker, tmp_path: Path) -> None:
    address = broker.listeners["PLAINTEXT"]
    acls = random_acls(Random(8), 20_000, awkward=False)
    source = fill(f"file:{tmp_path}/a.yaml", acls)
    words = ["--from", source, "--to", f"kafka+acls://{address}"]
    first = min(acl for acl in acls if acl.permission is AclPermission.DENY)
    with migrating(tmp_path / "log", *words) as process, session_with(address) as session:

        def has_begun() -> bool | None:
            return bool(describe_acls(session, exactly(first))) or None

        wait_for("the first ACLs", has_begun, 60)
        process.kill()
        there = described(address)
    assert first in there
    assert there < set(acls)
    assert migrate(source, f"kafka+acls://{address}") == 0
    assert described(address) == set(acls)


@pytest.mark.parametrize("end", ["json", "yaml"])
def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "target"
    folder.mkdir()
    source = fill(f"file:{tmp_path}/a.json", ACLS)
    target = fill(f"file:{folder}/b.{end}", [OURS])
    words = [str(COMMAND), "migrate", "--from", source, "--to", target]
    limited = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *words]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert contents(target) == {OURS}
    assert [each.name for each in folder.iterdir()] == [f"b.{end}"]


def test_a_bar_on_a_terminal_tells_how_far_it_is(broker: Broker, tmp_path: Path) -> None:
    source = fill(f"file:{tmp_path}/a.json", ACLS)
    words = [str(COMMAND), "migrate", "--from", source]
    words += ["--to", f"kafka+acls://{broker.listeners['PLAINTEXT']}"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert b"Verified" in process.stdout.read()
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert f"[{'#' * 40}] 500 of 500" in shown
    assert shown.endswith("\r\x1b[K")


def test_ctrl_c_in_mid_copy_is_no_success(tmp_path: Path) -> None:
    # So many that it takes seconds, in which the signal comes also on a busy machine.
    acls = [allow(name=f"topic-{number}") for number in range(100_000)]
    source = fill(f"file:{tmp_path}/a.csv", acls)
    words = ["--from", source, "--to", f"sqlite:///{tmp_path}/b.db", "--follow"]
    with migrating(tmp_path / "log", *words) as process:
        wait_for("the plan", lambda: (tmp_path / "b.db").exists() or None, 60)
        process.running.send_signal(signal.SIGINT)
        assert process.running.wait(30) == 130
    assert "interrupted" in process.log_text()
    assert migrate(source, f"sqlite:///{tmp_path}/b.db") == 0
    assert len(contents(f"sqlite:///{tmp_path}/b.db")) == len(acls)
