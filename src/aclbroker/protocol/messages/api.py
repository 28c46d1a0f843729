"""What one API key is, and where its messages are declared."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple


class Api(NamedTuple):
    """One API key."""

    key: int
    name: str
    """Kafka's name of it, for example ``CreateAcls``."""
    versions: range
    flexible: int | None
    """The first version in the compact form with tagged fields (KIP-482), or None."""

    @property
    def request(self) -> Any:
        """The request's class; its module is imported at first use, to start fast."""
        return _message(self.name, "Request")

    @property
    def response(self) -> Any:
        """The response's class."""
        return _message(self.name, "Response")


@cache
def _message(api: str, direction: str) -> Any:
    module = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api).lower()
    return getattr(import_module(f"aclbroker.protocol.messages.{module}"), api + direction)
