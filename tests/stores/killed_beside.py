"""Run as a program: one process after the other is killed in mid-write beside one that goes on.

Each is forked, since to start Python anew for each would take longer than all else.
"""

import asyncio
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.database import Database
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import StoreReset
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN

KILLS = 50
SIZES = (1, 1, 30, 30, 1_500)
NUMBER = struct.Struct("<q")


def batch(run: int, number: int) -> list[AclBinding]:
    if number < 0:
        return []
    size = SIZES[(run + number) % len(SIZES)]
    return [allow(f"User:{run}", name=f"{number}-{each}") for each in range(size)]


def forked(work: Callable[[int], Any]) -> tuple[int, int]:
    """Run a function with the writing end of a pipe in another process; return that and the end."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        try:
            work(writing)
        finally:
            os._exit(0)
    os.close(writing)
    return process, reading


def write_for_ever(path: str, run: int, pipe: int) -> None:
    """Add a batch and remove the one before the last, over and over; tell the number of each."""
    database = Database(path)
    database.open()
    number = 0
    while True:
        database.apply(batch(run, number), batch(run, number - 2), ORIGIN)
        os.write(pipe, NUMBER.pack(number))
        number += 1


async def go_on(path: str, stop: Path, pipe: int) -> None:
    """Change and follow the store until told to stop; then compare what was told with what is."""
    store = SqliteStore(path)
    await store.open()
    followed: set[AclBinding] = set()
    last = 0

    async def follow() -> None:
        nonlocal last
        async for news in store.follow(0):
            assert not isinstance(news, StoreReset)
            assert news.position > last
            followed.difference_update(news.removed)
            followed.update(news.added)
            last = news.position

    following = asyncio.create_task(follow())
    number = 0
    while not stop.exists():
        await store.apply([allow("User:steady", name=str(number))], [], ORIGIN)
        number += 1
        await asyncio.sleep(0.001)
    async with asyncio.timeout(30):
        position = await store.position()
        while last < position:
            await asyncio.sleep(0.01)
    there = {binding async for chunk in store.load() for binding in chunk}
    assert followed == there
    assert {each for each in there if each.principal == "User:steady"} == {
        allow("User:steady", name=str(each)) for each in range(number)
    }
    following.cancel()
    await store.close()
    os.write(pipe, NUMBER.pack(number))


def killed(path: str, run: int, chance: random.Random) -> int:
    """Kill a process that writes at some moment; return the last number that it has told."""
    process, pipe = forked(lambda end: write_for_ever(path, run, end))
    os.read(pipe, NUMBER.size)
    time.sleep(chance.uniform(0, 0.06))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    told = b""
    while chunk := os.read(pipe, 65536):
        told += chunk
    os.close(pipe)
    return len(told) // NUMBER.size


def main(path: str) -> None:
    stop = Path(f"{path}.stop")
    steady, pipe = forked(lambda end: asyncio.run(go_on(path, stop, end)))
    chance = random.Random(20)
    told = [killed(path, run, chance) for run in range(KILLS)]
    stop.touch()
    assert os.read(pipe, NUMBER.size), "what went on has failed"
    os.waitpid(steady, 0)
    database = Database(path)
    database.open()
    there = {binding for chunk in database.load() for binding in chunk}
    database.close()
    for run, last in enumerate(told):
        own = {binding for binding in there if binding.principal == f"User:{run}"}
        # The one that was not answered any more is there as a whole, or nothing of it is.
        possible = [{*batch(run, n - 1), *batch(run, n)} for n in (last, last + 1)]
        assert own in possible, (run, last)
    print("done", sum(told))


if __name__ == "__main__":
    main(sys.argv[1])
