"""Counts rows of usage as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from aclbroker.pipeline.usage.grouping import encoded, grouped

_MOST_ROWS: Final = 400_000


class Counting:
    """Groups tables as they come, as `grouped` does; memory follows the number of groups."""

    def __init__(self, keys: Sequence[str], counts: Mapping[str, str]) -> None:
        self._keys = keys
        self._counts = counts
        self._tables: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> pa.Table | None:
        """Add a table. Return groups to be passed on if they have become too many to keep."""
        self._tables.append(encoded(table.select([*self._keys, *self._counts])))
        self._rows += table.num_rows
        if self._rows < _MOST_ROWS:
            return None
        found = self.rest()
        if found is not None and found.num_rows < _MOST_ROWS // 2:
            self._tables, self._rows = [found], found.num_rows
            return None
        return found

    def rest(self) -> pa.Table | None:
        """Return the groups that are left."""
        tables, self._tables, self._rows = self._tables, [], 0
        return grouped(pa.concat_tables(tables), self._keys, self._counts) if tables else None


def counted(
    tables: Iterable[pa.Table], keys: Sequence[str], counts: Mapping[str, str]
) -> Iterator[pa.Table]:
    """Yield the groups of all tables. A group that was passed on early comes in several rows."""
    counting = Counting(keys, counts)
    for table in tables:
        found = counting.add(table)
        if found is not None:
            yield found
    found = counting.rest()
    if found is not None:
        yield found
