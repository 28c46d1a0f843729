"""docs/conformance.md can be followed: its commands and files are all that is needed."""

from __future__ import annotations

import re
from pathlib import Path

from aclbroker.conformance.options import read_target
from tests.conformance_tool.examples import CATALOG, conformance, to
from tests.conftest import StartBroker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text()


CLIENTS = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
"""What the page gives as command configs: with passwords, and with certificates."""


def properties(text: str) -> dict[str, str]:
    lines = text.replace("\\\n", "").splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value.strip() for name, _, value in pairs}


def test_the_suite_runs_with_what_the_page_and_the_command_print(
    start_broker: StartBroker, tmp_path: Path
):
    printed = conformance("catalog")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert properties(printed.stdout) == CATALOG
    example = properties((ROOT / "examples" / "server.properties").read_text())
    here = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "aclbroker.store": "memory:"}
    broker = start_broker({**properties(printed.stdout), **example, **here})
    client, _ = CLIENTS
    file = tmp_path / "suite.properties"
    file.write_text(client)
    address = broker.listeners["SASL_PLAINTEXT"]
    # All cases are played elsewhere; here it is what the files say that counts.
    apis = ("--api", "CreateAcls", "--api", "Metadata", "--api", "DescribeGroups")
    ended = conformance("compare", *to(address, str(file)), *apis, "--yes")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_page_has_a_command_config_with_certificates(tmp_path: Path):
    _, client = CLIENTS
    file = tmp_path / "suite.properties"
    file.write_text(client)
    target = read_target("localhost:9093", str(file))
    assert target.warnings == []
    assert target.principal == "User:CN=alice"
    for login, name in ((target.super_user, "admin"), (target.user, "alice")):
        assert login.settings.protocol == "SSL"
        assert login.settings.values["ssl.keystore.type"] == "PEM"
        assert login.settings.values["ssl.keystore.location"] == f"/etc/kafka/{name}.pem"
