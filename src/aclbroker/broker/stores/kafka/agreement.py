"""The first values of records, which all brokers that begin at the same time agree on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.messages import Message
from aclbroker.broker.stores.kafka.writer import Overtaken, Writer
from aclbroker.broker.stores.store import StoreUnavailable

_ATTEMPTS: Final = 20
_LONGEST_S: Final = 0.5

Messages = Callable[[], Iterable[Message]]


async def agreed(
    place: Place,
    wanted: Mapping[str, str],
    read: Callable[[], Awaitable[Mapping[str, str]]],
    messages_of: Callable[[Mapping[str, str]], Messages],
) -> tuple[Mapping[str, str], int]:
    """Write those values that are not there; return all, and the offset behind them.

    All do it with one transactional id. Who begins with it undoes what others have not committed
    by then, and then has to ``read`` all that they have, so that nobody writes beside another.
    Raises `StoreError`.
    """
    for _ in range(_ATTEMPTS):
        writer = Writer(place, f"aclbroker-{place.topic}-first", gives_way=True)
        try:
            await writer.begin()
            there = await read()
            missing = {name: value for name, value in wanted.items() if name not in there}
            position = await writer.write(messages_of(missing)) if missing else 0
            return {name: there.get(name, value) for name, value in wanted.items()}, position
        except Overtaken:
            # As long for nobody else: one of them has to be left alone for a transaction.
            await asyncio.sleep(random.uniform(0, _LONGEST_S))  # noqa: S311
        finally:
            await writer.close()
    raise StoreUnavailable(f"{place}: others begin at the same time; try again")
