"""What happens to logs as time goes by: old records go, keys are compacted, producers forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from time import perf_counter
from typing import Final

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.compaction import compact, compacted_from
from aclbroker.broker.memory.topics import MemoryTopics

INTERVAL_MS: Final = 15_000
"""How often all logs are looked at. In Kafka that is ``log.cleaner.backoff.ms``, and
``log.retention.check.interval.ms`` of five minutes.
"""

_AT_ONCE_SECONDS: Final = 0.005


class Upkeep:
    """Looks at all logs again and again, a little at a time, so that others have their turn."""

    def __init__(self, clock: Clock, topics: MemoryTopics) -> None:
        self._clock = clock
        self._topics = topics
        self._work: Iterator[None] = iter(())
        self._is_at_work = False
        clock.call_every(INTERVAL_MS, self._begin, self._idle_until)

    def _begin(self) -> None:
        if not self._is_at_work:
            self._work = self._steps()
            self._go_on()

    def _go_on(self) -> None:
        self._is_at_work = True
        until = perf_counter() + _AT_ONCE_SECONDS
        for _ in self._work:
            if perf_counter() > until:
                self._clock.call_later(0, self._go_on)
                return
        self._is_at_work = False

    def _steps(self) -> Iterator[None]:
        for topic in list(self._topics.by_name.values()):
            for partition in list(topic.partitions):
                log, now = partition.log, self._clock.now_ms()
                log.delete_old(now)
                log.producers.expire(now)
                if log.settings.compacts:
                    yield from compact(log, now)
                yield

    def _idle_until(self) -> float:
        """Return the time before which there is nothing to do, if nothing is written."""
        now = self._clock.now_ms()
        found = now if self._is_at_work else inf
        for topic in self._topics.by_name.values():
            for partition in topic.partitions:
                if found <= now:
                    return found
                log = partition.log
                found = min(found, log.old_from(), log.producers.expire_from())
                if log.settings.compacts:
                    found = min(found, compacted_from(log, now))
        return found
