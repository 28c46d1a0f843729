"""Where ACLs and other records are kept: one small interface, `AclStore`, and stores behind it.

A store is named by a URL.
"""

from __future__ import annotations

from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import AclStore, StoreError

__all__ = ["AclStore", "StoreError", "open_store", "path_of"]

_SQLITE = "sqlite:///"


def open_store(url: str) -> AclStore:
    """Return the store that a URL names; its own ``open`` is still to be awaited.

    ``sqlite:///path`` is a file relative to the working directory, ``sqlite:////path`` an absolute
    one, ``memory:`` keeps nothing over a restart. Raises `StoreError` for any other URL.
    """
    if url in ("memory:", "memory://"):
        return MemoryStore()
    path = path_of(url)
    if path is None:
        raise StoreError(
            f"aclbroker.store={url!r} names no store; write sqlite:///relative/path, "
            "sqlite:////absolute/path or memory:"
        )
    return SqliteStore(path)


def path_of(url: str) -> str | None:
    """Return the path of the file that a URL names, None if it names none."""
    path = url.removeprefix(_SQLITE)
    return None if path == url or not path or "\0" in path else path
