"""Questions about the ACLs of a running broker, which is asked for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.broker.client.acls import create_acls
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.acl.examples import READ, allow
from tests.cli.test_questions import ACLS
from tests.clients.acl_command import command_config
from tests.support.broker import Broker

Ask = Callable[..., tuple[int, str, str]]

WHO_CAN = ("who-can", "READ", "topic", "orders")


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    write_policy(Policy(ACLS), path)
    return str(path)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command; return its status, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        command = parse_arguments(words)
        assert isinstance(command, QuestionCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_running_broker_is_asked_for_its_acls(ask: Ask, broker: Broker, policy: str):
    address = broker.listeners["PLAINTEXT"]
    with open_session(read_addresses(address), read_settings(None)) as session:
        assert ask(*WHO_CAN, "--bootstrap-server", address)[:2] == (0, "nobody\n")
        create_acls(session, ACLS)
        found = ask(*WHO_CAN, "--bootstrap-server", address)[:2]
        assert found == ask(*WHO_CAN, "--acls", policy)[:2]
        assert found[1] == "User:bob from 10.0.0.8\nUser:etl from any host\n"
        assert ask("diff", policy, f"kafka://{address}")[:2] == (0, "no difference\n")
        create_acls(session, [allow("User:carol", READ, "orders")])
    status, out, _ = ask("diff", policy, f"kafka://{address}")
    assert (status, out.splitlines()[0]) == (
        1,
        "+ User:carol: READ, DESCRIBE on TOPIC LITERAL orders from any host",
    )


def test_a_broker_that_does_not_show_its_acls_is_not_one_without_any(
    ask: Ask, broker: Broker, policy: str, tmp_path: Path
):
    address = broker.listeners["SASL_PLAINTEXT"]
    alice = ("--command-config", command_config(tmp_path, "alice"))
    for words in (
        (*WHO_CAN, "--bootstrap-server", address),
        ("diff", policy, f"kafka://{address}"),
    ):
        status, out, problem = ask(*words, *alice)
        assert (status, out) == (2, "")
        assert f"kafka://{address}: the ACLs cannot be described" in problem
        assert "It needs DESCRIBE on the cluster" in problem
