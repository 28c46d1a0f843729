"""The recipe of the container image, as far as it can be followed without docker."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from aclbroker.testing.clients import client_config
from tests.packaging.pythons import ROOT
from tests.support.broker import COMMAND
from tests.support.kafka import free_ports
from tests.support.process import LoggedProcess

RECIPE = (ROOT / "Dockerfile").read_text()
CONFIGURATION = "/etc/aclbroker/server.properties"
EXAMPLE = ROOT / "examples" / "testing.properties"
READY_WITHIN = 30


def copied() -> list[str]:
    """What the recipe copies from the repository, but for single files of `requirements`."""
    found = re.findall(r"^COPY (.+) \S+$", RECIPE, re.MULTILINE)
    return [name for line in found for name in line.split() if not name.startswith("requirements")]


def built(source: Path, directory: Path) -> set[str]:
    """The files of the package in a wheel that is built from a directory."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [wheel] = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("aclbroker/")}


def test_the_image_gets_all_of_the_package(tmp_path):
    source = tmp_path / "context"
    source.mkdir()
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    for name in copied():
        assert f"!{name}" in sent, f"{name} is copied, and .dockerignore keeps it from docker"
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(
                path,
                source / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        else:
            shutil.copy(path, source)
    files = built(source, tmp_path / "image")
    assert files == built(ROOT, tmp_path / "whole")
    assert "aclbroker/testing/acl_broker.py" in files


@pytest.fixture
def container(tmp_path: Path) -> Iterator[tuple[LoggedProcess, int]]:
    """The image's command with the example's configuration, and the port at which it is reached."""
    [port] = free_ports(1)
    entry = json.loads(re.findall(r"^ENTRYPOINT (.+)$", RECIPE, re.MULTILINE)[0])
    words = json.loads(re.findall(r"^CMD (.+)$", RECIPE, re.MULTILINE)[0])
    assert (entry, CONFIGURATION in words) == (["aclbroker"], True)
    command = [str(COMMAND), *(str(EXAMPLE) if word == CONFIGURATION else word for word in words)]
    for name in ("listeners", "advertised.listeners"):
        # In a container the port is one of its own, and all of its addresses are listened to.
        command += ["--override", f"{name}=SASL_PLAINTEXT://127.0.0.1:{port}"]
    process = LoggedProcess(command, tmp_path, "container.log")
    process.spawn()
    yield process, port
    process.terminate()


def test_clients_are_let_in_when_the_documented_line_is_in_the_log(container):
    process, port = container
    page = (ROOT / "docs" / "testing.md").read_text()
    [pattern] = re.findall(r"^```regex\n(.+)\n```$", page, re.MULTILINE)
    in_java = f".*{pattern}.*\\n".replace("\\", "\\\\").replace('"', '\\"')
    assert f'Wait.forLogMessage("{in_java}", 1)' in page

    process.wait_until_ready(
        lambda: re.search(pattern, process.new_log_text()), seconds=READY_WITHIN
    )
    config = client_config("confluent", f"127.0.0.1:{port}", "admin", "admin-secret")
    assert set(AdminClient(config).list_topics(timeout=10).topics) == {"orders", "payments"}
    lines = [line for line in process.new_log_text().splitlines() if re.search(pattern, line)]
    assert [json.loads(line)["listeners"] for line in lines] == [
        {"SASL_PLAINTEXT": f"127.0.0.1:{port}"}
    ]


def test_the_example_listens_where_a_container_is_reached_and_is_lost_at_its_end():
    text = EXAMPLE.read_text()
    assert "\nlisteners=SASL_PLAINTEXT://:9092\n" in text
    assert "\nEXPOSE 9092\n" in RECIPE
    assert "\naclbroker.store=memory:\n" in text


def test_only_the_gateway_of_the_composition_reaches_its_kafka():
    composition = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    gateway, kafka = (composition["services"][name] for name in ("gateway", "kafka"))
    [network] = kafka["networks"]
    assert composition["networks"][network] == {"internal": True}
    assert network in gateway["networks"]
    assert "ports" not in kafka
    settings = dict(
        line.split("=", 1)
        for line in (ROOT / "examples" / "gateway.properties").read_text().splitlines()
        if line.startswith(("listeners=", "aclbroker.upstream."))
    )
    advertised = kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert settings["aclbroker.upstream.bootstrap.servers"] == advertised.rpartition("/")[2]
    [published] = gateway["ports"]
    assert settings["listeners"].rpartition(":")[2] == published.rpartition(":")[2]
