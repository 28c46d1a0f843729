"""Confirms the use of a topic although messages at its beginning were deleted."""

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
"""The author of a confirmation: this command, not a user of the broker."""


class Beginning(NamedTuple):
    """A topic's first offset, its number of ACLs, and why brokers refuse it; "" if they do not."""

    offset: int
    acls: int
    problem: str


async def confirm_beginning(place: Place, *, is_sure: bool) -> Beginning:
    """Return the beginning of a topic; confirm it if it has a problem and the user ``is_sure``.

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
    # The transactional id is that of a restore, so no broker of the fleet is fenced off.
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
