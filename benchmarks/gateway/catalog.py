"""All rows of the benchmark, in their order."""

from __future__ import annotations

from benchmarks.gateway import requests
from benchmarks.gateway.requests import SMALL_BYTES, TOPIC
from benchmarks.gateway.rows import Row, busy
from benchmarks.gateway.works import LoadWork

_SMALL = requests.produce(TOPIC, SMALL_BYTES)


def rows() -> list[Row]:
    """Return all rows."""
    return [*_small()]


def _small() -> list[Row]:
    size = len(_SMALL.frame)
    return [
        Row(
            "small-produce",
            f"Produce of {size} bytes, 16 connections",
            LoadWork(_SMALL, 16),
            busy(ratio=2.0),
        ),
        Row(
            "small-pipelined",
            f"Produce of {size} bytes, 4 connections, 16 requests deep",
            LoadWork(_SMALL, 4, 16),
            busy(ratio=1.2),
        ),
        Row(
            "small-metadata",
            "Metadata of one topic, 16 connections",
            LoadWork(requests.metadata(), 16),
            busy(cpu=40.0),
        ),
        Row(
            "small-offsets",
            "ListOffsets of one partition, 16 connections",
            LoadWork(requests.list_offsets(), 16),
            busy(cpu=40.0),
        ),
    ]
