"""Which of the two kinds of data frames is in use in this process."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

SPARK: Final = "pyspark.sql"
LOCAL: Final = "aclbroker.pipeline.local"
"""The packages that have the names of ``pyspark.sql``."""

_used: list[str] = [SPARK]


def use(package: str) -> None:
    """Take the names from a package from now on: `SPARK`, as at the beginning, or `LOCAL`."""
    _used[:] = [package]


def named(module: str, name: str) -> Any:
    """Return what a module of the package in use has by a name; "" is the package itself.

    Raises AttributeError if it has none.
    """
    # Otherwise Python's look for __path__ and the like would import Spark.
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module(f"{_used[0]}.{module}".rstrip(".")), name)


class Window:
    """What ``pyspark.sql.Window`` is."""

    @staticmethod
    def partitionBy(*names: str) -> Any:
        """Return the window of the rows that have equal values in some columns."""
        return named("", "Window").partitionBy(*names)


def new_observation() -> Any:
    """Return what ``pyspark.sql.Observation`` makes."""
    return named("", "Observation")()
