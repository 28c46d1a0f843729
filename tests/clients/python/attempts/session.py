"""Who attempts something, at which broker, and how long its clients wait for anything."""

import time
from typing import Any

DONE = "done"
NOTHING = "nothing"


class Session:
    """One attempt's login and patience in seconds, which begins now."""

    def __init__(self, patience: float, address: str, user: str, password: str) -> None:
        self.patience = patience
        self.address = address
        self.user = user
        self.password = password
        self._deadline = time.monotonic() + patience

    @property
    def left(self) -> float:
        """The seconds of patience that are left, 0 at least."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of any client of kafka-python, and of aiokafka, which comes from it."""
        return {
            "bootstrap_servers": self.address,
            "request_timeout_ms": int(self.patience * 1000),
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }
