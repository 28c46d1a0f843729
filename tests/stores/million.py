"""Very many ACLs in a store."""

from __future__ import annotations

from collections import Counter
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN

_PATTERNS: Final = 250


async def keep_many(store: AclStore, of_each: int) -> None:
    """Add ACLs of each of 250 patterns and remove some; the others must outlive a restart.

    Those of one pattern are one node of a ZooKeeper, which holds at most 1 MiB: 4,000 fit.
    """
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
