"""aiokafka's wire types, on which the codec stands, without the client that comes with them.

`aiokafka.protocol.types` needs nothing else of aiokafka. But to import it runs the package's own
`__init__.py`, which imports the whole client with all that it needs: a seventh of the time in which
a broker starts, and 6 MiB.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiokafka.protocol.types import (
        Boolean,
        Float64,
        Int8,
        Int16,
        Int32,
        Int64,
        Schema,
        UInt32,
        UnsignedVarInt32,
    )

__all__ = [
    "Boolean",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Schema",
    "UInt32",
    "UnsignedVarInt32",
]

_PACKAGES: Final = ("aiokafka", "aiokafka.protocol")
_TYPES: Final = "aiokafka.protocol.types"


def _types() -> ModuleType:
    # Another thread could import aiokafka meanwhile, and would find packages that are empty.
    if _PACKAGES[0] in sys.modules or threading.active_count() > 1:
        return import_module(_TYPES)
    with _empty_packages():
        return import_module(_TYPES)


@contextmanager
def _empty_packages() -> Iterator[None]:
    """Have packages of these names that run nothing; whoever imports aiokafka later gets it all."""
    spec = find_spec(_PACKAGES[0])
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("aiokafka is not installed", name=_PACKAGES[0])
    [place] = spec.submodule_search_locations
    for name, path in zip(_PACKAGES, (place, f"{place}/protocol"), strict=True):
        package = ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGES[0]]:
            del sys.modules[name]


globals().update((name, getattr(_types(), name)) for name in __all__)
