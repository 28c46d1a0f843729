"""How a process comes to use a store file: who is first checks, makes or upgrades it alone."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.broker.stores import inspection
from aclbroker.broker.stores.connection import connect
from aclbroker.broker.stores.creation import create_file
from aclbroker.broker.stores.file_systems import network_file_system
from aclbroker.broker.stores.inspection import Inspection
from aclbroker.broker.stores.locks import Mark, StoreLocks, linked
from aclbroker.broker.stores.schema import SCHEMA_VERSION
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.stores.upgrade import upgrade

_PATIENCE_S: Final = 10.0
"""How long whoever has a file alone is waited for."""

_RETRY_S: Final = 0.02
_BESIDE: Final = ("-wal", "-shm", "-journal")


class Opened(NamedTuple):
    """A file that is locked, together with others, and whole as far as `Inspection` says."""

    found: Inspection
    is_new: bool


def use(path: Path, locks: StoreLocks) -> Opened:
    """Lock a file, check it, make it if there is none, and upgrade it if it is an older one.

    Raises `StoreError`, `InvalidRow`, sqlite3.Error or `OSError`; then it is not locked.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _use_now(path, locks)
        except BlockingIOError:
            locks.release()
            if time.monotonic() >= deadline:
                raise StoreError(_refusal(path)) from None
        except BaseException:
            locks.release()
            raise
        time.sleep(_RETRY_S)


def _use_now(path: Path, locks: StoreLocks) -> Opened:
    """Do what `use` does if nobody has the file alone, or else raise `BlockingIOError`."""
    # SQLite follows links, and in a directory such as /tmp every user can make these names.
    for ending in _BESIDE:
        if os.path.islink(f"{path}{ending}"):
            raise StoreError(linked(f"{path}{ending}"))
    may_make = locks.take()
    is_new = not inspection.check_present(path)
    if is_new and not may_make:
        raise StoreError(
            f"the ACL store {path} was removed while another broker uses it: put the file back, "
            "with its -wal and -shm, or stop that broker to start with a new store"
        )
    if is_new:
        create_file(path)
    is_alone = locks.take_file()
    mark = None if is_new else locks.read_mark()
    if not is_alone:
        return Opened(inspection.inspect_in_use(path, mark), is_new=False)
    found = _upgraded(path, inspection.inspect(path, mark))
    if found.sealed is not None:
        locks.write_mark(Mark(found.cluster_id, found.sealed.transactions))
    # Locks may hold for all machines there, but what SQLite keeps in shared memory does not.
    if network_file_system(path) is None:
        locks.share()
    return Opened(found, is_new)


def _upgraded(path: Path, found: Inspection) -> Inspection:
    if found.version == SCHEMA_VERSION:
        return found
    with closing(connect(path)) as connection:
        upgrade(connection, found.version)
        return Inspection(SCHEMA_VERSION, *inspection.check_tables(connection))


def _refusal(path: Path) -> str:
    kind = network_file_system(path)
    if kind is not None:
        return (
            f"the ACL store {path} is in use by another broker, and it is on a network file system "
            f"({kind}), where one broker at a time can use it: stop that broker, give this one its "
            "own aclbroker.store, or put the file on a disk of the machine on which all of them run"
        )
    return (
        f"the ACL store {path} is in use by a program that must have it alone, which holds "
        f"{path}.lock or a lock on the file: a broker of an older version, which shares its file "
        "with nobody, or aclbroker store; stop that broker, or wait until the command has ended"
    )
