"""Tells the changes behind decisions: which ACL, and who granted and revoked it, when and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.history import UNKNOWN_TIME, AclHistory
from aclbroker.pipeline.jobs.point_in_time.columns import TOLD
from aclbroker.pipeline.jobs.point_in_time.walk import NONE
from aclbroker.pipeline.usage.table import Batches

BROKER: Final = "broker"
"""Who made a change that nobody asked for, as in the audit log."""

_MILLISECOND: Final = 1000
_NOTHING: Final = (None,) * 5
_TYPES: Final = {"long": pa.int64(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
_SCHEMA: Final = pa.schema([(name, _TYPES[kind]) for name, kind in TOLD.items()])


def told(batches: Batches, histories: Mapping[str, AclHistory], schema: pa.Schema) -> Batches:
    """Put what changes were in place of their numbers (`columns.CHANGES`)."""
    tellers = {cluster: _Teller(history) for cluster, history in histories.items()}
    for batch in batches:
        rows = zip(
            *(batch.column(name).to_pylist() for name in ("cluster", "grant", "before", "after")),
            strict=True,
        )
        found = [tellers[cluster].of(*numbers) for cluster, *numbers in rows]
        columns = list(zip(*found, strict=True)) or [()] * len(_SCHEMA)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)
        ]
        by_name = dict(zip(_SCHEMA.names, arrays, strict=True))
        every = [by_name[name] if name in by_name else batch.column(name) for name in schema.names]
        yield pa.RecordBatch.from_arrays(every, schema=schema)


class _Teller:
    """Tells the changes of one cluster."""

    def __init__(self, history: AclHistory) -> None:
        self._history = history
        self._known: dict[int, tuple[Any, ...]] = {NONE: _NOTHING}
        self._revoked_by = _revocations(history)

    def of(self, grant: int, before: int, after: int) -> tuple[Any, ...]:
        """Return the columns `TOLD`."""
        revoked = self._change(self._revoked_by.get(grant, NONE))
        return (
            *self._change(grant),
            *revoked[1:],
            *self._change(before),
            *self._change(after),
        )

    def _change(self, number: int) -> tuple[Any, ...]:
        """Return what was granted or revoked, at which position, when, by whom and from where."""
        found = self._known.get(number)
        if found is None:
            history, maker = self._history, self._history.maker(number)
            time = history.times[number]
            found = self._known[number] = (
                acl_text(history.acl(number)),
                history.positions[number],
                None if time == UNKNOWN_TIME else time * _MILLISECOND,
                None if maker is None else maker.principal or BROKER,
                None if maker is None else maker.host or None,
            )
        return found


def _revocations(history: AclHistory) -> dict[int, int]:
    """Return which change revoked what another one had granted."""
    granted: dict[int, int] = {}
    found: dict[int, int] = {}
    for number, which in enumerate(history.which):
        if not history.removed[number]:
            granted.setdefault(which, number)
        elif which in granted:
            found[granted.pop(which)] = number
    return found
