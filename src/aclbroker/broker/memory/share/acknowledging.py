"""What members say of records that they have: done, to be delivered again, given up, not yet.

The rules are those of Kafka 4.3's SharePartition.acknowledge: all that a request says of a
partition counts, or nothing does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from aclbroker.broker.memory.share.in_flight import Batch, ShareError, State
from aclbroker.broker.memory.share.partition import SharePartition
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns, pause

_PIECES_AT_ONCE: Final = 16
"""Of how many neighbours is told what becomes of them before others have their turn."""


class Kind(IntEnum):
    """What is said of a record, as the protocol numbers it; a gap is where there is no record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_OUTCOME: Final = {
    Kind.GAP: State.ARCHIVED,
    Kind.REJECT: State.ARCHIVED,
    Kind.ACCEPT: State.ACKNOWLEDGED,
}


class Acknowledgement(NamedTuple):
    """What is said of the records from one offset to another: of all, or of each."""

    first: int
    last: int
    kinds: Sequence[int]

    def pieces(self) -> Iterator[tuple[int, int, Kind]]:
        """Yield neighbours of which the same is said, each with what that is."""
        if len(self.kinds) == 1:
            yield self.first, self.last, Kind(self.kinds[0])
            return
        begin = 0
        for number in range(1, len(self.kinds) + 1):
            if number == len(self.kinds) or self.kinds[number] != self.kinds[begin]:
                first = self.first + begin
                yield first, self.first + number - 1, Kind(self.kinds[begin])
                begin = number


def acknowledge(partition: SharePartition, member: str, said: Collection[Acknowledgement]) -> None:
    """Let what a member says of records count; they must be in order and say possible things.

    Raises `ShareError`, and then nothing of it counts: INVALID_REQUEST for records that are not
    there, INVALID_RECORD_STATE for records that are not the member's. May pause.
    """
    wanted = [each for each in in_turns(said) if each.last >= partition.start]
    behind = -1
    for each in in_turns(wanted):
        if each.first <= behind:
            raise _not_acquired()
        _check(partition, member, each)
        behind = each.last
    is_progress = False
    for each in in_turns(wanted):
        is_progress |= _carry_out(partition, member, each)
    if is_progress:
        partition.settle()


def _found(partition: SharePartition, said: Acknowledgement) -> list[Batch]:
    """Return the batches of records; raises ShareError if they are not all there."""
    batches = partition.batches
    is_before = not batches or batches[0].first > said.first
    if is_before and not said.first < partition.start <= said.last:
        raise ShareError(
            ErrorCode.INVALID_RECORD_STATE,
            "Batch record not found. The request batch offsets are not found in the cache.",
        )
    found = partition.overlapping(said.first, said.last)
    if not found:
        raise ShareError(
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The first offset in request is past acquired records.",
        )
    if said.last > found[-1].last:
        raise ShareError(
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The last offset in request is past acquired records.",
        )
    return found


def _check(partition: SharePartition, member: str, said: Acknowledgement) -> None:
    for batch in _found(partition, said):
        for run in batch.between(max(said.first, partition.start), said.last):
            if run.state is not State.ACQUIRED:
                raise _not_acquired()
            if run.member != member:
                raise ShareError(
                    ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of offset"
                )


def _not_acquired() -> ShareError:
    return ShareError(
        ErrorCode.INVALID_RECORD_STATE,
        "The batch cannot be acknowledged. The offset is not acquired.",
    )


def _carry_out(partition: SharePartition, member: str, said: Acknowledgement) -> bool:
    """Change the states of records; tell whether any of them is no longer its member's.

    Those that ceased to be the member's while others had their turn are left alone.
    """
    is_progress = False
    due = partition.lock_until()
    for number, (first, last, kind) in enumerate(said.pieces()):
        if not number % _PIECES_AT_ONCE:
            pause()
        for batch in partition.overlapping(first, last):
            batch.cut(first, last + 1)
            for run in batch.between(max(first, partition.start), last):
                if run.state is not State.ACQUIRED or run.member != member:
                    continue
                if kind is Kind.RENEW:
                    run.due_ms = due
                    continue
                is_progress = True
                if kind is Kind.RELEASE:
                    partition.give_back(run)
                else:
                    run.become(_OUTCOME[kind])
    return is_progress
