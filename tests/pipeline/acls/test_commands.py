"""Scripts of kafka-acls.sh: what a shell passes on, and what Kafka's own tool makes of it."""

import os
import shlex
import subprocess
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.commands import inexpressible_reason, script
from aclbroker.protocol.messages import ApiKey
from tests.acl.examples import GROUP, PREFIXED, TOPIC, allow, deny
from tests.clients.acl_command import script_command
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client

TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
USER = ResourceType.USER

AWKWARD = ["'", '"', "$HOME", "`id`", "\\", "\n", "\t", " ", "-", "--add", "=", "*", ";", "é", "𝄞"]

RESOURCES = {
    "--topic": TOPIC,
    "--group": GROUP,
    "--transactional-id": TRANSACTIONAL_ID,
    "--user-principal": USER,
}


def run(directory: Path, tool: str, text: str, **variables: str) -> str:
    """What a script prints on standard output with `tool` as kafka-acls.sh."""
    on_path = directory / "kafka-acls.sh"
    on_path.write_text(f"#!/bin/sh\n{tool}\n")
    on_path.chmod(0o755)
    path = f"{directory}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "BOOTSTRAP": "broker:9092", **variables}
    done = subprocess.run(
        ["sh", "-s"], input=text, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def understood(words: list[str]) -> set[AclBinding]:
    """The ACLs that the words of one command mean, without the options that come first."""
    options: dict[str, list[str]] = {}
    while words:
        name, value, *words = words
        options.setdefault(name, []).append(value)
    word = "allow" if "--allow-principal" in options else "deny"
    (resource,) = options.keys() & RESOURCES.keys()
    (pattern,) = options.get("--resource-pattern-type", ["literal"])
    (principal,) = options[f"--{word}-principal"]
    (host,) = options.get(f"--{word}-host", ["*"])
    names = {each.name.replace("_", "").lower(): each for each in AclOperation}
    return {
        AclBinding(
            RESOURCES[resource],
            options[resource][0],
            PatternType[pattern.upper()],
            principal,
            host,
            names[operation.lower()],
            AclPermission[word.upper()],
        )
        for operation in options["--operation"]
    }


def awkward_acls(number: int) -> set[AclBinding]:
    random = Random(7)

    def text() -> str:
        return "".join(random.choices([*AWKWARD, "a", "b"], k=random.randint(1, 5)))

    return {
        random.choice((allow, deny))(
            f"User:{text()}",
            random.choice((AclOperation.ALL, AclOperation.DESCRIBE)),
            text(),
            resource_type=random.choice((TOPIC, GROUP, TRANSACTIONAL_ID)),
            pattern_type=random.choice((PatternType.LITERAL, PREFIXED)),
            host=random.choice(("*", "10.0.0.1", text())),
        )
        for _ in range(number)
    }


def test_a_shell_passes_on_every_name_as_it_is(tmp_path: Path) -> None:
    acls = {acl for acl in awkward_acls(300) if inexpressible_reason(acl) is None}
    assert len(acls) > 100
    out = run(tmp_path, r"""printf '%s\0' "$@" END""", "".join(script("test", acls)))
    found: set[AclBinding] = set()
    for command in out.removesuffix("END\0").split("END\0"):
        words = command.removesuffix("\0").split("\0")
        assert words[:3] == ["--bootstrap-server", "broker:9092", "--add"]
        found |= understood(words[3:])
    assert found == acls


def test_a_command_has_all_operations_of_a_rule_and_no_more() -> None:
    lines = "".join(
        script(
            "test",
            [
                allow(operation=AclOperation.READ),
                allow(operation=AclOperation.DESCRIBE_CONFIGS),
                deny(operation=AclOperation.WRITE, host="10.0.0.1"),
            ],
            [allow("User:*", AclOperation.ALL, CLUSTER_NAME, resource_type=ResourceType.CLUSTER)],
        )
    ).splitlines()
    start = 'kafka-acls.sh --bootstrap-server "$BOOTSTRAP" '
    start += '${COMMAND_CONFIG:+"--command-config=$COMMAND_CONFIG"} '
    assert [line.removeprefix(start) for line in lines if line.startswith(start)] == [
        "--add --deny-principal User:alice --deny-host 10.0.0.1 --operation Write --topic orders",
        "--add --allow-principal User:alice --operation Read --operation DescribeConfigs "
        "--topic orders",
        "--remove --force --allow-principal 'User:*' --operation All --cluster",
    ]


def test_denies_are_added_first_and_removed_last() -> None:
    acls = [allow("User:a"), deny("User:b"), allow("User:c")]

    def order(text: list[str]) -> list[str]:
        commands = [line for line in text if line.startswith("kafka-acls.sh ")]
        return [word for line in commands for word in shlex.split(line) if "User:" in word]

    assert order(list(script("test", acls))) == ["User:b", "User:a", "User:c"]
    assert order(list(script("test", (), acls))) == ["User:a", "User:c", "User:b"]


@pytest.mark.parametrize(
    ("acl", "reason"),
    [
        (allow(name=" padded"), "cuts the blanks around its resource name"),
        (allow("User:tab\t"), "cuts the blanks around its principal"),
        (allow(host="10.0.0.1\n"), "cuts the blanks around its host"),
        (allow(name="a\0b"), "NUL in its resource name"),
        (allow(operation=AclOperation.CREATE, resource_type=GROUP), "no CREATE of a GROUP"),
        (
            allow(name=CLUSTER_NAME, resource_type=ResourceType.CLUSTER, pattern_type=PREFIXED),
            "the cluster as LITERAL alone",
        ),
    ],
)
def test_what_the_tool_cannot_do_is_told_in_one_line(
    acl: AclBinding, reason: str, tmp_path: Path
) -> None:
    if acl.resource_type is ResourceType.CLUSTER:
        acl = acl._replace(operation=AclOperation.ALTER)
    text = "".join(script("test", [acl]))
    (told,) = [line for line in text.splitlines() if line.startswith("# Not done")]
    assert reason in told
    assert run(tmp_path, "echo called", text) == ""


def test_a_script_without_a_broker_to_talk_to_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="BOOTSTRAP: must be host:port of a broker"):
        run(tmp_path, "echo called", "".join(script("test", [allow()])), BOOTSTRAP="")


def listed(broker: Broker) -> set[AclBinding]:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        answer = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    return {
        AclBinding(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            AclPermission(acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    }


@pytest.mark.thorough  # A JVM for each of ten commands.
def test_kafkas_own_tool_makes_exactly_the_set(broker: Broker, tmp_path: Path) -> None:
    first = [
        allow('User:CN=O\'Brien, "x"\n$HOME', AclOperation.READ, "-x `id` é𝄞\\n", host=""),
        allow('User:CN=O\'Brien, "x"\n$HOME', AclOperation.WRITE, "-x `id` é𝄞\\n", host=""),
        deny("User:*", AclOperation.ALL, "--force", resource_type=GROUP, pattern_type=PREFIXED),
        allow(
            ":",
            AclOperation.TWO_PHASE_COMMIT,
            " padded ",
            resource_type=TRANSACTIONAL_ID,
            host="10.0.0.1",
        ),
        allow("User:a", AclOperation.CREATE_TOKENS, "User:*", resource_type=USER),
        allow("User:a", AclOperation.ALTER, CLUSTER_NAME, resource_type=ResourceType.CLUSTER),
    ]
    second = [*first[1:3], allow("User:*", AclOperation.DESCRIBE, "*")]
    tool = tmp_path / "tool"
    tool.mkdir()
    kafka_acls = f'exec {shlex.join(script_command())} "$@"'
    bootstrap = {"BOOTSTRAP": broker.listeners["PLAINTEXT"]}

    run(tool, kafka_acls, "".join(script("first", first)), **bootstrap)
    assert listed(broker) == set(first)
    steps = script("second", set(second) - set(first), set(first) - set(second))
    run(tool, kafka_acls, "".join(steps), **bootstrap)
    assert listed(broker) == set(second)
