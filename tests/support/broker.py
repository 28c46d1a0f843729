"""Our broker, started as a user starts it: the command `aclbroker serve FILE`."""

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.accounts import AUTHORIZER, SASL_PLAIN, properties_text
from tests.support.process import LoggedProcess

COMMAND = Path(sys.executable).parent / "aclbroker"
READY_WITHIN = 60.0


class Broker(LoggedProcess):
    """One aclbroker process: `listeners` maps a listener name to its host:port once started.

    Its server.properties has a PLAINTEXT and a SASL_PLAINTEXT listener on free ports, the users
    of `accounts` and a store in `directory`; `overrides` are added, or replace these entries.
    """

    def __init__(
        self,
        directory: Path,
        overrides: dict[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.store = directory / "acl.db"
        self.properties = {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "aclbroker.store": f"sqlite:///{self.store}",
            "aclbroker.log.format": "json",
            **AUTHORIZER,
            **SASL_PLAIN,
            **(overrides or {}),
        }
        self._properties_file = directory / "server.properties"
        super().__init__(
            [str(COMMAND), "serve", str(self._properties_file)],
            directory,
            "aclbroker.log",
            environment,
        )
        self.listeners: dict[str, str] = {}

    def start(self, within: float = READY_WITHIN) -> None:
        """Write server.properties, start the process and wait until it says that it is ready.

        Raises RuntimeError with the log if it ends, or is not ready in time.
        """
        self.write_properties()
        self.spawn()
        ready = self.wait_until_ready(self._ready_event, within)
        self.listeners = ready["listeners"]

    def write_properties(self) -> None:
        """Write server.properties."""
        self._properties_file.write_text(properties_text(self.properties))

    def restart(self) -> None:
        """Stop with SIGTERM, start again on the same store; the ports may be others."""
        self.terminate()
        self.start()

    def hang_up(self) -> None:
        """Send SIGHUP: it reads its configuration and its files again."""
        self.running.send_signal(signal.SIGHUP)

    def events(self) -> list[dict[str, Any]]:
        """The log lines since the last start, except those that are not JSON."""
        lines = self.new_log_text().split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def told(self, event: str) -> tuple[int, int]:
        """How many lines of an event there are since the last start, and of how many they tell.

        Those left out, since there were too many, are told by later lines.
        """
        lines = [each for each in self.events() if each["event"] == event]
        left_out = sum(each.get("not_logged_before", 0) for each in lines)
        rest = sum(each["count"] for each in self.events() if each.get("of") == event)
        return len(lines), len(lines) + left_out + rest

    def _ready_event(self) -> dict[str, Any] | None:
        return next((event for event in self.events() if event.get("event") == "ready"), None)
