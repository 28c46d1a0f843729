"""What several brokers make of an empty store that they begin with at the same time."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.credentials.credentials import load_credentials
from aclbroker.broker.server.topic_ids import load_topic_ids
from aclbroker.broker.stores import AclStore

STORES = 4
TOPICS = [f"topic-{number}" for number in range(20)]


class FirstValues(NamedTuple):
    """What a broker has that all must have alike."""

    cluster_id: str
    salt: bytes
    """Of a user that there is not."""

    topic_ids: tuple[tuple[str, bytes], ...]


async def first_values(store: AclStore) -> FirstValues:
    """Open a store as a broker does, and return what that uses from then on."""
    await store.open()
    credentials = await load_credentials(store, None, 60_000)
    unknown = credentials.look_up(ScramMechanism.SCRAM_SHA_256)("nobody", False)
    ids = await load_topic_ids(store, TOPICS)
    return FirstValues(
        await store.cluster_id(), unknown.credential.salt, tuple(sorted(ids.items()))
    )


async def check_first_values(make: Callable[[int], AclStore]) -> None:
    """Have several stores at one empty place begin at once, and one more later."""
    stores = [make(number) for number in range(1, STORES + 1)]
    try:
        found = await asyncio.gather(*map(first_values, stores))
        late = make(STORES + 1)
        stores.append(late)
        assert {*found, await first_values(late)} == {found[0]}
        assert len(found[0].topic_ids) == len(TOPICS)
    finally:
        for store in stores:
            await store.close()
