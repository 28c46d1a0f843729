"""What is to be read of a million files, in a few hundred bytes for each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aclbroker.pipeline.ingest.known_files import Files, Known
from aclbroker.pipeline.ingest.ledger import prefix_of
from aclbroker.pipeline.ingest.texts import Prefix

_NEW: Final = -1


class Read(NamedTuple):
    """Bytes of a file that are to be read; ``prefix`` is how its text begins.

    ``after`` is what is known of the file then, in place of what was at ``position``, if anything.
    """

    path: str
    start: int
    end: int
    prefix: Prefix
    position: int | None
    after: Known


class Reads(Sequence[Read]):
    """What is to be read, the oldest first; each `Read` is made when it is asked for.

    ``files`` has what is known of each file then, in the order in which they are added.
    """

    def __init__(self, files: Files | None = None) -> None:
        self._files = Files() if files is None else files
        self._starts = array("q")
        self._positions = array("q")
        self._modified = array("d")
        self._order: NDArray[np.int64] | None = None

    def add(self, start: int, position: int | None, modified: float) -> None:
        """Add the file that comes next in ``files``.

        It is read from the byte ``start`` on, in place of what is known at ``position``, if
        anything, and was written to last at the time ``modified``, in seconds since 1970.
        """
        self._starts.append(start)
        self._positions.append(_NEW if position is None else position)
        self._modified.append(modified)
        self._order = None

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, number: int) -> Read: ...

    @overload
    def __getitem__(self, number: slice) -> list[Read]: ...

    def __getitem__(self, number: int | slice) -> Read | list[Read]:
        order = self._ordered()
        if isinstance(number, slice):
            return [self._read(each) for each in order[number].tolist()]
        return self._read(int(order[number]))

    def __iter__(self) -> Iterator[Read]:
        return map(self._read, self._ordered())

    def _read(self, number: int) -> Read:
        file, position = self._files[number], self._positions[number]
        return Read(
            file.path,
            self._starts[number],
            file.length,
            prefix_of(file),
            None if position == _NEW else position,
            file,
        )

    def _ordered(self) -> NDArray[np.int64]:
        if self._order is None:
            self._order = in_order([self._modified], lambda number: self._files[number].path)
        return self._order


def in_order(keys: Sequence[ArrayLike], name: Callable[[int], str]) -> NDArray[np.int64]:
    """Return the numbers of things by some keys of each, the first key foremost.

    Things that are equal in all keys are ordered by name. Tuples and lists of a million things are
    not made for it.
    """
    columns = [np.asarray(each) for each in keys]
    order: NDArray[np.int64] = np.lexsort(columns[::-1])
    differs = np.arange(len(order)) == 0
    for column in columns:
        differs[1:] |= np.diff(column[order]) != 0
    begins = np.flatnonzero(differs)
    sizes = np.diff(begins, append=len(order))
    for begin, size in zip(begins[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        order[begin : begin + size] = sorted(order[begin : begin + size].tolist(), key=name)
    return order
