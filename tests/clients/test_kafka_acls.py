"""kafka-acls.sh of Kafka 4.3.0 prints with our broker what it prints with a real Kafka."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.acl.files.reading import read_acls
from aclbroker.cli.acl_source import described
from aclbroker.pipeline.errors import InputError
from tests.clients.acl_command import (
    Commands,
    Printed,
    command_config,
    normalised,
    run_in_terminal,
    run_script,
)
from tests.support.broker import Broker
from tests.support.kafka import Kafka
from tests.support.process import wait_for

BOB_PRODUCES_TO_TEST = (
    "--add --allow-principal User:Bob --producer --topic Test- --resource-pattern-type prefixed"
)
BOB_ON_TEST = """\
ResourcePattern(resourceType=TOPIC, name=Test-, patternType=PREFIXED)`:
    (principal=User:Bob, host=*, operation=CREATE, permissionType=ALLOW)
    (principal=User:Bob, host=*, operation=DESCRIBE, permissionType=ALLOW)
    (principal=User:Bob, host=*, operation=WRITE, permissionType=ALLOW)
"""

# The examples of Kafka's documentation of kafka-acls.sh in its order, between them lists that
# show what each left behind. Where it describes a command in words only, that command is here;
# so is one for each resource type that it leaves out.
EXAMPLES = f"""
--add --allow-principal User:Bob --allow-principal User:Alice --allow-host 198.51.100.0 \
    --allow-host 198.51.100.1 --operation Read --operation Write --topic Test-topic
--add --allow-principal User:* --allow-host * --deny-principal User:BadBob \
    --deny-host 198.51.100.3 --operation Read --topic Test-topic
--add --allow-principal User:Peter --allow-host 198.51.200.1 --producer --topic *
--add --allow-principal User:Jane --producer --topic Test- --resource-pattern-type prefixed
{BOB_PRODUCES_TO_TEST}
--add --allow-principal User:Carol --operation AlterConfigs --cluster
--add --allow-principal User:Carol --operation Read --group Group-2
--add --allow-principal User:Carol --operation Describe --delegation-token token-1
--add --allow-principal User:Carol --operation CreateTokens --user-principal User:Dave
--list
--list --topic Test-topic
--list --topic *
--list --topic Test-topic --resource-pattern-type match
--list --topic Test- --resource-pattern-type prefixed
--list --principal User:Bob
--list --group Group-2 --cluster
--list --user-principal User:Dave --delegation-token token-1
--remove --force --allow-principal User:Bob --allow-principal User:Alice \
    --allow-host 198.51.100.0 --allow-host 198.51.100.1 --operation Read --operation Write \
    --topic Test-topic
--list --topic Test-topic
--remove --force --allow-principal User:Jane --producer --topic Test- \
    --resource-pattern-type Prefixed
--list --topic Test- --resource-pattern-type prefixed
--add --allow-principal User:Bob --producer --topic Test-topic
--add --allow-principal User:Bob --producer --topic Test-topic
--add --allow-principal User:Alice --consumer --topic Test-topic --group Group-1
--add --allow-principal User:Dave --producer --idempotent --topic Test-topic \
    --transactional-id Tx-1
--list
--remove --force --allow-principal User:Bob --producer --topic Test-topic
--remove --force --allow-principal User:Alice --consumer --topic Test-topic --group Group-1
--list --topic Test-topic --group Group-1
--command-config ADMIN --add --allow-principal User:Bob --producer --topic Test-topic
--command-config ADMIN --list --topic Test-topic
--remove --force --topic Test-topic --resource-pattern-type any
--remove --force --topic Test-topic --resource-pattern-type match
--list
"""


@pytest.fixture(scope="module")
def acl_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("acl-commands") / "stderr")
    yield commands
    commands.close()


def _run_on(server: Broker | Kafka, commands: Commands, example: str, admin: str) -> Printed:
    words = [admin if word == "ADMIN" else word for word in shlex.split(example)]
    listener = "SASL_PLAINTEXT" if admin in words else "PLAINTEXT"
    return commands.run("--bootstrap-server", server.listeners[listener], *words)


def _wait_until_the_same_acls(broker: Broker, kafka: Kafka, commands: Commands, admin: str) -> None:
    """A Kafka broker lists a change a little after it answered it."""
    ours = normalised(_run_on(broker, commands, "--list", admin).out)
    wait_for(
        f"Kafka lists {ours}",
        lambda: normalised(_run_on(kafka, commands, "--list", admin).out) == ours or None,
        seconds=10,
    )


def test_the_documented_examples_print_what_they_print_with_a_real_kafka(
    broker: Broker, bare_kafka: Kafka, acl_commands: Commands, tmp_path: Path
) -> None:
    admin = command_config(tmp_path, "admin")
    for example in EXAMPLES.strip().splitlines():
        _wait_until_the_same_acls(broker, bare_kafka, acl_commands, admin)
        ours = _run_on(broker, acl_commands, example, admin)
        kafkas = _run_on(bare_kafka, acl_commands, example, admin)
        assert (ours.status, kafkas.status) == (0, 0), f"{example}\n{ours.out}\n{kafkas.out}"
        assert normalised(ours.out) == normalised(kafkas.out), example


def test_acls_that_the_script_added_are_listed_after_a_restart(broker: Broker) -> None:
    added = run_script(
        "--bootstrap-server", broker.listeners["PLAINTEXT"], *BOB_PRODUCES_TO_TEST.split()
    )
    broker.restart()
    listed = run_script("--bootstrap-server", broker.listeners["PLAINTEXT"], "--list")
    assert normalised(added.out) == normalised(f"Adding ACLs for resource `{BOB_ON_TEST}")
    assert normalised(listed.out) == normalised(f"Current ACLs for resource `{BOB_ON_TEST}")
    assert (added.status, listed.status) == (0, 0)


def test_groups_are_named_as_users_are(broker: Broker, acl_commands: Commands) -> None:
    added, listed = (
        acl_commands.run("--bootstrap-server", broker.listeners["PLAINTEXT"], *command.split())
        for command in (
            "--add --allow-principal Group:staff --operation Read --topic orders",
            "--list --principal Group:staff",
        )
    )
    assert (added.status, listed.status) == (0, 0)
    acl = "(principal=Group:staff, host=*, operation=READ, permissionType=ALLOW)"
    assert acl in added.out
    assert acl in listed.out


def test_a_removal_is_asked_about_in_the_terminal_and_then_done(
    broker: Broker, acl_commands: Commands
) -> None:
    bootstrap = ("--bootstrap-server", broker.listeners["PLAINTEXT"])
    acl_commands.run(*bootstrap, *BOB_PRODUCES_TO_TEST.split())
    removal = ["--remove", "--topic", "Test-", "--resource-pattern-type", "prefixed"]

    refused = run_in_terminal("n", *bootstrap, *removal)
    assert "Are you sure you want to delete all ACLs for resource filter" in refused.out
    listed = acl_commands.run(*bootstrap, "--list")
    assert normalised(listed.out) == normalised(f"Current ACLs for resource `{BOB_ON_TEST}")

    confirmed = run_in_terminal("y", *bootstrap, *removal)
    assert (refused.status, confirmed.status) == (0, 0)
    assert acl_commands.run(*bootstrap, "--list") == Printed("", 0)


@pytest.mark.parametrize("server", ["broker", "bare_kafka"])
@pytest.mark.parametrize(
    "command",
    [
        "--list",
        "--add --allow-principal User:alice --operation All --topic *",
        "--remove --force --topic *",
    ],
)
def test_a_user_without_rights_is_told_that_the_cluster_authorization_failed(
    server: str,
    command: str,
    request: pytest.FixtureRequest,
    acl_commands: Commands,
    tmp_path: Path,
) -> None:
    bootstrap = request.getfixturevalue(server).listeners["SASL_PLAINTEXT"]
    alice = command_config(tmp_path, "alice")
    printed = acl_commands.run(
        "--bootstrap-server", bootstrap, "--command-config", alice, *command.split()
    )
    assert re.match(
        "Error while executing ACL command: "
        r"org\.apache\.kafka\.common\.errors\.ClusterAuthorizationException: \S",
        printed.out,
    )
    assert printed.status == 1


@pytest.mark.parametrize("server", ["broker", "bare_kafka"])
def test_a_wrong_password_is_told_with_the_message_of_a_real_kafka(
    server: str, request: pytest.FixtureRequest, acl_commands: Commands, tmp_path: Path
) -> None:
    bootstrap = request.getfixturevalue(server).listeners["SASL_PLAINTEXT"]
    alice = command_config(tmp_path, "alice", "guessed")
    printed = acl_commands.run("--bootstrap-server", bootstrap, "--command-config", alice, "--list")
    assert printed.out.splitlines()[0] == (
        "Error while executing ACL command: "
        "org.apache.kafka.common.errors.SaslAuthenticationException: "
        "Authentication failed: Invalid username or password"
    )
    assert printed.status == 1


def test_the_audit_analysis_reads_what_the_script_lists_as_what_a_broker_describes(
    broker: Broker, acl_commands: Commands, tmp_path: Path
) -> None:
    admin = command_config(tmp_path, "admin")
    for example in EXAMPLES.strip().splitlines():
        if example.startswith("--add"):
            _run_on(broker, acl_commands, example, admin)
    listed = tmp_path / "listed"
    listed.write_text(_run_on(broker, acl_commands, "--list", admin).out)
    acls = set(read_acls(str(listed)).acls)
    assert len(acls) == listed.read_text().count("principal=") > 20
    for listener, config in (("PLAINTEXT", None), ("SASL_PLAINTEXT", admin)):
        found = described(broker.listeners[listener], config)
        assert set(found.acls) == acls
        assert found.cluster


def test_a_broker_that_cannot_be_asked_is_named_with_the_reason(
    broker: Broker, tmp_path: Path
) -> None:
    alice = command_config(tmp_path, "alice")
    with pytest.raises(InputError, match=r"kafka://.*the ACLs cannot be described: 31"):
        described(broker.listeners["SASL_PLAINTEXT"], alice)
    with pytest.raises(InputError, match=r"kafka://nowhere: .*'nowhere' is not HOST:PORT"):
        described("nowhere", None)
    with pytest.raises(InputError, match=r"kafka://127.0.0.1:1: .*refused"):
        described("127.0.0.1:1", None)
