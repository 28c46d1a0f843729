"""The work of the rows: load of the client in C, Kafka's own tools, and idle connections."""

from __future__ import annotations

import os
from dataclasses import dataclass

from benchmarks.gateway.programs import Load
from benchmarks.gateway.requests import Request
from benchmarks.gateway.rows import Sample
from benchmarks.gateway.stage import Stage

SECONDS, QUICK_SECONDS = 3.0, 1.0
WARM_UP, QUICK_WARM_UP = 1.0, 0.5


@dataclass(frozen=True)
class LoadWork:
    """One request over and over, from a number of connections, so many at a time on each."""

    request: Request
    connections: int
    depth: int = 1
    tls: bool = False

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Send the requests for some seconds; RuntimeError if the first answer is an error."""
        way = stage.side(side)
        load = Load(
            self.request.frame,
            self.connections,
            self.depth,
            QUICK_WARM_UP if quick else WARM_UP,
            QUICK_SECONDS if quick else SECONDS,
            tls=self.tls,
        )
        average = os.getloadavg()[0]
        result, answer = load.run(way.tls if self.tls else way.plain, way.pids)
        self.request.check(answer)
        return Sample(
            average,
            result.seconds,
            result.cpu_seconds,
            result.answers,
            result.bytes,
            result.p50_us,
            result.p99_us,
            result.bytes / result.seconds / 1e6,
        )
