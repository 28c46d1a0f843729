"""The messages: one generated module for each API key, and the registry of the keys."""

from aclbroker.protocol.messages.api import Api
from aclbroker.protocol.messages.registry import APIS, ApiKey

__all__ = ["APIS", "Api", "ApiKey"]
