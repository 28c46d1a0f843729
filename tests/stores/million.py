"""Very many ACLs in a store."""

from __future__ import annotations

from collections import Counter
from typing import Final

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN

_PATTERNS: Final = 250
_OF_EACH: Final = 4_000
"""How many ACLs a pattern has: those of one are one node of a ZooKeeper, of at most 1 MiB."""


async def keep_a_million(store: AclStore) -> None:
    """Add a million ACLs and remove some; the others must be there when it is opened again."""
    await keep_many(store, _OF_EACH)


async def keep_many(store: AclStore, of_each: int) -> None:
    """Do so with fewer of each of 250 patterns."""
    for pattern in range(_PATTERNS):
        await store.apply(_of(pattern, of_each), [], ORIGIN)
    await store.apply([], _of(7, of_each)[: of_each // 4], ORIGIN)
    await store.close()
    await store.open()
    found: Counter[str] = Counter()
    async for chunk in store.load():
        found.update(each.resource_name for each in chunk)
    wanted = dict.fromkeys((f"topic-{pattern}" for pattern in range(_PATTERNS)), of_each)
    assert found == wanted | {"topic-7": of_each - of_each // 4}


def _of(pattern: int, count: int) -> list[AclBinding]:
    return [allow(principal=f"User:{number}", name=f"topic-{pattern}") for number in range(count)]
