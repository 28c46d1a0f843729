"""What Prometheus is told of the processes of one broker: their sums, under the usual names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client import Metric

_OF_THE_FIRST: Final = ("process_start_time_seconds", "process_max_fds")
"""What is not added up."""

_CPU: Final = "process_cpu_seconds"


class Processes:
    """Figures of the processes that ``pids`` returns, of which the first is there from the start.

    The CPU time of those that have ended still counts, as far as it was seen.
    """

    def __init__(self, pids: Callable[[], Collection[int]]) -> None:
        self._pids = pids
        self._cpu_ended = 0.0
        self._cpu: dict[int, float] = {}

    def collect(self) -> Iterator[Metric]:
        """Return the figures as prometheus_client has them; a thread may call it."""
        from prometheus_client import ProcessCollector

        metrics: dict[str, Metric] = {}
        cpu: dict[int, float] = {}
        for pid in self._pids():
            collector = ProcessCollector(pid=partial(int, pid), registry=None)
            for metric in collector.collect():
                [sample] = metric.samples
                if metric.name == _CPU:
                    cpu[pid] = sample.value
                if metric.name not in metrics:
                    metrics[metric.name] = metric
                elif metric.name not in _OF_THE_FIRST:
                    [before] = metrics[metric.name].samples
                    total = before._replace(value=before.value + sample.value)
                    metrics[metric.name].samples = [total]
        self._cpu_ended += sum(
            seconds for pid, seconds in self._cpu.items() if seconds > cpu.get(pid, 0.0)
        )
        self._cpu = cpu
        if _CPU in metrics:
            [seen] = metrics[_CPU].samples
            metrics[_CPU].samples = [seen._replace(value=seen.value + self._cpu_ended)]
        yield from metrics.values()
