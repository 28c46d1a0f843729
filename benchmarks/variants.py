"""Brokers that are set up otherwise: decisions recorded, and a Kafka that does not linger."""

from __future__ import annotations

from typing import Final

from benchmarks import tasks
from benchmarks.results import Results
from benchmarks.rows import KAFKA, Row, Work
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, prepared
from benchmarks.tasks import FULL, QUICK, Times

ACLS: Final = 10_000
SECTION: Final = "Decisions recorded, and Kafka without linger"
AUDITED: Final = (
    "Both write a line for each of the 500 refusals to a file (ours with its default audit level, "
    "Kafka with kafka.authorizer.logger at INFO)."
)
UNLINGERING: Final = "Kafka with controller.quorum.append.linger.ms=0, where its default is 25."


def works(times: Times) -> list[Work[Server]]:
    """Return what is measured."""
    return [
        tasks.metadata(ACLS, times, "metadata-audited", section=SECTION, target=None, note=AUDITED),
        tasks.create_one(ACLS, "create-one-unlingering", section=SECTION, note=UNLINGERING),
    ]


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for work in works(FULL) for row in work.rows]


def measure(results: Results, options: Options) -> None:
    """Measure what is wanted."""
    wanted = [work for work in works(QUICK if options.quick else FULL) if options.wants(*work.rows)]
    if options.quick or not wanted:
        return
    peers = tuple(peer for peer in options.peers if peer == KAFKA)
    with prepared(peers, audited=True) as servers:
        for server in servers.values():
            server.start()
            tasks.create_chunk(server, ACLS, 1_000)
        for work in wanted:
            for _ in range(options.rounds):
                play([work], servers, results)
            tell([work], results)
