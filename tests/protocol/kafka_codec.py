"""Kafka's own Java classes as a codec, and what their JSON says in our terms."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from aclbroker.protocol.primitives import Array, Nullable, Uuid
from aclbroker.protocol.schema import Struct
from tests.support.packages import SLF4J, jars, java_command

PROGRAM = Path(__file__).parent / "java" / "Messages.java"
JACKSON = "com.fasterxml.jackson.core:jackson-databind:2.19.0"
RELEASES = ("4.3.0", "3.9.1")
"""Those whose specifications protocol/messages is made from, the one that counts first."""


class Understood(NamedTuple):
    """What Kafka made of a message."""

    data: bytes
    """The bytes that it writes of it."""
    values: dict[str, Any]
    """Its JSON; field names as `plain_name` has them."""


class KafkaCodec:
    """A JVM with the classes of one release."""

    def __init__(self, release: str) -> None:
        coordinates = (f"org.apache.kafka:kafka-clients:{release}", JACKSON, SLF4J)
        command = java_command(str(PROGRAM), jars(f"kafka-messages-{release}", coordinates))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, message: str, version: int, data: bytes) -> Understood | str:
        """Return what Kafka makes of a message's bytes, or why it refuses them."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{message} {version} {data.hex()}\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the JVM ended at {message} version {version}")
        written, _, values = answer.partition(" ")
        if written == "!":
            return values
        return Understood(bytes.fromhex(written), _plain_names(json.loads(values)))

    def close(self) -> None:
        """End the JVM."""
        self._process.communicate(timeout=30)


def plain_name(name: str) -> str:
    """Return a field's name without what differs between Java and Python."""
    return name.replace("_", "").lower()


def _plain_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {plain_name(name): _plain_names(inner) for name, inner in value.items()}
    return [_plain_names(entry) for entry in value] if isinstance(value, list) else value


def as_json(wire_type: Any, value: Any) -> Any:
    """Return one of our values as Kafka's JSON has it, with `plain_name`s."""
    match wire_type:
        case Struct():
            return _struct_as_json(wire_type, value)
        case Nullable():
            return None if value is None else as_json(wire_type.struct, value)
        case Array():
            return None if value is None else [as_json(wire_type.entry, entry) for entry in value]
        case _ if wire_type is Uuid:
            return base64.urlsafe_b64encode(value).decode().rstrip("=")
        case _ if isinstance(value, float) and math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _struct_as_json(struct: Struct, item: Any) -> dict[str, Any]:
    values = {}
    for name, wire_type in zip(struct.names, struct.fields, strict=True):
        values[name] = as_json(wire_type, getattr(item, name))
    for known in struct.known.values():
        # Kafka's JSON, too, has a tagged field only where it is not the default.
        if not known.is_default(value := getattr(item, known.name)):
            values[known.name] = as_json(known.wire_type, value)
    for field in dataclasses.fields(struct.cls):
        # Kafka's JSON says of records only whether there are some.
        if values.get(field.name) is not None and field.metadata["spec"].kind == "records":
            values[field.name] = ""
    return {plain_name(name): value for name, value in values.items()}
