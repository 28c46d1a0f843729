"""Spark's daemon of Python workers, without a traceback when nobody reads what a worker sends.

Spark ends a task whose rest it does not need, as of the first rows of a table, by closing the
connection. The worker then fails in its last flush, and pyspark prints that.
"""

from __future__ import annotations

from typing import Any

from pyspark import daemon

_work = daemon.worker


def worker(*args: Any) -> int:
    """Work as pyspark's worker does; return its exit status, 1 if the connection is closed."""
    try:
        status: int = _work(*args)
    except BrokenPipeError:
        return 1
    return status


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
