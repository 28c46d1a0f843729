"""Brokers over the wire, as the number of their ACLs grows: all sides in turn in each round.

One broker of each side lives through it, from none to a million ACLs. Their creation is measured
too, a part of them a round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from benchmarks import tasks
from benchmarks.results import Results
from benchmarks.rows import KAFKA, OURS, RATE, SIDES, Row, Work, one
from benchmarks.running import Options, play, progress, tell
from benchmarks.servers import Server, prepared
from benchmarks.tasks import FULL, QUICK, Times

BOTH: Final = (OURS, KAFKA)
QUADRATIC: Final = "kfake compares each new ACL with all that there are."


@dataclass(frozen=True)
class Stage:
    """A number of ACLs, how the brokers come to have them, and what is measured then.

    They are created in parts of ``chunk``, each a round, in requests of ``batch`` ACLs, by the
    ``sides`` that get so far.
    """

    acls: int
    works: tuple[Work[Server], ...]
    sides: Collection[str] = SIDES
    batch: int = 1_000
    chunk: int = 100_000
    target: float | None = None
    note: str = ""

    @property
    def creation(self) -> Row:
        """The row of the creation of these ACLs."""
        title = f"CreateAcls, batches of {self.batch:,}"
        name = f"create-{self.batch}"
        return Row(name, "Changes of ACLs", title, RATE, self.acls, self.target, self.note)

    @property
    def rows(self) -> list[Row]:
        """All rows that this stage measures, in their order."""
        creation = [self.creation] if self.acls else []
        return [*creation, *(row for work in self.works for row in work.rows)]


def stages(times: Times) -> list[Stage]:
    """Return all stages, with fewer ACLs first."""
    return [
        Stage(0, (tasks.start(0, times),)),
        Stage(
            10_000,
            (
                tasks.create_one(10_000),
                tasks.metadata(10_000, times),
                tasks.describe_all(10_000, times),
                tasks.describe_principal(10_000, times),
                tasks.describe_match(10_000, times),
                tasks.small_requests(times),
            ),
            batch=100,
            chunk=2_000,
            target=60_000,
        ),
        Stage(
            110_000,
            (
                tasks.metadata(110_000, times),
                tasks.describe_principal(110_000, times),
                tasks.describe_match(110_000, times),
                tasks.delete_principal(110_000),
                tasks.memory(110_000, 120),
            ),
            chunk=10_000,
            target=60_000,
            note=QUADRATIC,
        ),
        Stage(
            510_000,
            (
                tasks.describe_principal(510_000, times),
                tasks.describe_match(510_000, times),
                tasks.start(510_000, times),
            ),
            BOTH,
            target=60_000,
        ),
        Stage(
            1_010_000,
            (
                tasks.metadata(1_010_000, times),
                tasks.describe_principal(1_010_000, times),
                tasks.describe_match(1_010_000, times),
                tasks.delete_principal(1_010_000),
                tasks.memory(1_010_000, 700),
            ),
            (OURS,),
            target=60_000,
            note="A round is 100,000 ACLs. Kafka and kfake would take too long.",
        ),
    ]


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for stage in stages(FULL) for row in stage.rows]


def measure(results: Results, options: Options) -> None:
    """Measure all stages up to the last one of which anything is wanted."""
    planned = stages(QUICK if options.quick else FULL)
    if options.quick:
        # kfake takes half a minute to get there, the largest sizes minutes.
        planned = [*planned[:2], replace(planned[2], sides=BOTH)]
    while planned and not options.wants(*planned[-1].rows):
        planned.pop()
    if not planned:
        return
    with prepared(options.peers) as servers:
        for server in servers.values():
            server.start()
        for stage in planned:
            taking_part = {name: server for name, server in servers.items() if name in stage.sides}
            _end_others(servers, taking_part)
            _play(stage, taking_part, results, options)


def _end_others(servers: Mapping[str, Server], taking_part: Mapping[str, Server]) -> None:
    """End the brokers that get no further, so that they take no memory or time from others."""
    for name, server in servers.items():
        if name not in taking_part and server.is_running:
            server.process.kill()


def _play(stage: Stage, servers: Mapping[str, Server], results: Results, options: Options) -> None:
    filling = one(
        stage.creation, lambda server: tasks.create_chunk(server, stage.chunk, stage.batch)
    )
    discarded = Results({})
    kept = results if options.wants(stage.creation) else discarded
    while servers[OURS].created < stage.acls:
        play([filling], servers, kept)
    if stage.acls:
        progress(f"every broker has {stage.acls:,} ACLs")
    tell([filling], kept)
    for work in stage.works:
        if options.wants(*work.rows):
            for _ in range(work.rounds or options.rounds):
                play([work], servers, results)
            tell([work], results)
