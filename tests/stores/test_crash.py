"""A broker that is killed loses no change that it answered, and leaves no half of one."""

import subprocess
import sys

from aclbroker.broker.stores.sqlite import SqliteStore
from tests.stores import endless_writer

KILLS = 5


async def stored_names(path) -> set[str]:
    store = SqliteStore(path)
    await store.open()
    names = {binding.resource_name async for chunk in store.load() for binding in chunk}
    await store.close()
    return names


async def test_what_was_stored_survives_kill_9_at_any_moment(tmp_path):
    path = tmp_path / "acls.db"
    answered = set()
    for kill in range(KILLS):
        first = kill * 1_000_000
        last = write_until_killed(path, first, count=10 + 17 * kill)
        answered |= {f"topic-{number}" for number in range(first, last + 1)}
        stored = await stored_names(path)
        assert answered <= stored
        assert stored - answered <= {f"topic-{last + 1}"}
        answered = stored


def write_until_killed(path, first, count) -> int:
    """Kill the writer behind its answer number ``count``; return the last number it answered."""
    writer = subprocess.Popen(
        [sys.executable, "-m", endless_writer.__name__, path, str(first)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    with writer, writer.stdout as answers:
        try:
            for _ in range(count):
                assert answers.readline()
        finally:
            writer.kill()
        rest = answers.read().split("\n")[:-1]
    return int(rest[-1]) if rest else first + count - 1
