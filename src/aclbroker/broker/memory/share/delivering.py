"""How records are delivered again: fewer together each time, and in the end each alone.

The rules are those of Kafka 4.3's SharePartition, which so keeps a bad record from taking others
with it when it was delivered too often.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from aclbroker.broker.memory.share.in_flight import Acquired, Batch, Run, State

_LEAST_THROTTLED: Final = 2


class ShareSettings(NamedTuple):
    """How a group shares: for how long a record is a member's, how often, and how many are.

    The settings ``share.record.lock.duration.ms``, ``share.delivery.count.limit`` and
    ``share.partition.max.record.locks``.
    """

    lock_ms: int
    deliveries: int
    most_in_flight: int

    @property
    def throttled_from(self) -> int:
        """After how many deliveries fewer records are delivered together."""
        return max(_LEAST_THROTTLED, -(-self.deliveries // 2))


def is_throttled(batch: Batch, first: int, last: int, settings: ShareSettings) -> bool:
    """Tell whether fewer records of a batch than are available are to be delivered together."""
    counts = (run.count for run in batch.between(first, last) if run.state is State.AVAILABLE)
    return max(counts, default=0) >= settings.throttled_from


def take(
    batch: Batch,
    place: tuple[int, int],
    member: str,
    due_ms: int,
    settings: ShareSettings,
    most: int | None,
) -> list[Acquired]:
    """Acquire what of a batch is available between two offsets, ``most`` records if that is given.

    A record at its last delivery is alone, and before that fewer and fewer are together, so
    that a bad one does not take others with it.
    """
    first, last = place
    isolates = settings.deliveries > _LEAST_THROTTLED
    batch.cut(first, last + 1)
    was_throttled = False
    taken: list[Run] = []
    count = 0
    for found in batch.between(first, last):
        run = found
        if run.state is not State.AVAILABLE:
            continue
        is_last = isolates and run.count == settings.deliveries - 1
        if is_last and count:
            break
        if run.count >= settings.throttled_from and not was_throttled:
            was_throttled = True
            size = max(1, len(batch) >> (run.count - settings.throttled_from + 1))
            # Kafka stops where there are just as many, so that it does not if there are more.
            if count < size and (most is None or size < most):
                most = size
        room = 1 if is_last else len(run)
        if most is not None:
            room = min(room, max(1, most - count))
        if room < len(run):
            batch.cut(run.first + room)
        run.acquire(member, due_ms)
        taken.append(run)
        count += len(run)
        if is_last or (most is not None and count >= most):
            break
    return _clubbed(taken)


def _clubbed(runs: Iterable[Run]) -> list[Acquired]:
    """Return neighbours that were delivered equally often as one."""
    found: list[Acquired] = []
    for run in runs:
        if found and found[-1].last + 1 == run.first and found[-1].deliveries == run.count:
            found[-1] = Acquired(found[-1].first, run.last, run.count)
        else:
            found.append(Acquired(run.first, run.last, run.count))
    return found
