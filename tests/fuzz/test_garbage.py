"""What requests leave behind in memory: nothing that only the garbage collector would find.

The broker has it look at old objects very rarely, since it stops everything meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from random import Random
from typing import Any

import pytest

from aclbroker.broker.handlers.services import Services
from aclbroker.broker.server.dispatch import dispatch
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.protocol.primitives import ProtocolError
from tests.fuzz.unkind import VERSIONS, requests
from tests.gate.rights import everything, nothing
from tests.server.test_turns import SESSION, running


@pytest.mark.parametrize("rights", [nothing, everything])
def test_answers_and_refusals_leave_nothing_to_the_garbage_collector(rights: Any) -> None:
    # Alone in a process, since the collector finds the garbage of all threads.
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        assert not process.submit(left_by_requests, rights).result()


def left_by_requests(rights: Any) -> Counter[str]:
    """Answer requests of all versions; how many objects of each type they leave as garbage."""
    asked = list(requests(Random(0), 3 * len(VERSIONS)))
    assert {each.is_closed for each in asked if each.is_refused} == {False, True}
    return asyncio.run(left_by([each.frame[4:] for each in asked], rights))


async def left_by(frames: list[bytes], rights: Any) -> Counter[str]:
    """Answer or refuse the requests twice; the second time nothing is compiled at first use."""
    async with running(rights) as parts:
        await answer(parts, frames)
        gc.collect()
        gc.disable()
        try:
            await answer(parts, frames)
            return names_of_garbage()
        finally:
            gc.enable()


async def answer(parts: Services, frames: list[bytes]) -> None:
    """Have all requests answered or refused."""
    for frame in frames:
        with suppress(ProtocolError, RequestRefused):
            answering = dispatch(parts, SESSION, frame)
            if isinstance(answering, Awaitable):
                await answering


def names_of_garbage() -> Counter[str]:
    """Collect the garbage; how many objects of each type were in it."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(
            getattr(each, "__qualname__", type(each).__qualname__) for each in gc.garbage
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()
