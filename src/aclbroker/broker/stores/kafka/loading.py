"""Reads a topic from its beginning, or from the end of a snapshot."""

from __future__ import annotations

import math
from typing import NamedTuple

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.contents import Contents
from aclbroker.broker.stores.kafka.freshness import Moment, load_limit_s, since
from aclbroker.broker.stores.kafka.health import TopicHealth
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.snapshots import Snapshots
from aclbroker.broker.stores.kafka.topic import retention_ms
from aclbroker.broker.stores.store import StoreError, StoreUnavailable

log = get_logger()


class Loaded(NamedTuple):
    """The contents of a topic, the reader that continues, and the moment they were current."""

    reader: Reader
    contents: Contents
    moment: Moment
    kept_ms: int | None


async def load_topic(
    place: Place,
    health: TopicHealth,
    snapshots: Snapshots,
    snapshot: Contents | None = None,
    known: int = 0,
) -> Loaded:
    """Return the contents of the topic of a place, which must not end before a ``known`` offset.

    Raises `StoreError`, also for a topic that has lost messages.
    """
    reader = Reader(place)
    # Before all requests below: the contents are no older than this moment.
    begun = Moment.now()
    await reader.open()
    try:
        await health.require_same(reader)
        end = await reader.end()
        if end < known:
            raise StoreError(
                f"{place}: the topic ends before offset {known}, up to which it was read, so it is "
                "another one; start the broker anew to use it"
            )
        if snapshot is not None and not snapshots.is_in(reader.begin, end):
            snapshot = None
        contents = await _filled(place, reader, snapshot)
        health.require_whole(reader.begin, contents.records)
        kept_ms = retention_ms(await reader.settings())
        limit_s = load_limit_s(kept_ms)
        if snapshot is None and max(since(begun)) > limit_s:
            raise StoreUnavailable(
                f"{place}: to read it takes longer than it keeps removals; set its "
                "delete.retention.ms to a day"
            )
    except BaseException:
        await reader.close()
        raise
    if snapshot is not None and not snapshots.is_recent():
        # Kafka may have dropped removals while the rest was read.
        await reader.close()
        return await load_topic(place, health, snapshots, known=known)
    return Loaded(reader, contents, Moment.now() if limit_s == math.inf else begun, kept_ms)


async def _filled(place: Place, reader: Reader, snapshot: Contents | None) -> Contents:
    contents = snapshot or Contents()
    if snapshot is not None:
        reader.seek(snapshot.offset)
        log.info(
            "topic for ACLs read from a snapshot on",
            store=str(place),
            offset=snapshot.offset,
            acls=len(snapshot.bindings),
        )
    await contents.take_all(reader.everything())
    return contents
