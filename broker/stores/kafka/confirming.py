"""Confirms that a topic is to be used as it is, though messages of its beginning were deleted."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import Final, NamedTuple

from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.contents import Contents
from aclbroker.broker.stores.kafka.health import begin_problem, confirmation
from aclbroker.broker.stores.kafka.messages import messages_of
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.topic import prepare
from aclbroker.broker.stores.kafka.writer import Writer
from aclbroker.broker.stores.store import Origin

_WHO: Final = "Command:accept"
"""Who confirms here: no user of the broker, nor the broker itself."""


class Beginning(NamedTuple):
    """Where a topic begins, what it has left, and why no broker uses it; "" if they do."""

    offset: int
    acls: int
    problem: str


async def confirm_beginning(place: Place, *, is_sure: bool) -> Beginning:
    """Return how a topic begins, after confirming that if it ``is_sure`` and there is a problem.

    Raises `StoreError`, `StoreMissing` without a topic.
    """
    topic = await asyncio.to_thread(prepare, place, makes=False)
    contents, reader = Contents(), Reader(place)
    await reader.open()
    try:
        await contents.take_all(reader.everything())
    finally:
        await reader.close()
    problem = begin_problem(place, topic.topic_id, reader.begin, contents.records)
    if problem and is_sure:
        await _write(place, topic.topic_id, reader.begin, with_format=not contents.has_format)
    return Beginning(reader.begin, len(contents.bindings), problem)


async def _write(place: Place, topic_id: str, begin: int, *, with_format: bool) -> None:
    # As a restore, which no broker of the fleet is.
    writer = Writer(place, f"aclbroker-{place.topic}-restore")
    record, transaction = confirmation(topic_id, begin), secrets.token_hex(8)
    try:
        await writer.write(
            partial(
                messages_of,
                *((), (), record, Origin.now(_WHO), transaction),
                with_format=with_format,
            )
        )
    finally:
        await writer.close()
