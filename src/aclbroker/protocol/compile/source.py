"""The source of a generated function: its lines, unused names, and the objects it refers to."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from aclbroker.protocol.aiokafka_types import Boolean, Float64, Int8, Int16, Int32, Int64, UInt32
from aclbroker.protocol.primitives import UInt16, Uuid

FORMATS: Final[dict[Any, str]] = {
    Boolean: "?",
    Float64: "d",
    Int8: "b",
    Int16: "h",
    Int32: "i",
    Int64: "q",
    UInt16: "H",
    UInt32: "I",
    Uuid: "16s",
}
"""The format characters of the `struct` module for wire types of fixed size."""


class Source:
    """The text of one generated function and its namespace."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self.depth = 1
        self.counts_entries = False
        self.names: dict[str, Any] = {}
        self._count = count(1)

    def line(self, text: str) -> None:
        """Add a line at the current indentation."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that opens a block, and indent what follows inside the ``with``."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, prefix: str) -> str:
        """Return a name that the function does not use yet."""
        return f"{prefix}{next(self._count)}"

    def constant(self, value: Any, prefix: str) -> str:
        """Return the name by which the function refers to an object; each object has one name."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def default(self, field: dataclasses.Field[Any]) -> str:
        """Return the expression for the default of a declared field."""
        if field.default_factory is not dataclasses.MISSING:
            return f"{self.constant(field.default_factory, 'C')}()"
        return repr(field.default)

    def layout(self, formats: str, method: str) -> str:
        """Return the name of a bound method of a big-endian `struct.Struct` with these formats."""
        name = f"{method}_{formats.replace('?', 'o')}"
        if name not in self.names:
            self.names[name] = getattr(struct.Struct(">" + formats), method)
        return name

    def function(self, where: str) -> Callable[..., Any]:
        """Compile the source and return the function; ``where`` names it in tracebacks."""
        code = compile("\n".join(self.lines), f"<{where}>", "exec")
        exec(code, self.names)  # noqa: S102 # the text comes from declarations in this repository
        function: Callable[..., Any] = self.names["function"]
        return function
