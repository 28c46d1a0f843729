"""What happens to logs as time goes by: old records go, keys are compacted, producers forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Final

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.compaction import compact
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
        clock.call_later(INTERVAL_MS, self._begin)

    def _begin(self) -> None:
        self._clock.call_later(INTERVAL_MS, self._begin)
        is_at_work = next(self._work, self) is not self
        if not is_at_work:
            self._work = self._steps()
            self._go_on()

    def _go_on(self) -> None:
        until = perf_counter() + _AT_ONCE_SECONDS
        for _ in self._work:
            if perf_counter() > until:
                self._clock.call_later(0, self._go_on)
                return

    def _steps(self) -> Iterator[None]:
        for topic in list(self._topics.by_name.values()):
            for partition in list(topic.partitions):
                log, now = partition.log, self._clock.now_ms()
                log.delete_old(now)
                log.producers.expire(now)
                if log.settings.compacts:
                    yield from compact(log, now)
                yield
