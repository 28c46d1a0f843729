"""Keeps Python's garbage collector away from the work that Spark's workers do."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(*, in_worker: bool = True) -> Iterator[None]:
    """Turn the garbage collector off for a while.

    What workers hold, hundreds of thousands of records or ACLs, has no cycles, and to go through
    it again and again would take more time than the work itself.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if in_worker:
                # Otherwise the collector would now go through all that stays.
                gc.freeze()
            gc.enable()
