"""Small recordings, and the suite played to servers of these tests."""

import subprocess
from pathlib import Path
from typing import Any

from aclbroker.conformance.outline import ANSWERED, Outline
from aclbroker.conformance.recording import Recording, Step
from aclbroker.conformance.resources import DELETED_TOPIC, GROUPS, TOPICS
from aclbroker.protocol.messages import ApiKey
from tests.support.accounts import PASSWORDS, properties_text
from tests.support.broker import COMMAND

CATALOG = {
    "aclbroker.catalog.topics": ",".join(f"{name}:1" for name in (*TOPICS, DELETED_TOPIC)),
    "aclbroker.catalog.groups": ",".join(GROUPS),
}
"""What a broker of ours must be told that it has."""

OF_TOKENS = [f"{verb}DelegationToken" for verb in ("Create", "Renew", "Expire", "Describe")]
"""The APIs whose answers depend on whether there are delegation tokens."""

PATH = "topics[a].error_code"


def answered(
    codes: dict[str, int] | None = None,
    operations: dict[str, int] | None = None,
    names: dict[str, list[str]] | None = None,
    fields: dict[str, Any] | None = None,
    told: dict[str, list[str]] | None = None,
    named: list[int] | None = None,
) -> Outline:
    """The outline of an answer."""
    return Outline(
        ANSWERED, codes or {}, operations or {}, names or {}, fields or {}, told or {}, named or []
    )


def step(
    key: ApiKey = ApiKey.METADATA, label: str = "of a topic", version: int = 12, role: str = "none"
) -> Step:
    """A step."""
    return Step(key, label, version, role)


def recording(answers: dict[Step, Outline], broker: str = "Kafka") -> Recording:
    """A recording of a broker that offers versions 0 to 12 of the keys in it."""
    return Recording(broker, {each.key: range(13) for each in answers}, answers)


def jaas(user: str) -> str:
    """A client's `sasl.jaas.config`."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'{module} required username="{user}" password="{PASSWORDS[user]}";'


CLIENT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": jaas("admin"),
    "conformance.user.sasl.jaas.config": jaas("alice"),
}
"""A command config for a SASL_PLAINTEXT listener of these tests."""


def command_config(directory: Path, properties: dict[str, str | None] | None = None) -> str:
    """The path of a file with `CLIENT`, changed by `properties`; None leaves an entry out."""
    changed = CLIENT | (properties or {})
    file = directory / "command.properties"
    file.write_text(properties_text({name: v for name, v in changed.items() if v is not None}))
    return str(file)


def conformance(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The ended command `aclbroker conformance`."""
    return subprocess.run(
        [str(COMMAND), "conformance", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def to(address: str, file: str) -> tuple[str, ...]:
    """The arguments that name a broker and a command config."""
    return ("--bootstrap-server", address, "--command-config", file)
