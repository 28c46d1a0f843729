"""Run as a program: stores ACL after ACL and prints the number of each once it is stored."""

import asyncio
import sys

from aclbroker.broker.stores.sqlite import SqliteStore
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN


async def main(path: str, first: int) -> None:
    store = SqliteStore(path)
    await store.open()
    for number in range(first, first + 100_000):
        await store.apply([allow(name=f"topic-{number}")], [], ORIGIN)
        print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
