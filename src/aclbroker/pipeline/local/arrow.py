"""Arrow without pandas, where that is installed."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


class _Refusing(MetaPathFinder):
    """Finds nothing, and refuses pandas."""

    def find_spec(self, name: str, *_: object) -> None:
        """Return None, as for what others may find. Raises ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("nothing is decided with it")


def leave_pandas_out() -> None:
    """Have Arrow do without pandas until it is asked for frames of pandas.

    Given its first list, Arrow imports pandas to see whether the list is a column of that. It takes
    a third of a second, and nothing is decided with it.
    """
    if "pandas" in sys.modules:
        return
    finder = _Refusing()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)
