"""A function being written: its lines, fresh names, and the objects that the lines name."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from aiokafka.protocol.types import Boolean, Float64, Int8, Int16, Int32, Int64, UInt32

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
"""The wire types of one size, as `struct` writes them."""


class Source:
    """The text of one generated function and its namespace."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self.depth = 1
        self.names: dict[str, Any] = {}
        self._count = count(1)

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that opens a block, and indent what follows inside the ``with``."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, prefix: str) -> str:
        """Return a name not used so far in the function."""
        return f"{prefix}{next(self._count)}"

    def constant(self, value: Any, prefix: str) -> str:
        """Return the name under which the function sees an object, the same for the same object."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def default(self, field: dataclasses.Field[Any]) -> str:
        """Return the expression of a declared field's default."""
        if field.default_factory is not dataclasses.MISSING:
            return f"{self.constant(field.default_factory, 'C')}()"
        return repr(field.default)

    def layout(self, formats: str, method: str) -> str:
        """Return the name of a big-endian struct's bound method, one a format and function."""
        name = f"{method}_{formats.replace('?', 'o')}"
        if name not in self.names:
            self.names[name] = getattr(struct.Struct(">" + formats), method)
        return name

    def function(self, where: str) -> Callable[..., Any]:
        """Compile the text; ``where`` names it in tracebacks."""
        code = compile("\n".join(self.lines), f"<{where}>", "exec")
        exec(code, self.names)  # noqa: S102 # the text comes from declarations in this repository
        function: Callable[..., Any] = self.names["function"]
        return function
