"""Client libraries that log in: each says what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.clients.acl_command import MAIN_CLASS
from tests.support.packages import JVM_FLAGS, compiled_go, java_command, kafka_jars

ENDS_WITHIN = 60.0

_HERE = Path(__file__).parent


def python(library: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """What a Python library says, "" if it got in."""
    program = [sys.executable, str(_HERE / "login.py"), library]
    return _said(_output([*program, *arguments], environment))


def franz_go(*arguments: str) -> str:
    """What franz-go says, "" if it got in."""
    return _said(_output([str(compiled_go("go-logins", _HERE / "go") / "logins"), *arguments]))


def kafka_acls(address: str, directory: Path, settings: Mapping[str, str], *flags: str) -> str:
    """What kafka-acls.sh of Kafka 4.3.0 says when it could not list all ACLs, "" if it could."""
    file = directory / "command.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = java_command(MAIN_CLASS, kafka_jars(), minimum=17, flags=(*JVM_FLAGS, *flags))
    options = ["--bootstrap-server", address, "--command-config", str(file), "--list"]
    printed = _output([*java, *options])
    return printed.splitlines()[0] if printed.startswith("Error") else ""


def _output(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=ENDS_WITHIN,
        check=False,
    )
    return done.stdout


def _said(output: str) -> str:
    return json.loads(output)["error"] or ""
