"""Lookups by time in the log of a partition."""

from __future__ import annotations

from typing import Final, NamedTuple

from aclbroker.broker.memory.batch import Batch, LogError, records_of
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.segment import Segment
from aclbroker.turns import in_turns

_AT_ONCE: Final = 256
"""How many segments, or headers of batches, are looked at before the next pause."""


class Found(NamedTuple):
    """The first record that a search by time has found."""

    timestamp: int
    offset: int


def find_time(log: PartitionLog, timestamp: int) -> Found | None:
    """Return the first record that has this time or a later one, None if there is none.

    May pause.
    """
    for segment in in_turns(list(log.segments), _AT_ONCE):
        if segment.max_timestamp >= timestamp:
            found = _in_segment(log, segment, timestamp)
            if found is not None:
                return found
    return None


def find_latest_time(log: PartitionLog) -> Found | None:
    """Return the first of the records that have the latest time. May pause."""
    latest = max((segment.max_timestamp for segment in log.segments), default=-1)
    return None if latest < 0 else find_time(log, latest)


def _in_segment(log: PartitionLog, segment: Segment, timestamp: int) -> Found | None:
    first = segment.number_at(timestamp)
    # The first batch has such a record, unless its records are deleted.
    for number in in_turns(range(first, segment.count), _AT_ONCE):
        batch = segment.batch(number)
        if batch.max_timestamp >= timestamp:
            found = _in_batch(batch, timestamp, log.start_offset)
            if found is not None:
                return found
    return None


def _in_batch(batch: Batch, timestamp: int, start_offset: int) -> Found | None:
    if batch.last_offset < start_offset:
        return None
    try:
        records = records_of(batch)
        if records is not None:
            for record in records:
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return Found(record.timestamp, record.offset)
            return None
    except LogError:
        pass  # A broker of Kafka would not have kept it. It is as far as can be told:
    return Found(batch.max_timestamp, max(batch.base_offset, start_offset))
