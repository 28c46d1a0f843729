"""What is said when the broker cannot start: the setting behind it, and the address or the file."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartBroker
from tests.support.accounts import properties_text
from tests.support.broker import COMMAND, Broker
from tests.support.process import LoggedProcess, wait_for


def refusal(directory: Path, file: str, *arguments: str) -> str:
    """Return what the command says that does not serve a file."""
    process = LoggedProcess([str(COMMAND), "serve", file, *arguments], directory, "refusal.log")
    process.spawn()
    assert process.running.wait(30) == 1
    return process.new_log_text()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of 127.0.0.1 that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def reason(broker: Broker) -> str:
    """Return why the broker says that it cannot start."""
    with pytest.raises(RuntimeError):
        broker.start()
    [event] = [event for event in broker.events() if event["event"] == "cannot start"]
    return str(event["reason"])


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("listeners", "PLAINTEXT://127.0.0.1:{port}",
         "listeners: PLAINTEXT://127.0.0.1:{port}: cannot listen: "),
        ("aclbroker.metrics.address", "127.0.0.1:{port}",
         "aclbroker.metrics.address=127.0.0.1:{port}: cannot listen: "),
        ("aclbroker.audit.file", "/nowhere/audit.log",
         "aclbroker.audit.file=/nowhere/audit.log: cannot be opened: "),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_named_with_its_setting(
    tmp_path: Path, taken: int, setting: str, value: str, said: str
):
    said = said.format(port=taken)
    found = reason(Broker(tmp_path, {setting: value.format(port=taken)}))
    assert found.startswith(said)
    rest = found.removeprefix(said)
    assert rest.startswith(("Address already in use", "No such file or directory"))


def test_what_is_no_configuration_is_refused(tmp_path: Path):
    (tmp_path / "empty").write_text("")
    (tmp_path / "comments").write_text("# listeners=PLAINTEXT://:9092\n\n")
    (tmp_path / "readme").write_text("Broker settings: see the wiki\nowner = platform\n")
    assert refusal(tmp_path, "empty") == (
        "aclbroker: empty: is empty; allowed: a file with a setting, such as listeners\n"
    )
    assert "comments: is empty" in refusal(tmp_path, "comments")
    assert "readme: has no setting of Kafka or aclbroker" in refusal(tmp_path, "readme")
    assert "/bin/ls: is no properties file: it has bytes that are 0" in refusal(tmp_path, "/bin/ls")
    assert "Is a directory" in refusal(tmp_path, ".")


def test_a_sighup_before_the_broker_is_ready_has_the_configuration_read_again(tmp_path: Path):
    broker = Broker(tmp_path)
    file = tmp_path / "server.properties"
    os.mkfifo(file)
    broker.spawn()
    # The broker has opened its file once this can be opened, and has not read it yet.
    with file.open("w") as pipe:
        broker.running.send_signal(signal.SIGHUP)
        pipe.write(properties_text(broker.properties))
        file.unlink()
        file.write_text(properties_text(broker.properties))
    events = ("ready", "configuration reloaded")
    wait_for("both", lambda: {e["event"] for e in broker.events()} >= {*events} or None, 30)
    assert broker.terminate() == 0


@pytest.mark.parametrize("wrong", ["User:admin,User:ops", "User:admin User:ops"])
def test_a_list_of_super_users_without_semicolons_is_warned_of(
    start_broker: StartBroker, wrong: str
):
    users = f"{wrong}; User:CN=a b, OU=b;User:ANONYMOUS"
    broker = start_broker({"super.users": users})
    warnings = [event["event"] for event in broker.events() if event["level"] == "warning"]
    [found] = [text for text in warnings if "semicolons separate" in text]
    assert f"super.users: {wrong!r} is one principal" in found
