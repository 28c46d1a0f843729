"""Several processes of this product beside one, and beside Kafka, whose threads use all cores."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks import tasks
from benchmarks.load import CONNECTIONS, small_requests
from benchmarks.results import Results
from benchmarks.rows import KAFKA, OURS, RATE, SHARE, Row, Work
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, kafka, ours
from benchmarks.tasks import FULL, QUICK, Times

ACLS: Final = 10_000
COUNT: Final = 2
SECTION: Final = f"Small requests with {COUNT} workers"
ONE: Final = "one process"
"""The side that is this product without workers."""

NOTE: Final = (
    "All on two cores, which the load generator needs, too: what a broker leaves it of them, it "
    "gets its requests by."
)
_TITLE: Final = f"Metadata of one topic, {CONNECTIONS} connections"


def rows() -> list[Row]:
    """Return all rows, in their order."""
    row = Row("workers", SECTION, f"{_TITLE}, {COUNT} workers", RATE, ACLS, note=NOTE)
    return [
        row,
        replace(row, name="workers-per-core", title=f"{row.title}, for each CPU second"),
        replace(row, name="workers-p99", title=f"{row.title}, p99", unit="ms"),
        replace(row, name="workers-generator", title="the load generator's share", unit=SHARE),
        replace(row, name="workers-none", title=f"{_TITLE}, one process beside these"),
    ]


def measure(results: Results, options: Options) -> None:
    """Measure what is wanted."""
    if options.quick or not options.wants(*rows()):
        return
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        made: dict[str, Server] = {}
        try:
            made[OURS] = _ours(Path(name, OURS), COUNT)
            made[ONE] = _ours(Path(name, "one"), 1)
            if KAFKA in options.peers:
                Path(name, KAFKA).mkdir()
                made[KAFKA] = kafka(Path(name, KAFKA), (), {})
            _measure(made, results, options)
        finally:
            for server in made.values():
                if server.is_running:
                    server.process.kill()


def _ours(directory: Path, workers: int) -> Server:
    directory.mkdir()
    settings = {"aclbroker.audit.level": "off", "aclbroker.workers": str(workers)}
    return ours(directory, settings)


def _measure(servers: dict[str, Server], results: Results, options: Options) -> None:
    for server in servers.values():
        server.start()
        while server.created < ACLS:
            tasks.create_chunk(server, 2_000, 100)
    times = QUICK if options.quick else FULL
    *all_but_last, last = rows()
    beside = {OURS: servers[ONE]}
    servers = {side: each for side, each in servers.items() if side != ONE}
    work: Work[Server] = Work(tuple(all_but_last), lambda server: _load(server, times))
    alone: Work[Server] = Work((last,), lambda server: _load(server, times)[:1], sides=(OURS,))
    for _ in range(options.rounds):
        play([work], servers, results)
        play([alone], beside, results)
    tell([work, alone], results)


def _load(server: Server, times: Times) -> tuple[float, ...]:
    warm_up = 1.0 if "small" in server.warmed else times.load_warm_up
    server.warmed.add("small")
    return tuple(small_requests(server, "alice", warm_up, times.load))
