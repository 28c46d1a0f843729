"""`aclbroker scram add` makes the first users of a broker that nobody could log in to."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.accounts import properties_text
from tests.support.broker import COMMAND, Broker
from tests.support.client import Client
from tests.support.process import wait_for

ONLY_SCRAM = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "super.users": "User:root",
}


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    """A broker that does not run yet, and its file of properties."""
    broker = Broker(tmp_path, ONLY_SCRAM)
    (tmp_path / "server.properties").write_text(properties_text(broker.properties))
    return broker


def add(directory: Path, *words: str, password: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "scram", "add", directory / "server.properties", *words],
        input=password,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def recorded(text: str) -> list[dict[str, Any]]:
    """Return the records in a log, without what differs from run to run."""
    found = [json.loads(line) for line in text.splitlines()]
    for each in found:
        del each["timestamp"], each["cluster_id"]
    return found


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_was_added_logs_in_and_changes_acls(
    broker: Broker, tmp_path: Path, mechanism: str
) -> None:
    options = ("--mechanism", mechanism, "--iterations", "8192")
    added = add(tmp_path, "root", *options, password="p=ass,w\xf6rd\n")
    assert (added.stdout, added.returncode) == (f"'root' may log in with {mechanism}.\n", 0)
    assert recorded(added.stderr) == [
        {
            "level": "info",
            "event": "change",
            "node_id": 1,
            "by": "aclbroker scram add",
            "action": "UPSERT_SCRAM_CREDENTIAL",
            "user": {"name": "root", "mechanism": mechanism, "iterations": 8192},
            "error": "NONE",
            "error_message": None,
        }
    ]
    broker.start()
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login_scram("root", "p=ass,w\xf6rd", mechanism).error_code == 0
        assert client.resource_names() == []
    broker.terminate()


def test_the_change_is_recorded_in_the_audit_file_of_the_broker(
    broker: Broker, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.jsonl"
    broker.properties["aclbroker.audit.file"] = str(audit)
    file = tmp_path / "server.properties"
    file.write_text(properties_text(broker.properties))
    added = add(tmp_path, "root", password="sesame")
    assert (added.stderr, added.returncode) == ("", 0)
    [change] = recorded(audit.read_text())
    assert (change["by"], change["user"]["name"]) == ("aclbroker scram add", "root")
    assert "sesame" not in audit.read_text()
    broker.start()
    assert {each["cluster_id"] for each in broker.events() if each["event"] == "ready"} == {
        json.loads(audit.read_text())["cluster_id"]
    }
    broker.terminate()


def test_what_cannot_be_recorded_is_not_changed(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    nowhere = tmp_path / "missing" / "audit.jsonl"
    elsewhere = {"aclbroker.audit.file": str(nowhere)}
    file.write_text(properties_text(broker.properties | elsewhere))
    refused = add(tmp_path, "root", password="x")
    assert refused.returncode == 1
    assert f"aclbroker.audit.file={nowhere}: cannot be opened: No such file" in refused.stderr
    broker.start()
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login_scram("root", "x", "SCRAM-SHA-512").error_code != 0
    broker.terminate()


def test_a_password_that_is_added_again_is_changed(broker: Broker, tmp_path: Path) -> None:
    for password in ("old", "new"):
        assert add(tmp_path, "root", password=password).returncode == 0
    broker.start()
    codes = []
    for password in ("old", "new"):
        with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
            codes.append(client.login_scram("root", password, "SCRAM-SHA-512").error_code)
    broker.terminate()
    assert codes == [58, 0]


@pytest.mark.parametrize(("second", "expected"), [("sesame", 0), ("other", 1)])
def test_the_password_is_asked_for_twice_in_a_terminal_and_not_shown(
    broker: Broker, tmp_path: Path, second: str, expected: int
) -> None:
    terminal, end_of_command = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "scram", "add", tmp_path / "server.properties", "root"],
        stdin=end_of_command,
        stdout=end_of_command,
        stderr=end_of_command,
        start_new_session=True,
    ) as process:
        os.close(end_of_command)
        shown = b""
        # What is typed before a question is thrown away.
        for question, answer in (("Password of root: ", "sesame"), ("Once more: ", second)):
            while question.encode() not in shown:
                shown += os.read(terminal, 4096)
            os.write(terminal, f"{answer}\n".encode())
        with suppress(OSError):  # So Linux tells that the command has ended.
            while chunk := os.read(terminal, 4096):
                shown += chunk
        os.close(terminal)
    assert process.returncode == expected
    assert not any(password in shown for password in (b"sesame", b"other"))
    assert (b"not the same" in shown) == bool(expected)


def test_a_user_is_added_while_the_broker_runs(broker: Broker, tmp_path: Path) -> None:
    broker.start()
    assert add(tmp_path, "root", password="x").returncode == 0

    def logs_in() -> bool | None:
        with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
            return client.login_scram("root", "x", "SCRAM-SHA-512").error_code == 0 or None

    wait_for("the login", logs_in, 10)
    broker.terminate()


def test_what_is_wrong_is_said(broker: Broker, tmp_path: Path) -> None:
    empty = add(tmp_path, "root", password="\n")
    assert (empty.stderr, empty.returncode) == ("aclbroker: the password is empty\n", 1)
    assert not broker.store.exists()
    file = tmp_path / "server.properties"
    file.write_text(properties_text(broker.properties | {"aclbroker.store": "memory:"}))
    kept = add(tmp_path, "root", password="x")
    assert (kept.returncode, "keeps nothing over a restart" in kept.stderr) == (1, True)
    file.write_text("listeners=nonsense")
    broken = add(tmp_path, "root", password="x")
    assert (broken.returncode, "is not NAME://HOST:PORT" in broken.stderr) == (1, True)
