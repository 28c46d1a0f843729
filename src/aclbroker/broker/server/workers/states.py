"""What the workers say of themselves: their figures, and whether they can do their work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from aclbroker.broker.observability.http_listener import Page
from aclbroker.broker.observability.metrics import Figures, Metrics
from aclbroker.broker.observability.scrapes import Scrapes
from aclbroker.broker.server.readiness import Readiness
from aclbroker.broker.server.workers.team import Team, Worker
from aclbroker.broker.stores import StoreError

_ANSWER_S: Final = 5.0
_PAUSE_S: Final = 1.0
"""How often workers are asked: what one counts after that is lost if it is killed."""

_SILENT_S: Final = 60.0
"""After how long a worker is ended that does not answer: nothing takes a second of its loop."""


class States:
    """The latest figures of each worker, and those of former ones."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._ended = Metrics().figures()
        self._figures: dict[Worker, Figures] = {}
        self._remarks: dict[int, str] = {}
        self._clusters: dict[int, Mapping[str, str]] = {}
        self._answered: dict[Worker, float] = {}
        # Replaced as a whole, since a thread reads it.
        self._all: Sequence[Figures] = (self._ended,)

    def leave(self, worker: Worker) -> None:
        """Note that a worker is gone. What it had counted stays, as far as it was told."""
        self._answered.pop(worker, None)
        figures = self._figures.pop(worker, None)
        if figures is not None:
            ended = Metrics().figures()
            for each in (self._ended, figures.without_gauges()):
                ended.add(each)
            self._ended = ended
        self._note()

    def figures(self) -> Iterable[Figures]:
        """Return the figures of all workers, as they were told last; a thread may call it."""
        return self._all

    def pids(self) -> list[int]:
        """Return the ids of all processes, the owner's first; a thread may call it."""
        workers = list(self._team.workers.values())
        return [os.getpid(), *(each.pid for each in workers if each.pid is not None)]

    async def watch(self) -> None:
        """Ask all workers over and over, until cancelled; end who has not answered for long."""
        while True:
            await asyncio.sleep(_PAUSE_S)
            await self.ask()
            for worker in self._team.ready:
                if monotonic() - self._answered.get(worker, worker.began) > _SILENT_S:
                    await worker.end(f"it has not answered for {_SILENT_S:g} seconds")

    async def ask(self) -> list[str]:
        """Ask all workers how they are; return what is wrong."""
        return [
            problem
            for each in await asyncio.gather(*map(self._ask, range(self._team.count)))
            for problem in each
        ]

    def remark(self) -> str:
        """Return what the operator should know, "" if there is nothing."""
        return next(filter(None, self._remarks.values()), "")

    def clusters(self) -> Mapping[str, str]:
        """Return why further clusters are not served by some worker, by their ids."""
        found: dict[str, str] = {}
        for each in self._clusters.values():
            found |= each
        return found

    async def _ask(self, number: int) -> Sequence[str]:
        worker = self._team.workers.get(number)
        if worker is None or not worker.is_ready:
            return [f"worker {number} is not ready"]
        try:
            async with asyncio.timeout(_ANSWER_S):
                told: dict[str, Any] = (await worker.channel.ask("state")).value
        except TimeoutError:
            return [f"worker {number} has not answered for {_ANSWER_S:g} seconds"]
        except StoreError:
            return [f"worker {number} has just ended"]
        if not worker.gone.is_set():
            self._figures[worker] = Figures.of_json(told["figures"])
            self._answered[worker] = monotonic()
            self._note()
        self._remarks[number] = told["remark"]
        self._clusters[number] = told["clusters"]
        return [told["problem"]] if told["problem"] else []

    def _note(self) -> None:
        self._all = (self._ended, *self._figures.values())


class FiguresPage:
    """The page of figures, for which all workers are asked."""

    def __init__(self, states: States, scrapes: Scrapes) -> None:
        self._states = states
        self._scrapes = scrapes

    async def page(self) -> Page:
        """Return the page; of a worker that does not answer it has what was known before."""
        await self._states.ask()
        return await self._scrapes.page()


class TeamReadiness(Readiness):
    """Whether the broker is ready: its stores can be written, and all workers do their work."""

    def __init__(self, states: States) -> None:
        super().__init__()
        self._states = states

    async def problems(self) -> Sequence[str]:
        """Return why the broker is not ready; nothing if it is."""
        if self._waits_for:
            return await super().problems()
        # Asked first, as they tell of the clusters, too.
        workers = await self._states.ask()
        return [*await super().problems(), *workers]
