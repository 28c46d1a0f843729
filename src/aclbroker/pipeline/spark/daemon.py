"""Spark's daemon of Python workers, without pandas and needless tracebacks.

Spark ends a task whose rest it does not need, as of the first rows of a table, by closing the
connection. The worker then fails in its last flush, and pyspark prints that.
"""

from __future__ import annotations

from typing import Any

from pyspark import daemon

from aclbroker.pipeline.local.arrow import leave_pandas_out

_work = daemon.worker


def worker(*args: Any) -> int:
    """Work as pyspark's worker does; return its exit status, 1 if the connection is closed."""
    try:
        status: int = _work(*args)
    except BrokenPipeError:
        return 1
    return status


if __name__ == "__main__":
    # Workers are forks of this process. Each would import pandas on its own, for Arrow to look
    # whether what it is given comes from there.
    leave_pandas_out()
    daemon.worker = worker
    daemon.manager()
