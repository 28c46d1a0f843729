"""Run as a program in a mount namespace of its own: a store on a small tmpfs that gets full."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from aclbroker.broker.stores.copies import backup
from aclbroker.broker.stores.examination import examine
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import StoreError, StoreFull
from tests.stores.following import loaded
from tests.stores.full_disk import acls
from tests.stores.origins import ORIGIN

SIZE = 2 << 20


async def main(directory: Path) -> None:
    """Fill the disk, see what is refused and what stays, and go on with space."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        print("no mount")
        return
    path, ballast = directory / "acls.db", directory / "ballast"
    store = SqliteStore(path)
    await store.open()
    await store.apply(acls(0), [], ORIGIN)
    expected = set(acls(0))
    fill(ballast, SIZE // 4)
    for number in range(1, 1000):
        try:
            await store.apply(acls(number), [], ORIGIN)
        except StoreFull as error:
            tells(error, "space")
            break
        expected.update(acls(number))
    # The last byte of it.
    with ballast.open("ab") as more, suppress(OSError):
        while True:
            os.write(more.fileno(), b"x")
    for _ in range(2):
        await refused(store)
    assert set(await loaded(store)) == expected
    await no_copy(path, directory)
    await store.close()
    try:
        await store.open()
    except StoreError as error:
        tells(error, "space")
    else:
        # It serves: what is there is whole.
        assert set(await loaded(store)) == expected
        await refused(store)
    ballast.unlink()
    await store.close()
    await store.open()
    await store.apply(acls(2000), [], ORIGIN)
    await store.close()
    assert not examine(path).problems
    await store.open()
    assert set(await loaded(store)) == expected | set(acls(2000))
    await store.close()
    print("done")


def tells(error: StoreError, word: str) -> None:
    """Look whether an error says something."""
    if word not in str(error):
        raise AssertionError(str(error))


async def refused(store: SqliteStore) -> None:
    """Ask for a change that cannot be made."""
    try:
        await store.apply(acls(1001), [], ORIGIN)
    except StoreError:
        return
    raise AssertionError("a change was made on a full disk")


async def no_copy(path: Path, directory: Path) -> None:
    """Ask for a backup for which there is no space: nothing is left of it."""
    try:
        backup(path, directory / "copy.db")
    except StoreError as error:
        tells(error, "copy.db")
    else:
        raise AssertionError("a backup was made on a full disk")
    assert not list(directory.glob("copy.db*"))


def fill(path: Path, size: int) -> None:
    """Write a file."""
    path.write_bytes(bytes(size))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
