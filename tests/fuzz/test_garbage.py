"""What requests leave behind in memory: nothing that only the garbage collector would find.

The broker has it look at old objects very rarely, since it stops everything meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from aclbroker.broker.server.dispatch import dispatch
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.protocol.primitives import ProtocolError
from tests.fuzz.unkind import VERSIONS, requests
from tests.gate.rights import everything, nothing
from tests.server.test_turns import SESSION, running


@pytest.mark.parametrize("rights", [nothing, everything])
async def test_answers_and_refusals_leave_nothing_to_the_garbage_collector(rights: Any) -> None:
    asked = list(requests(Random(0), 3 * len(VERSIONS)))
    assert {each.is_closed for each in asked if each.is_refused} == {False, True}
    frames = [each.frame[4:] for each in asked]
    found = []
    async with running(rights) as parts:
        # What is compiled at first use leaves something.
        for _ in range(2):
            gc.collect()
            gc.disable()
            try:
                for frame in frames:
                    with suppress(ProtocolError, RequestRefused):
                        answering = dispatch(parts, SESSION, frame)
                        if isinstance(answering, Awaitable):
                            await answering
            finally:
                gc.enable()
            found.append(gc.collect())
    assert found[1] == 0
