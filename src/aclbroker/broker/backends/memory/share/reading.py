"""Reads a partition for a share group: whole batches, and which of them were aborted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import inf
from typing import Final, NamedTuple

from aclbroker.broker.memory.batch import Batch, LogError, read_batch
from aclbroker.broker.memory.log import Aborted, PartitionLog, Read
from aclbroker.broker.memory.share import Acquired, SharePartition
from aclbroker.broker.memory.share.partition import Wanted
from aclbroker.turns import in_turns, pause

_MOST_READS: Final = 100
"""How often a partition is read on at once where all that was read was aborted."""

_READ_AT_ONCE: Final = 128
"""How many batches are read before others have their turn, in less than a millisecond."""


class Room(NamedTuple):
    """How many bytes may be read of a partition; with ``whole`` the first batch may be larger."""

    max_bytes: int
    whole: bool


class Taken(NamedTuple):
    """Records that a member has acquired, with the batches of the log that they are in."""

    acquired: list[Acquired]
    parts: list[memoryview]
    size: int


NOTHING = Taken([], [], 0)


def available(log: PartitionLog, shared: SharePartition, room: Room, *, committed: bool) -> int:
    """Return how many bytes could be read now."""
    read = _read(log, shared, room, committed=committed)
    return 0 if read is None else read.size


def taken(
    log: PartitionLog, shared: SharePartition, wanted: Wanted, room: Room, *, committed: bool
) -> Taken:
    """Let a member acquire records that there are. May pause."""
    for _ in range(_MOST_READS):
        fetched = shared.next_offset
        read = _read(log, shared, room, committed=committed)
        if read is None or not read.size:
            return NOTHING
        batches = list(_batches(read.parts, shared, wanted.most))
        bounds = [(batch.base_offset, batch.last_offset) for batch in in_turns(batches)]
        aborted = list(_aborted(batches, read.aborted)) if read.aborted else ()
        acquired = shared.acquire(wanted, fetched, bounds, aborted)
        if acquired:
            first, last = acquired[0].first, acquired[-1].last
            parts = [
                batch.data
                for batch in in_turns(batches)
                if batch.last_offset >= first and batch.base_offset <= last
            ]
            return Taken(acquired, parts, sum(map(len, parts)))
        if shared.next_offset <= fetched:
            break
    return NOTHING


def _read(log: PartitionLog, shared: SharePartition, room: Room, *, committed: bool) -> Read | None:
    if shared.next_offset < log.start_offset:
        shared.begins(log.start_offset)
    if not shared.can_acquire:
        return None
    try:
        return log.read(shared.next_offset, room.max_bytes, whole=room.whole, committed=committed)
    except LogError:
        return None  # It begins behind the end of the log, to which an administrator has set it.


def _batches(parts: Sequence[memoryview], shared: SharePartition, most: int) -> Iterator[Batch]:
    """Yield the batches of what was read that so many records can be acquired of. May pause."""
    numbers, end = count(), inf
    for part in parts:
        at = 0
        while at < len(part):
            number = next(numbers)
            if not number % _READ_AT_ONCE:
                pause()
            batch = read_batch(part, at)
            if not number:
                end = shared.end_of_acquirable(batch.base_offset, most)
            if batch.base_offset >= end:
                return
            yield batch
            at += batch.size


def _aborted(
    batches: Sequence[Batch], transactions: Sequence[Aborted]
) -> Iterator[tuple[int, int]]:
    """Yield the offsets of batches of transactions that were aborted."""
    coming = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    under_way: set[int] = set()
    for batch in in_turns(batches):
        while coming and coming[-1].first_offset <= batch.base_offset:
            under_way.add(coming.pop().producer_id)
        if batch.is_control:
            under_way.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in under_way:
            yield batch.base_offset, batch.last_offset
