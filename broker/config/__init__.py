"""The configuration: a server.properties with Kafka's names, read once at start into a `Config`."""

from broker.config.load import load, shown_settings
from broker.config.model import (
    BUILT_IN_AUTHORIZER,
    NO_AUTHORIZER,
    Config,
    ConfigError,
    Listener,
)

__all__ = [
    "BUILT_IN_AUTHORIZER",
    "NO_AUTHORIZER",
    "Config",
    "ConfigError",
    "Listener",
    "load",
    "shown_settings",
]
