"""Run as a program: for each line on standard input it begins a process that uses a store.

That is a fork of this one, which has imported all, so that it begins within milliseconds. It says
what the store has, makes changes, says each that was acknowledged, and goes on until it is killed.
"""

import asyncio
import json
import os
import sys

from aclbroker.broker.stores import AclStore, open_store
from tests.acl.examples import allow, deny
from tests.stores.following import loaded
from tests.stores.origins import ORIGIN

KEPT = 3
"""A change adds its pair of ACLs, and removes that of the third change before it."""

OUTPUT = os.dup(1)
"""Its standard output, which logs must not come between."""


def pair(number: int):
    """The ACLs of a change, of which nobody may ever see one alone."""
    return [allow(f"User:{number}", name=f"t-{number}"), deny(f"User:{number}", name="secret")]


async def numbers_of(store: AclStore) -> list[int]:
    """The changes whose ACLs are in a store, each as often as it has ACLs there."""
    # A store may return one that was added again more than once.
    acls = set(await loaded(store))
    return sorted(int(acl.principal.removeprefix("User:")) for acl in acls)


def say(**values: object) -> None:
    """Print a line in one piece."""
    os.write(OUTPUT, f"{json.dumps(values)}\n".encode())


async def change(url: str) -> None:
    """Use the store until the end."""
    store = open_store(url, {"node.id": "1"})
    await store.open()
    numbers, records = await numbers_of(store), await store.load_records("drill")
    say(acls=numbers, records=records)
    # Where only the first transaction of the last change was made, it is made again.
    number = max(map(int, records.values()), default=-1)
    while True:
        number += 1
        gone = pair(number - KEPT) if number >= KEPT else []
        await store.apply(pair(number), gone, ORIGIN)
        say(acl_change=number)
        await store.apply_records("drill", {"a": str(number), "b": str(number)}, [], ORIGIN)
        say(record_change=number)


def main(url: str) -> None:
    """Begin a process for each line, and say when it has ended."""
    os.dup2(2, 1)
    if url.startswith("kafka://"):
        import aclbroker.broker.stores.kafka.store
    elif url.startswith("zookeeper://"):
        import aclbroker.broker.stores.zookeeper.store  # noqa: F401
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            asyncio.run(change(url))
        say(began=child)
        os.waitpid(child, 0)
        say(ended=child)


if __name__ == "__main__":
    main(sys.argv[1])
