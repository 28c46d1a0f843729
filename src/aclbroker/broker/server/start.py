"""What a broker starts from, and what it tells once it is ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aclbroker.broker.config import Config
from aclbroker.broker.observability.logs import LogOutput, json_line
from aclbroker.broker.server.hangup import Hangup
from aclbroker.broker.server.start_error import naming


class Start(NamedTuple):
    """What a broker starts from.

    ``output`` is where audit records go that have no file of their own. ``read`` reads the
    configuration again, on SIGHUP or if ``hangup`` has come before; it raises `ConfigError`.
    ``ready_file`` is written once clients are let in, with the addresses of all listeners as JSON,
    and the URL for faults if there is one.
    """

    config: Config
    output: LogOutput
    read: Callable[[], Config]
    hangup: Hangup
    ready_file: Path | None = None


def write_ready_file(path: Path | None, told: Mapping[str, Any]) -> None:
    """Write the file, if there is to be one, so that nobody sees half of it; raises StartError."""
    if path is None:
        return
    with naming("--ready-file", str(path), "cannot be written"):
        made = path.with_name(f".{path.name}.{os.getpid()}")
        made.unlink(missing_ok=True)
        # Mode "x" fails on a symbolic link that another user has made there meanwhile.
        with made.open("x", encoding="utf-8") as file:
            file.write(f"{json_line(told)}\n")
        made.replace(path)
