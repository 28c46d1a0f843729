"""The configuration: a server.properties with Kafka's names, read once at start into a `Config`."""

from aclbroker.broker.config.load import load, shown_settings
from aclbroker.broker.config.model import (
    BUILT_IN_AUTHORIZER,
    BUILT_IN_PRINCIPAL_BUILDER,
    NO_AUTHORIZER,
    Config,
    ConfigError,
    Listener,
)
from aclbroker.broker.config.names import concerns_us
from aclbroker.broker.config.reader import listener_prefix

__all__ = [
    "BUILT_IN_AUTHORIZER",
    "BUILT_IN_PRINCIPAL_BUILDER",
    "NO_AUTHORIZER",
    "Config",
    "ConfigError",
    "Listener",
    "concerns_us",
    "listener_prefix",
    "load",
    "shown_settings",
]
