"""The first steps of the README, and the certificates of docs/authentication.md, as shown there."""

import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.pythons import ROOT
from tests.support.kafka import free_ports
from tests.support.process import LoggedProcess
from tests.support.toolchain import require
from tests.support.tutorial import READY, shown_as

README = (ROOT / "README.md").read_text()
CALL = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*\n)(?P<printed>(?:(?!\$ ).*\n)*)", re.MULTILINE)
READY_WITHIN = 60.0


def calls(page: str, beginning: str) -> list[tuple[str, str]]:
    """The commands of the first console block with such a line, with what each prints."""
    texts = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    text = next(text for text in texts if beginning in text)
    return [(found["command"], found["printed"]) for found in CALL.finditer(text)]


def printed_by(command: str, directory: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def served(tmp_path: Path) -> Iterator[int]:
    """The port of a broker that `make serve` has started, in an environment that is set up."""
    [port] = free_ports(1)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    make = [require("make"), "--makefile", str(ROOT / "Makefile"), "--old-file=setup", "serve"]
    process = LoggedProcess([*make, f"ARGS=--port {port}"], tmp_path, "serve.log")
    process.spawn()
    process.wait_until_ready(lambda: READY.search(process.new_log_text()), READY_WITHIN)
    yield port
    process.terminate()


def test_the_first_steps_print_what_the_readme_shows(served: int, tmp_path: Path):
    steps = calls(README, "acls --bootstrap-server 127.0.0.1:9092 --add")
    assert len(steps) == 3
    for command, shown in steps:
        printed = printed_by(command.replace("127.0.0.1:9092", f"127.0.0.1:{served}"), tmp_path)
        # A line that is empty stands between two commands, or is printed.
        lines = ["\n".join(map(str.strip, text.strip().splitlines())) for text in (shown, printed)]
        assert shown_as(*lines), f"{command}is shown to print\n{shown}\nbut has printed\n{printed}"


def test_the_commands_make_certificates_that_clients_of_the_example_trust(tmp_path: Path):
    require("openssl")
    page = (ROOT / "docs" / "authentication.md").read_text()
    commands = calls(page, "openssl req")
    assert len(commands) == 3
    for command, _ in commands:
        printed_by(command, tmp_path)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    server.load_cert_chain(tmp_path / "broker.pem")
    client.load_verify_locations(tmp_path / "ca.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].getpeercert()
