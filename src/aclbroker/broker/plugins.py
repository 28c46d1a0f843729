"""Classes of the user's own, which settings name as ``package.module:Class``."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def make_plugin(setting: str, name: str, interface: str) -> Any:
    """Return an object of the class that a setting names.

    Raises ValueError that names the setting, and the ``interface`` that describes such a class.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        text = (
            f"{setting}={name} cannot be made: {error}. It must be an importable "
            f"package.module:Class, made without arguments (see {interface})."
        )
        raise ValueError(text) from error
