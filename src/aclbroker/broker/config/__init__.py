"""The configuration: a server.properties with Kafka's names, read once at start into a `Config`.

A name's module is imported when the name is first used: whoever reads a client's file of properties
needs none of the broker's settings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

_MODULES: Final = {
    "load": ("load", "shown_settings"),
    "model": (
        "BUILT_IN_AUTHORIZER",
        "BUILT_IN_PRINCIPAL_BUILDER",
        "NO_AUTHORIZER",
        "Config",
        "ConfigError",
        "Listener",
    ),
    "names": ("concerns_us",),
    "reader": ("listener_prefix",),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'aclbroker.broker.config' has no attribute {name!r}")
    found = import_module(f"aclbroker.broker.config.{module}")
    # All of the module's names at once: its import has made `load` the name of the module `load`.
    globals().update({each: getattr(found, each) for each in _MODULES[module]})
    return globals()[name]
