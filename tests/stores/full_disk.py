"""Run as a program: fills a store until its files may not grow, then lets them grow again.

A limit on the size of files stands for the full disk: writes fail the same way, and only here.
"""

import asyncio
import resource
import sys

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import StoreError
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN

LIMIT_BYTES = 300_000


def acls(number: int):
    return [allow(name=f"batch-{number}-{n}", host="x" * 100) for n in range(50)]


async def stored(store: SqliteStore) -> set[AclBinding]:
    return {binding async for chunk in store.load() for binding in chunk}


async def main(path: str) -> None:
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = SqliteStore(path)
    await store.open()
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, unlimited[1]))
    expected, refusal = set(), ""
    for number in range(1_000):
        try:
            await store.apply(acls(number), [], ORIGIN)
        except StoreError as error:
            refusal = str(error)
            break
        expected.update(acls(number))
    assert expected
    assert path in refusal
    assert "space" in refusal
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert await stored(store) == expected
    await store.apply(acls(2_000), [], ORIGIN)
    expected.update(acls(2_000))
    await store.close()
    await store.open()
    assert await stored(store) == expected
    await store.close()
    print("done")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
