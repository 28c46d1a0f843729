"""The command `aclbroker conformance`: what it does before, and what it does not do at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance_tool.examples import command_config, conformance, to
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.kafka import free_ports


def compare(address: str, file: str, *others: str) -> subprocess.CompletedProcess[str]:
    return conformance("compare", *to(address, file), *others)


def test_without_yes_it_says_what_it_would_do_and_does_nothing(broker: Broker, tmp_path: Path):
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.create(topic_read("kept"))
        address = broker.listeners["SASL_PLAINTEXT"]
        ended = compare(address, command_config(tmp_path))
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"This deletes ALL ACLs of the cluster at {address}")
        assert ended.stderr.endswith("Nothing was done. Add --yes to go on.\n")
        assert client.resource_names() == ["kept"]


def test_a_broker_without_the_suites_topics_is_refused(broker: Broker, tmp_path: Path):
    ended = compare(broker.listeners["SASL_PLAINTEXT"], command_config(tmp_path), "--yes")
    assert ended.returncode == 2
    assert "aclbroker conformance: the topic conformance-" in ended.stderr
    assert "is not there, and to create it is refused with 44: " in ended.stderr


@pytest.mark.parametrize("user", ["admin", "alice"])
def test_a_password_that_is_wrong_ends_it_before_anything_is_done(
    broker: Broker, tmp_path: Path, user: str
):
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.create(topic_read("kept"))
        file = command_config(tmp_path)
        Path(file).write_text(Path(file).read_text().replace(f"{user}-secret", "wrong-secret"))
        ended = compare(broker.listeners["SASL_PLAINTEXT"], file, "--yes")
        assert ended.returncode == 2
        assert f"aclbroker conformance: User:{user} cannot log in: Auth" in ended.stderr
        assert "wrong-secret" not in ended.stderr
        assert client.resource_names() == ["kept"]


def test_a_login_module_of_another_mechanism_ends_it_before_anything_is_done(
    broker: Broker, tmp_path: Path
):
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.create(topic_read("kept"))
        file = command_config(tmp_path, {"conformance.user.sasl.mechanism": "SCRAM-SHA-256"})
        ended = compare(broker.listeners["SASL_PLAINTEXT"], file, "--yes")
        assert ended.returncode == 2
        assert "the login module of SCRAM-SHA-256 is ScramLoginModule" in ended.stderr
        assert client.resource_names() == ["kept"]


def test_a_broker_that_is_not_there_is_said(tmp_path: Path):
    [port] = free_ports(1)
    ended = compare(f"127.0.0.1:{port}", command_config(tmp_path), "--yes")
    assert ended.returncode == 2
    assert "Connection refused" in ended.stderr


def test_a_recording_that_is_none_ends_it_before_anything_is_done(tmp_path: Path):
    file = tmp_path / "recording"
    file.write_text("nothing")
    ended = compare("127.0.0.1:1", command_config(tmp_path), "--yes", "--recording", str(file))
    assert ended.returncode == 2
    assert "aclbroker conformance: not a recording" in ended.stderr
    assert "ACLs" not in ended.stderr


@pytest.mark.parametrize("action", ["record", "compare"])
def test_help_says_that_it_replaces_the_acls(action: str):
    ended = conformance(action, "--help")
    assert ended.returncode == 0
    assert "Replaces all ACLs of the cluster." in " ".join(ended.stdout.split())


def test_the_command_line_is_read_without_importing_the_suite():
    program = (
        "import sys, aclbroker.cli; from aclbroker.cli.arguments import parse_arguments;"
        "parse_arguments(['serve']);"
        "print([name for name in sys.modules if 'broker.conformance' in name])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "[]\n"
